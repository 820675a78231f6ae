//! Who may still write when the pool is full, and what a quota stops from growing.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{AllocateMode, Dataset, DatasetId, Error, Ino, NewInode, NewKind, Store};
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;
use support::{Dice, make_file, small_options};
use support::{create, open};

const BLOCK: u64 = 8192;

struct World {
    disk: Arc<SimDisk>,
    store: Arc<Store>,
    ids: Vec<DatasetId>,
}

impl World {
    fn new(free: u64, datasets: usize) -> World {
        let disk = SimDisk::new(1);
        create(&disk, &small_options()).unwrap();
        disk.set_capacity(Some(disk.used() + free));
        let store = open(&disk, &small_options()).unwrap();
        let ids = (0..datasets).map(|_| store.create_dataset().unwrap()).collect();
        World { disk, store, ids }
    }

    fn dataset(&self, index: usize) -> Arc<Dataset> {
        self.store.dataset(self.ids[index]).unwrap()
    }
}

fn random(dice: &mut Dice) -> Vec<u8> {
    dice.bytes(BLOCK as usize)
}

fn directory(dataset: &Dataset, name: &[u8]) -> Ino {
    let new = NewInode { kind: NewKind::Directory, mode: 0o700, uid: 0, gid: 0, rdev: 0 };
    dataset.create(Ino::ROOT, name, &new).unwrap().ino
}

/// Appends random blocks until that is refused; how many.
fn grow(dataset: &Dataset, ino: Ino, dice: &mut Dice) -> (u64, Error) {
    for count in 0..10_000 {
        if let Err(error) = dataset.append(ino, &random(dice)) {
            return (count, error);
        }
    }
    panic!("it grows for ever");
}

#[test]
fn a_common_quota_stops_all_that_it_is_of() {
    let world = World::new(64 << 20, 4);
    let mut dice = Dice::new(9);
    let mine = &world.ids[..2];
    let limit = |limit| world.store.set_common_quota(mine, mine, limit, 64 << 10).unwrap();
    assert!(!limit(Some(2 << 20)));
    let files: Vec<_> = (0..4).map(|index| make_file(&world.dataset(index), b"data")).collect();
    // Of one 1 MiB is written, of the other the rest.
    for _ in 0..128 {
        world.dataset(0).append(files[0], &random(&mut dice)).unwrap();
    }
    world.dataset(0).commit().unwrap();
    let (grown, refusal) = grow(&world.dataset(1), files[1], &mut dice);
    assert_eq!(refusal, Error::QuotaUsedUp);
    assert!((96..=140).contains(&grown), "{grown} blocks in the second MiB");
    world.store.set_quota(mine[0], mine, Some(32 << 20)).unwrap();
    assert_eq!(
        grow(&world.dataset(0), files[0], &mut dice).1,
        Error::QuotaUsedUp,
        "beside its own"
    );
    world.dataset(0).write(files[0], 0, &random(&mut dice)).unwrap();
    world.dataset(2).append(files[2], &random(&mut dice)).unwrap();
    assert!(limit(Some(2 << 20)), "it is told");

    // More, and none.
    assert!(!limit(Some(3 << 20)));
    world.dataset(0).append(files[0], &random(&mut dice)).unwrap();
    assert!(!limit(None));
    for _ in 0..256 {
        world.dataset(1).append(files[1], &random(&mut dice)).unwrap();
    }
}

#[test]
fn the_reserve_is_for_what_matters_more() {
    let world = World::new(6 << 20, 2);
    let mut dice = Dice::new(7);
    let (server, stream) = (world.dataset(0), world.dataset(1));
    stream.mark_stream();
    let log = directory(&server, b"log");
    server.favour_directory(log).unwrap();
    let new = NewInode { kind: NewKind::File, mode: 0o600, uid: 0, gid: 0, rdev: 0 };
    let data = make_file(&server, b"data");
    let received = make_file(&stream, b"received");
    let (grown, refusal) = grow(&server, data, &mut dice);
    assert_eq!(refusal, Error::NoSpace);
    assert!(grown > 400, "{grown} blocks in 5 MiB");
    // Files of others do not grow either; what is there can be replaced, and the log continues.
    let refused = |name: u8| server.create(Ino::ROOT, &[name], &new) == Err(Error::NoSpace);
    assert!((1..100).any(refused), "files are made without end");
    let mut replaced = 0;
    while server.write(data, replaced % grown * BLOCK, &random(&mut dice)).is_ok() {
        server.commit().unwrap();
        replaced += 1;
        if replaced == 120 {
            break;
        }
    }
    // A quarter of 1 MiB would do for 30 of them.
    assert_eq!(replaced, 120, "most of what it replaces is given back");
    let wal = server.create(log, b"0001", &new).unwrap().ino;
    let mut written = 0;
    while server.append(wal, &random(&mut dice)).is_ok() {
        server.sync().unwrap();
        written += 1;
    }
    assert!((20..300).contains(&written), "{written} blocks in half of 1 MiB and what comes back");
    let (received_blocks, refusal) = grow(&stream, received, &mut dice);
    assert_eq!(refusal, Error::NoSpace);
    assert!((10..200).contains(&received_blocks), "{received_blocks} blocks in a quarter of 1 MiB");
    // Found again by name after a reopening, the log is still favoured.
    let before = written;
    drop((server, stream));
    let World { disk, store, ids } = world;
    store.close().unwrap();
    drop(store);
    let store = open(&disk, &small_options()).unwrap();
    let world = World { disk, store, ids };
    let server = world.dataset(0);
    let log = server.lookup(Ino::ROOT, b"log").unwrap().ino;
    server.favour_directory(log).unwrap();
    let wal = server.lookup(log, b"0001").unwrap();
    assert_eq!(wal.size, before * BLOCK);
    // A deletion brings all of it back.
    server.unlink(Ino::ROOT, b"data").unwrap();
    server.commit().unwrap();
    let again = make_file(&server, b"again");
    assert!(grow(&server, again, &mut dice).0 > 300);
}

