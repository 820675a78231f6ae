use super::*;
use offshoot_dataset::{CheckReport, DataKey, DatasetId, Ino, NewInode, SnapshotId, StoreOptions};
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;

/// A store on a simulated disk.
pub(crate) struct Side {
    pub(crate) disk: Arc<SimDisk>,
    options: StoreOptions,
    pub(crate) store: Arc<Store>,
}

impl Side {
    pub(crate) fn new(seed: u64, key: Option<DataKey>) -> Side {
        let mut options = StoreOptions {
            log_file_size: 64 << 10,
            log_files: 3,
            background: false,
            commit_workers: 1,
            ..StoreOptions::default()
        };
        options.pool.background = false;
        options.pool.check_invariants = true;
        options.pool.segment_size = 1 << 20;
        options.pool.reserve = Some(1 << 20);
        options.pool.cache_size = 1 << 20;
        options.pool.data_key = key;
        let disk = SimDisk::new(seed);
        Store::create(&as_disk(&disk), &options).unwrap();
        let store = open(&disk, &options).unwrap();
        Side { disk, options, store }
    }

    /// As a power failure leaves it, opened again.
    pub(crate) fn crashed(self) -> Side {
        let Side { disk, options, store } = self;
        drop(store);
        disk.crash();
        let store = open(&disk, &options).unwrap();
        Side { disk, options, store }
    }

    /// Closes it and checks all of it.
    pub(crate) fn check(self) -> CheckReport {
        self.store.close().unwrap();
        let Side { disk, options, store } = self;
        drop(store);
        check(&disk, &options)
    }

    /// A dataset with some files: pages that compress, pages that do not, holes, attributes, many names.
    pub(crate) fn dataset(&self, salt: u64) -> DatasetId {
        let id = self.store.create_dataset().unwrap();
        let dataset = self.store.dataset(id).unwrap();
        let big = dataset.create(Ino::ROOT, b"big", &NewInode::file(0o600)).unwrap().ino;
        for page in 0..300u64 {
            let mut content = vec![(page % 251) as u8; 8192];
            content[..8].copy_from_slice(&(page / 2 + salt).to_le_bytes());
            dataset.write(big, (page + page / 100 * 70) * 8192, &content).unwrap();
        }
        let noise = dataset.create(Ino::ROOT, b"noise", &NewInode::file(0o600)).unwrap().ino;
        let mut state = salt | 1;
        let random: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .take(40_000)
        .collect();
        dataset.write(noise, 0, &random).unwrap();
        let value = vec![7; 2000];
        dataset.set_xattr(noise, b"user.long", &value, offshoot_dataset::XattrMode::Set).unwrap();
        for number in 0..200 {
            let name = format!("some-file-with-a-longer-name-{number}");
            dataset.create(Ino::ROOT, name.as_bytes(), &NewInode::file(0o640)).unwrap();
        }
        id
    }
}

fn as_disk(disk: &Arc<SimDisk>) -> Arc<dyn Disk> {
    disk.clone()
}

fn open(
    disk: &Arc<SimDisk>,
    options: &StoreOptions,
) -> Result<Arc<Store>, offshoot_dataset::Error> {
    Store::open(as_disk(disk), options, Arc::new(SystemClock))
}

fn check(disk: &Arc<SimDisk>, options: &StoreOptions) -> CheckReport {
    let key = options.pool.data_key.as_ref();
    let report = offshoot_dataset::check_encrypted(as_disk(disk), key, &mut |_, _| {}).unwrap();
    assert_eq!(report.findings, []);
    report
}

fn export(store: &Store, snapshots: &[SnapshotId]) -> (Vec<u8>, Tally) {
    let held: Vec<_> = snapshots.iter().map(|id| store.hold_snapshot(*id).unwrap()).collect();
    let mut bytes = Vec::new();
    let tally = write(&mut bytes, b"what it is", &held, &mut |_| Ok(())).unwrap();
    assert_eq!(tally.bytes, bytes.len() as u64);
    (bytes, tally)
}