/// A database makes its files longer with zeros, which take no room, and fills them later.
#[test]
fn what_a_file_grew_by_without_content_can_be_filled_later() {
    for allocates in [false, true] {
        let world = World::new(6 << 20, 1);
        let mut dice = Dice::new(8);
        let dataset = world.dataset(0);
        let ino = make_file(&dataset, b"table");
        let zeros = vec![0; BLOCK as usize];
        let mut blocks = 0;
        loop {
            let grown = match allocates {
                true => dataset.allocate(ino, blocks * BLOCK, BLOCK, AllocateMode::Extend),
                false => dataset.append(ino, &zeros).map(drop),
            };
            if grown.is_err() {
                break;
            }
            blocks += 1;
            assert!(blocks < 10_000, "nothing is set aside for the content");
        }
        assert!(blocks > 300, "{blocks}");
        assert_eq!(world.store.growth_room(), 0);
        for block in 0..blocks {
            dataset.write(ino, block * BLOCK, &random(&mut dice)).unwrap();
        }
        dataset.sync().unwrap();
        dataset.commit().unwrap();
        assert!(world.store.growth_room() > 0, "what was promised is there now");
    }
}

/// Others fill the disk before any operation: what was synced is there, also after a power loss.
#[test]
fn whatever_write_finds_the_disk_full_nothing_synced_is_lost() {
    let mut met = 0;
    for at in 1.. {
        let world = World::new(64 << 20, 1);
        let mut dice = Dice::new(at);
        let dataset = world.dataset(0);
        let ino = make_file(&dataset, b"file");
        dataset.commit().unwrap();
        world.disk.fill_after(at);
        let (mut content, mut synced, mut refused) = (Vec::new(), 0, false);
        for round in 0..12 {
            let bytes = random(&mut dice);
            if dataset.append(ino, &bytes).is_err() {
                refused = true;
                continue;
            }
            content.extend_from_slice(&bytes);
            match dataset.sync() {
                Ok(()) => synced = content.len(),
                Err(error) => assert_eq!(error, Error::NoSpace),
            }
            if round % 4 == 3
                && let Err(error) = dataset.commit()
            {
                assert_eq!(error, Error::NoSpace);
                refused = true;
            }
        }
        assert_eq!(dataset.read(ino, 0, content.len() + 1).unwrap(), content, "filled before {at}");
        drop(dataset);
        drop(world.store);
        world.disk.crash();
        world.disk.set_capacity(None);
        let store = open(&world.disk, &small_options()).unwrap();
        let dataset = store.dataset(world.ids[0]).unwrap();
        let found = dataset.read(ino, 0, content.len() + 1).unwrap();
        assert!(found.len() >= synced, "filled before {at}: {} of {synced}", found.len());
        assert_eq!(found, content[..found.len()], "filled before {at}");
        dataset.append(ino, &random(&mut dice)).unwrap();
        dataset.commit().unwrap();
        met += u32::from(refused);
        if !refused {
            break;
        }
    }
    assert!(met > 5, "only {met} moments were met");
}

#[test]
fn a_quota_covers_a_dataset_with_its_snapshots_and_not_what_it_shares() {
    let world = World::new(64 << 20, 2);
    let mut dice = Dice::new(9);
    let parent = world.dataset(0);
    let ino = make_file(&parent, b"inherited");
    for _ in 0..200 {
        parent.append(ino, &random(&mut dice)).unwrap();
    }
    let origin = world.store.snapshot(world.ids[0]).unwrap();
    let id = world.store.clone_snapshot(origin).unwrap();
    let quota = 2 << 20;
    world.store.set_quota(id, &[id], Some(quota)).unwrap();
    let dataset = world.store.dataset(id).unwrap();
    let own = make_file(&dataset, b"own");
    let (grown, refusal) = grow(&dataset, own, &mut dice);
    assert_eq!(refusal, Error::QuotaUsedUp);
    assert_eq!(refusal.errno(), 122);
    assert!(
        (220..256).contains(&grown),
        "{grown} blocks in 2 MiB; what is inherited is not its own"
    );
    assert!(world.store.quota_used_up(id));
    // Others grow, and it may replace what it has.
    parent.append(ino, &random(&mut dice)).unwrap();
    dataset.write(own, 0, &random(&mut dice)).unwrap();
    dataset.sync().unwrap();
    // A snapshot of it is no way around the quota, and its deletion gives the room back.
    let snapshot = world.store.snapshot(id).unwrap();
    dataset.unlink(Ino::ROOT, b"own").unwrap();
    let more = make_file(&dataset, b"more");
    assert_eq!(dataset.append(more, &random(&mut dice)), Err(Error::QuotaUsedUp));
    world.store.delete_snapshot(snapshot).unwrap();
    // When it is set again, it is measured again immediately.
    world.store.set_quota(id, &[id], None).unwrap();
    world.store.set_quota(id, &[id], Some(quota)).unwrap();
    assert!(!world.store.quota_used_up(id));
    assert!(grow(&dataset, more, &mut dice).0 > 200);
    world.store.set_quota(id, &[id], None).unwrap();
    for _ in 0..300 {
        dataset.append(more, &random(&mut dice)).unwrap();
    }
}