fn import(store: &Store, bytes: &[u8], becomes: Becomes) -> Result<(Vec<Received>, Tally)> {
    let archive = Archive::open(bytes)?;
    let becomes = vec![becomes; archive.states()];
    archive.receive(store, &becomes, &mut |_| Ok(()))
}

/// The roots of what was received.
fn roots(store: &Store, received: &[Received]) -> Vec<TreeState> {
    let snapshot = |one: &Received| match one {
        Received::Snapshot(id) => *id,
        Received::Dataset(id) => store.snapshot(*id).unwrap(),
    };
    received.iter().map(|one| store.hold_snapshot(snapshot(one)).unwrap().tree().clone()).collect()
}

/// Two snapshots of one dataset, the second with a little changed, in an archive.
fn two_snapshots(side: &Side) -> (Vec<SnapshotId>, Vec<u8>, Tally) {
    let id = side.dataset(5);
    let first = side.store.snapshot(id).unwrap();
    let dataset = side.store.dataset(id).unwrap();
    let big = dataset.lookup(Ino::ROOT, b"big").unwrap().ino;
    dataset.write(big, 8192 * 17, &[9; 8192]).unwrap();
    let second = side.store.snapshot(id).unwrap();
    let (bytes, tally) = export(&side.store, &[first, second]);
    (vec![first, second], bytes, tally)
}

#[test]
fn states_come_as_they_were() {
    let keys = [None, Some(DataKey::of([7; 32]))];
    for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (source, target) = (Side::new(1, keys[from].clone()), Side::new(2, keys[to].clone()));
        let (snapshots, bytes, written) = two_snapshots(&source);
        let (received, read) = import(&target.store, &bytes, Becomes::Snapshot).unwrap();
        assert_eq!((read.blocks, read.bytes), (written.blocks, written.bytes));
        let sent: Vec<_> = snapshots.into_iter().map(Received::Snapshot).collect();
        assert_eq!(roots(&target.store, &received), roots(&source.store, &sent));
        assert!(written.raw_bytes > 2 * written.bytes, "blocks travel compressed: {written:?}");
        source.check();
        assert_eq!(target.check().snapshots, 2);
    }
}

#[test]
fn what_is_here_already_is_not_stored_again() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, bytes, written) = two_snapshots(&source);
    import(&target.store, &bytes, Becomes::Snapshot).unwrap();
    let used = target.store.stats().live;
    let (received, read) = import(&target.store, &bytes, Becomes::Dataset).unwrap();
    assert_eq!(read.present, written.blocks);
    // Two entries of the directory, and no block.
    assert!(target.store.stats().live - used < 2048);
    // What became a dataset is one: it can be written to.
    let Received::Dataset(id) = received[0] else { panic!("{received:?}") };
    let dataset = target.store.dataset(id).unwrap();
    dataset.create(Ino::ROOT, b"new", &NewInode::file(0o600)).unwrap();
    target.check();
}

#[test]
fn a_deleted_snapshot_stays_until_it_is_sent() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let id = source.dataset(5);
    let snapshot = source.store.snapshot(id).unwrap();
    let held = [source.store.hold_snapshot(snapshot).unwrap()];
    source.store.delete_snapshot(snapshot).unwrap();
    source.store.delete_dataset(id).unwrap();
    assert!(source.store.hold_snapshot(snapshot).is_err());
    let mut bytes = Vec::new();
    write(&mut bytes, b"", &held, &mut |_| Ok(())).unwrap();
    drop(held);
    import(&target.store, &bytes, Becomes::Snapshot).unwrap();
    target.check();
    assert_eq!(source.check().inodes, 0);
}

#[test]
fn no_byte_can_be_wrong() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, bytes, _) = two_snapshots(&source);
    let used = target.store.stats().live;
    let mut at = 0;
    while at < bytes.len() {
        let mut wrong = bytes.clone();
        wrong[at] ^= 1 << (at % 8);
        assert!(import(&target.store, &wrong, Becomes::Snapshot).is_err(), "byte {at}");
        at += 1 + bytes.len() / 200;
    }
    assert_eq!((target.store.snapshots(), target.store.stats().live), (vec![], used));
    target.check();
}

#[test]
fn an_archive_that_was_cut_off_says_so() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, bytes, _) = two_snapshots(&source);
    let mut len = 0;
    while len < bytes.len() {
        let error = import(&target.store, &bytes[..len], Becomes::Snapshot).unwrap_err();
        let expected = matches!(error, Error::CutOff { .. } | Error::NotAnArchive);
        assert!(expected, "{len} bytes: {error}");
        len += 1 + bytes.len() / 100;
    }
    let longer = [&bytes[..], &[0]].concat();
    let error = import(&target.store, &longer, Becomes::Snapshot).unwrap_err();
    assert!(error.to_string().contains("something follows"), "{error}");
    assert_eq!(target.store.snapshots(), []);
    target.check();
}

#[test]
fn a_newer_version_says_what_to_do() {
    let source = Side::new(1, None);
    let (_, mut bytes, _) = two_snapshots(&source);
    bytes[8] = 9;
    let failure = Archive::open(&bytes[..]).err().unwrap().failure();
    assert!(failure.message.contains("version 9"), "{failure:?}");
    assert!(failure.hint.contains("upgrade"), "{failure:?}");
}

#[test]
fn a_state_that_is_not_sound_is_refused() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let id = source.dataset(5);
    let snapshot = source.store.snapshot(id).unwrap();
    let held = [source.store.hold_snapshot(snapshot).unwrap()];
    let (bytes, _) = export(&source.store, &[snapshot]);
    // The same archive, with sums that do not fit the tree.
    let mut tree = held[0].tree().clone();
    let sound = Frame::States(vec![tree.clone()]).encode();
    tree.inodes += 1;
    let begin = bytes.windows(sound.len()).position(|some| some == sound).unwrap();
    let mut wrong = bytes[..bytes.len() - HEADER_LEN - 32].to_vec();
    wrong.splice(begin..begin + sound.len(), Frame::States(vec![tree]).encode());
    let digest = *blake3::hash(&wrong).as_bytes();
    wrong.extend(Frame::End(digest).encode());
    let error = import(&target.store, &wrong, Becomes::Snapshot).unwrap_err();
    assert!(error.to_string().contains("what was received"), "{error}");
    assert_eq!(target.store.snapshots(), []);
    target.check();
}

#[test]
fn a_crash_at_any_moment_leaves_all_or_nothing() {
    let source = Side::new(1, None);
    let (_, bytes, _) = two_snapshots(&source);
    let measured = Side::new(3, None);
    let before = measured.disk.operations();
    import(&measured.store, &bytes, Becomes::Snapshot).unwrap();
    let operations = measured.disk.operations() - before;
    let (mut with, mut without) = (0, 0);
    for at in 1..=operations + 1 {
        let Side { disk, options, store } = Side::new(3, None);
        disk.crash_after(at);
        let outcome = import(&store, &bytes, Becomes::Snapshot);
        drop(store);
        disk.crash();
        let store = open(&disk, &options).unwrap();
        let snapshots = store.snapshots().len();
        assert!(snapshots == 0 || snapshots == 2, "crash at {at}: {snapshots} snapshots");
        assert!(outcome.is_err() || snapshots == 2, "crash at {at}: what was reported is gone");
        if snapshots == 2 {
            with += 1
        } else {
            without += 1
        }
        store.close().unwrap();
        drop(store);
        check(&disk, &options);
    }
    assert!(with > 0 && without > 8, "{with} with, {without} without");
}

#[test]
fn a_full_pool_refuses_and_keeps_nothing() {
    let (source, target) = (Side::new(1, None), Side::new(2, None));
    let (_, bytes, _) = two_snapshots(&source);
    target.disk.set_capacity(Some(target.disk.used() + 30_000));
    let error = import(&target.store, &bytes, Becomes::Snapshot).unwrap_err();
    assert_eq!(error.failure().code, offshoot_types::ErrorKind::PoolFull, "{error}");
    assert_eq!(target.store.snapshots(), []);
    target.disk.set_capacity(None);
    import(&target.store, &bytes, Becomes::Snapshot).unwrap();
    target.check();
}
