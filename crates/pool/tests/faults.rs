//! Damage, a full disk, failing devices, unknown formats.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_format::root;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{Error, Pool, PoolOptions, Purpose};
use offshoot_types::BlockHash;
use std::ops::RangeInclusive;
use std::sync::Arc;
use testpool::*;

/// The path of the only segment file, and its content.
fn only_segment(disk: &SimDisk) -> (String, Vec<u8>) {
    let names = disk.list("segments").unwrap();
    assert_eq!(names.len(), 1);
    let path = format!("segments/{}", names[0]);
    let content = disk.content(&path).unwrap();
    (path, content)
}

/// Where a block's stored bytes begin: after the frame that holds its name.
fn find(content: &[u8], hash: &BlockHash) -> usize {
    content.windows(32).position(|window| window == hash.0).unwrap() + 32
}

#[test]
fn a_flipped_bit_is_an_error_a_fault_and_never_wrong_data() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let good = transaction.write_data(&content(1)).unwrap();
    let bad = transaction.write_data(&content(2)).unwrap();
    let root = transaction.write_node(&node(1, &[good, bad])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let (path, bytes) = only_segment(&disk);
    let begin = find(&bytes, &bad);
    let mut noticed = 0;
    for offset in [0, 1, 100, 700, 1000] {
        disk.flip_bit(&path, (begin + offset) as u64, 3);
        pool.clear_cache();
        match pool.read(&bad, 0) {
            Err(Error::Damaged { hash, .. }) => {
                assert_eq!(hash, bad);
                noticed += 1;
            }
            // A codec may ignore some bits; the content must then be right.
            Ok(block) => assert_eq!(*block, content(2)[..]),
            Err(other) => panic!("{other}"),
        }
        assert_eq!(*pool.read(&good, 0).unwrap(), content(1)[..]);
        disk.flip_bit(&path, (begin + offset) as u64, 3);
    }
    assert!(noticed >= 4);
    let faults = pool.faults();
    assert_eq!((faults.len(), faults[0].hash), (1, bad));
    assert_eq!(faults[0].count, noticed);
    assert_eq!(pool.stats().faults, 1);
    pool.clear_cache();
    assert_eq!(*pool.read(&bad, 0).unwrap(), content(2)[..], "mended, it reads again");
    // A scrub finds it without a reader.
    disk.flip_bit(&path, begin as u64, 3);
    pool.clear_cache();
    let report = scrub(&pool);
    assert_eq!((report.blocks, report.damaged, report.finished), (3, 1, true));
}

#[test]
fn a_device_that_does_not_answer_is_an_error_for_the_reader_only() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let root = commit_tree(&pool, 1, &[1, 2]).unwrap();
    pool.clear_cache();
    disk.fail_reads(Some("segments/"));
    assert!(matches!(read_tree(&pool, &root), Err(Error::Io { .. })));
    disk.fail_reads(None);
    assert_eq!(read_tree(&pool, &root).unwrap().len(), 2);
}

#[test]
fn after_a_failed_flush_nothing_is_written_until_the_pool_is_reopened() {
    for path in ["segments/", "table/", "root."] {
        let disk = SimDisk::new(1);
        let pool = create(&disk);
        let first = commit_tree(&pool, 1, &[1, 2]).unwrap();
        disk.fail_syncs(Some(path));
        assert!(matches!(commit_tree(&pool, 2, &[3]), Err(Error::Io { .. })), "{path}");
        disk.fail_syncs(None);
        assert!(matches!(commit_tree(&pool, 2, &[3]), Err(Error::Failed(_))), "{path}");
        assert!(matches!(pool.reclaim_step(), Err(Error::Failed(_))));
        assert_eq!(read_tree(&pool, &first).unwrap().len(), 2, "reads go on");
        drop(pool);
        let pool = open(&disk).unwrap();
        commit_tree(&pool, 3, &[3]).unwrap();
        assert_sound(&pool, path);
    }
}

/// A device that promised more room than it has reports that at a flush, and loses what it should have
/// kept.
#[test]
fn after_a_flush_without_room_all_is_written_anew_and_goes_on() {
    for path in ["segments/", "table/", "root."] {
        for seed in 0..40 {
            let disk = SimDisk::new(seed);
            let pool = create(&disk);
            let first = commit_tree(&pool, 1, &[1, 2]).unwrap();
            // Another's, begun before and flushed by the commit that fails.
            let other = pool.begin();
            let block = other.write_data(&content(4)).unwrap();
            let root = other.write_node(&node(9, &[block])).unwrap();
            disk.refuse_syncs(Some(path));
            for _ in 0..2 {
                let refused = commit_tree(&pool, 2, &[3]);
                assert!(matches!(refused, Err(Error::Full { .. })), "{path}: {refused:?}");
                let _ = pool.reclaim_step();
            }
            disk.refuse_syncs(None);
            let lost = path == "segments/";
            let outcome = pool.commit(other, root, b"");
            assert_eq!(outcome.is_err(), lost, "{path}: {outcome:?}");
            // Of the same content as what was lost.
            let again = commit_tree(&pool, 5, &[1, 3, 4]).unwrap();
            let seen = read_tree(&pool, &again).unwrap();
            while pool.reclaim_step().unwrap() {}
            assert!(pool.read(&first, 0).is_err(), "{path}: what is dead goes");
            drop(pool);
            disk.crash();
            let pool = open(&disk).unwrap();
            assert_eq!(pool.root().hash, again, "{path}");
            assert_eq!(read_tree(&pool, &again).unwrap(), seen, "{path}, seed {seed}");
            assert_sound(&pool, path);
        }
    }
}

/// Power is lost while nobody knows which root the device has: either is whole.
#[test]
fn a_root_in_doubt_is_whole_after_a_crash() {
    for seed in 0..60 {
        let disk = SimDisk::new(seed);
        let pool = create(&disk);
        let first = commit_tree(&pool, 1, &[1, 2]).unwrap();
        disk.refuse_syncs(Some("root."));
        for salt in 2..5 {
            assert!(commit_tree(&pool, salt, &[2, salt.into()]).is_err());
            for _ in 0..5 {
                let _ = pool.reclaim_step();
            }
        }
        drop(pool);
        disk.refuse_syncs(None);
        disk.crash();
        let pool = open(&disk).unwrap();
        let root = pool.root().hash;
        let seen = read_tree(&pool, &root).unwrap();
        assert_eq!(seen.len(), 2, "seed {seed}");
        if root == first {
            assert_eq!(seen, [content(1), content(2)]);
        }
        assert_sound(&pool, "after the crash");
    }
}

#[test]
fn a_full_disk_refuses_writers_keeps_deletions_and_recovers() {
    let disk = SimDisk::new(1);
    disk.set_capacity(Some(8 << 20));
    let pool = create(&disk);
    let mut committed = BlockHash::ZERO;
    let mut number = 0;
    let full = loop {
        let transaction = pool.begin();
        let mut tree = || -> Result<BlockHash, Error> {
            let mut children = Vec::new();
            for _ in 0..20 {
                number += 1;
                children.push(transaction.write_data(&Random(number).bytes(8192))?);
            }
            if !committed.is_zero() {
                children.push(committed);
            }
            transaction.write_node(&node(0, &children))
        };
        match tree() {
            Ok(root) => {
                pool.commit(transaction, root, b"").unwrap();
                committed = root;
            }
            Err(error) => break error,
        }
        assert!(number < 2000, "the disk fills up");
    };
    assert!(matches!(full, Error::Full { .. }), "{full}");
    assert!(pool.available(Purpose::Growth) < 8300);
    let free = disk.space().unwrap().free;
    assert!(free >= 900 << 10, "the reserve is kept: {free} bytes are free");
    assert_sound(&pool, "full");
    let before = pool.stats();
    assert!(before.used <= before.capacity);
    // What is there can be read, and deleted.
    assert!(!read_tree(&pool, &committed).unwrap().is_empty());
    let transaction = pool.begin_freeing();
    let rest = transaction.write_node(&node(9, &[])).unwrap();
    pool.commit(transaction, rest, b"").unwrap();
    reclaim(&pool);
    assert!(
        pool.available(Purpose::Growth) > 5 << 20,
        "room is back: {}",
        pool.available(Purpose::Growth)
    );
    commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    assert_sound(&pool, "after the deletion");
}

#[test]
fn no_room_at_all_undoes_the_commit_and_room_brings_it_back() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let first = commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    // Somebody else fills the file system, the reserve included.
    disk.set_capacity(Some(disk.used()));
    let transaction = pool.begin_freeing();
    let root = write_tree(&transaction, 2, &(10..40).collect::<Vec<_>>()).unwrap();
    assert!(matches!(pool.commit(transaction, root, b""), Err(Error::Full { .. })));
    assert_eq!(pool.root().hash, first);
    assert_sound(&pool, "after the refused commit");
    assert_eq!(read_tree(&pool, &first).unwrap().len(), 3);
    disk.set_capacity(None);
    let second = commit_tree(&pool, 2, &(10..40).collect::<Vec<_>>()).unwrap();
    assert_eq!(read_tree(&pool, &second).unwrap().len(), 30);
    reclaim(&pool);
    assert_sound(&pool, "with room again");
    drop(pool);
    let pool = open(&disk).unwrap();
    assert_eq!(read_tree(&pool, &second).unwrap().len(), 30);
    assert_sound(&pool, "reopened");
}

#[test]
fn the_set_capacity_limits_the_pool() {
    let disk = SimDisk::new(1);
    Pool::create(&*disk, &options()).unwrap();
    let limited = PoolOptions { capacity: Some(3 << 20), ..options() };
    let pool = open_with(&disk, &limited).unwrap();
    let transaction = pool.begin();
    let written = (0..1000).map(|number| transaction.write_data(&Random(number).bytes(8192)));
    let stored = written.take_while(Result::is_ok).count();
    assert!((200..260).contains(&stored), "{stored} blocks of 8 KiB in 2 MiB");
    assert_eq!(pool.stats().capacity, 3 << 20);
}

/// Damages a copy of a root slot.
fn damage_root(disk: &SimDisk, path: &str, copy: usize) {
    disk.flip_bit(path, (copy * root::LEN) as u64 + 100, 1);
}

#[test]
fn damage_of_one_copy_of_the_newest_root_loses_nothing() {
    for copy in 0..root::COPIES {
        let disk = SimDisk::new(1);
        let pool = create(&disk);
        commit_tree(&pool, 1, &[1, 2]).unwrap();
        let second = commit_tree(&pool, 2, &[1, 2, 3]).unwrap();
        drop(pool);
        damage_root(&disk, "root.0", copy);
        let pool = open(&disk).unwrap();
        assert_eq!(pool.root().hash, second);
        assert_eq!(read_tree(&pool, &second).unwrap().len(), 3);
        drop(pool);
        // Opening rewrote it: now the other one may go.
        damage_root(&disk, "root.0", root::COPIES - 1 - copy);
        assert_eq!(open(&disk).unwrap().root().hash, second);
    }
}

/// Damages every copy of a root slot.
fn damage_slot(disk: &SimDisk, path: &str) {
    (0..root::COPIES).for_each(|copy| damage_root(disk, path, copy));
}

/// The slots are as an older engine leaves them: without spare copies.
fn remove_spares(disk: &SimDisk) {
    for path in ["root.0", "root.1"] {
        disk.open(path).unwrap().set_len((root::COPIES * root::LEN) as u64).unwrap();
    }
}

/// Two commits, their roots in `root.1` and `root.0`, and no engine.
fn two_commits(disk: &Arc<SimDisk>) -> [BlockHash; 2] {
    let pool = create(disk);
    let first = commit_tree(&pool, 1, &[1, 2]).unwrap();
    let _pin = pool.pin(&first).unwrap();
    [first, commit_tree(&pool, 2, &[1, 2, 3]).unwrap()]
}

#[test]
fn a_root_that_is_damaged_in_both_copies_comes_from_the_spare_one() {
    for slots in [&["root.0"][..], &["root.1"], &["root.0", "root.1"]] {
        let disk = SimDisk::new(1);
        let [_, second] = two_commits(&disk);
        slots.iter().for_each(|path| damage_slot(&disk, path));
        let pool = open(&disk).unwrap();
        assert_eq!(pool.root().hash, second, "{slots:?}");
        assert_eq!(read_tree(&pool, &second).unwrap().len(), 3);
        let detail = pool.faults()[0].detail.clone();
        assert!(detail.contains("nothing is lost") && detail.contains(slots[0]), "{detail}");
        drop(pool);
        assert_eq!(open(&disk).unwrap().faults(), [], "it was mended");
    }
}

/// The number of the last commit.
fn last_commit(pool: &Pool) -> u32 {
    pool.root().extra.try_into().map_or(0, u32::from_le_bytes)
}

/// Openings with a commit each, cut off at an operation. What may be there then: the last commit that
/// was seen or acknowledged, and the next.
fn commits_until(disk: &Arc<SimDisk>, at: u64, numbers: RangeInclusive<u32>) -> [u32; 2] {
    let mut there = [*numbers.start() - 1; 2];
    disk.crash_after(at);
    let work = || -> Result<(), Error> {
        for number in numbers {
            let pool = open(disk)?;
            there = [last_commit(&pool), number];
            commit_tree(&pool, number, &[1, u64::from(number)])?;
            there = [number; 2];
        }
        Ok(())
    };
    let _ = work();
    disk.crash();
    there
}

#[test]
fn after_any_crash_one_slot_may_be_damaged_in_both_copies() {
    let mut random = Random(77);
    let mut runs = 0;
    for (seed, path) in (1..17).flat_map(|seed| [(seed, "root.0"), (seed, "root.1")]) {
        for at in 1.. {
            let disk = SimDisk::new(seed);
            drop(create(&disk));
            let mut there = commits_until(&disk, at, 1..=3);
            let all = there == [3, 3];
            if random.below(2) == 0 {
                // Others in the place of one that was cut off.
                let later = commits_until(&disk, 1 + random.below(40), 11..=12);
                there = if later == [10, 10] { there } else { later };
            }
            damage_slot(&disk, path);
            let context = format!("seed {seed}, {path}, power lost at operation {at}");
            let pool = open(&disk).unwrap_or_else(|error| panic!("{context}: {error}"));
            let number = last_commit(&pool);
            assert!(there.contains(&number), "{context}: {number} instead of {there:?}");
            if number > 0 {
                let tree = read_tree(&pool, &pool.root().hash).unwrap();
                assert_eq!(tree, [content(1), content(u64::from(number))], "{context}");
            }
            assert_sound(&pool, &context);
            runs += 1;
            if all {
                break;
            }
        }
    }
    assert!(runs > 1000, "{runs} crashes");
}

#[test]
fn without_a_spare_copy_the_older_root_is_used_and_it_is_said() {
    let disk = SimDisk::new(1);
    let [first, _] = two_commits(&disk);
    damage_slot(&disk, "root.0");
    remove_spares(&disk);
    let pool = open(&disk).unwrap();
    assert_eq!(pool.root().hash, first);
    assert_eq!(read_tree(&pool, &first).unwrap().len(), 2);
    assert_sound(&pool, "at the older root");
    let detail = pool.faults()[0].detail.clone();
    assert!(detail.contains("what came after commit 1 may be lost"), "{detail}");
    drop(pool);
    damage_slot(&disk, "root.0");
    damage_slot(&disk, "root.1");
    remove_spares(&disk);
    assert!(matches!(open(&disk), Err(Error::DamagedStructure { what: "root", .. })));
}

#[test]
fn unknown_formats_and_missing_pools_are_refused() {
    let disk = SimDisk::new(1);
    assert_eq!(open(&disk).unwrap_err(), Error::NoPool);
    let pool = create(&disk);
    assert_eq!(open(&disk).unwrap_err(), Error::InUse);
    let message = offshoot_types::Failure::from(open(&disk).unwrap_err()).message;
    assert_eq!(message, "the pool is in use by another engine");
    drop(pool);
    let label = disk.content("label").unwrap();
    let mut changed = offshoot_format::label::Label::decode(&label).unwrap();
    changed.features = 1 << 40;
    disk.open("label").unwrap().write_at(0, &changed.encode()).unwrap();
    assert!(matches!(open(&disk), Err(Error::UnknownFormat(_))));
    changed.features = 0;
    changed.version = 9;
    disk.open("label").unwrap().write_at(0, &changed.encode()).unwrap();
    assert!(matches!(open(&disk), Err(Error::UnknownFormat(why)) if why.contains("version 9")));
    disk.open("label").unwrap().write_at(0, &label).unwrap();
    open(&disk).unwrap();
    disk.flip_bit("label", 25, 0);
    assert!(matches!(open(&disk), Err(Error::DamagedStructure { what: "label", .. })));
}

#[test]
fn a_missing_or_short_segment_is_a_fault_not_a_refusal() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let root = commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    drop(pool);
    let (path, bytes) = only_segment(&disk);
    disk.open(&path).unwrap().set_len(bytes.len() as u64 / 2).unwrap();
    let pool = open(&disk).unwrap();
    assert_eq!(pool.faults().len(), 1);
    assert!(matches!(read_tree(&pool, &root), Err(Error::Damaged { .. })));
    // New blocks go elsewhere and are fine.
    let second = commit_tree(&pool, 2, &[7, 8]).unwrap();
    assert_eq!(read_tree(&pool, &second).unwrap().len(), 2);
    drop(pool);
    let pool = open(&disk).unwrap();
    assert_eq!(read_tree(&pool, &second).unwrap().len(), 2);
}

#[test]
fn a_creation_that_was_cut_off_can_be_repeated() {
    for at in 1..30 {
        let disk = SimDisk::new(at);
        disk.crash_after(at);
        let created = Pool::create(&*disk, &options()).is_ok();
        disk.crash();
        match Pool::create(&*disk, &options()) {
            Ok(()) => assert!(!created, "a finished creation is durable"),
            Err(error) => assert_eq!(error, Error::Exists),
        }
        let pool = open(&disk).unwrap();
        commit_tree(&pool, 1, &[1]).unwrap();
    }
}

#[test]
fn commits_of_many_threads_are_serialised_and_sound() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let step = parking_lot::Mutex::new(vec![BlockHash::ZERO; 4]);
    std::thread::scope(|scope| {
        for slot in 0..4usize {
            let (pool, step) = (&pool, &step);
            scope.spawn(move || {
                let mut random = Random(slot as u64);
                for round in 0..40u32 {
                    let transaction = pool.begin();
                    let numbers: Vec<u64> = (0..30).map(|_| random.below(100)).collect();
                    let tree = write_tree(&transaction, slot as u32 * 1000 + round, &numbers);
                    let tree = tree.unwrap();
                    if round % 5 == 4 {
                        continue; // an abort
                    }
                    {
                        let mut trees = step.lock();
                        trees[slot] = tree;
                        let root = transaction.write_node(&node(7, &trees)).unwrap();
                        pool.commit(transaction, root, b"").unwrap();
                    }
                    let pin = pool.pin(&tree);
                    if let Ok(pin) = pin {
                        assert_eq!(read_tree(pool, &pin.hash()).unwrap().len(), 30);
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..100 {
                pool.reclaim_step().unwrap();
                pool.clear_cache();
            }
        });
    });
    reclaim(&pool);
    assert_sound(&pool, "after all threads");
    assert_eq!(read_tree(&pool, &pool.root().hash).unwrap().len(), 120);
    assert_eq!(pool.faults(), []);
    drop(pool);
    let pool: Arc<Pool> = open(&disk).unwrap();
    assert_sound(&pool, "reopened");
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    reclaim(&pool);
    assert_eq!((pool.stats().live, pool.stats().segments), (0, 0));
}

#[test]
fn a_damaged_table_is_rebuilt_from_the_segments() {
    type Damage = fn(&SimDisk, &str);
    let flip: Damage = |disk, path| disk.flip_bit(path, 30, 1);
    let remove: Damage = |disk, path| disk.remove(path).unwrap();
    for damage in [flip, remove] {
        let disk = SimDisk::new(1);
        let pool = create(&disk);
        commit_tree(&pool, 1, &(0..300).collect::<Vec<_>>()).unwrap();
        let transaction = pool.begin();
        let old = pool.root().hash;
        let tree = write_tree(&transaction, 2, &(200..400).collect::<Vec<_>>()).unwrap();
        let root = transaction.write_node(&node(3, &[old, tree, tree])).unwrap();
        pool.commit(transaction, root, b"").unwrap();
        let _ = pool.begin().write_data(&content(9999)).unwrap();
        reclaim(&pool);
        let before = pool.stats();
        drop(pool);
        for name in disk.list("table").unwrap() {
            let path = format!("table/{name}");
            if !disk.content(&path).unwrap().is_empty() {
                damage(&disk, &path);
            }
        }
        let pool = open(&disk).unwrap();
        let after = pool.stats();
        assert_eq!((after.live, after.blocks), (before.live, before.blocks));
        assert_eq!(after.referenced, before.referenced);
        let faults = pool.faults();
        assert!(faults.len() == 1 && faults[0].detail.contains("rebuilt"), "{faults:?}");
        assert_eq!(read_tree(&pool, &root).unwrap().len(), 700);
        assert_sound(&pool, "rebuilt");
        commit_tree(&pool, 4, &(0..50).collect::<Vec<_>>()).unwrap();
        drop(pool);
        let pool = open(&disk).unwrap();
        assert_eq!(read_tree(&pool, &pool.root().hash).unwrap().len(), 50);
        assert_sound(&pool, "rebuilt, written and reopened");
    }
}

#[test]
fn a_rebuild_reports_what_is_nowhere() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let root = commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    let bad = pool.begin().write_data(&content(2)).unwrap();
    drop(pool);
    let (path, bytes) = only_segment(&disk);
    disk.flip_bit(&path, find(&bytes, &bad) as u64, 1);
    let log = format!("table/{}", disk.list("table").unwrap()[0]);
    disk.flip_bit(&log, 5, 1);
    let pool = open(&disk).unwrap();
    let damaged: Vec<BlockHash> = pool.faults().iter().map(|fault| fault.hash).collect();
    assert_eq!(damaged, [BlockHash::ZERO, bad], "the table, and the block");
    assert!(matches!(read_tree(&pool, &root), Err(Error::Damaged { hash, .. }) if hash == bad));
    assert_eq!(pool.stats().blocks, 3);
    drop(pool);
    let pool = open(&disk).unwrap();
    assert_eq!(pool.faults().iter().map(|fault| fault.hash).collect::<Vec<_>>(), [bad], "still");
}

/// Damages a block's stored content, and has the pool notice.
fn damage(disk: &SimDisk, pool: &Pool, hash: &BlockHash) {
    let (path, bytes) = only_segment(disk);
    disk.flip_bit(&path, find(&bytes, hash) as u64 + 3, 1);
    pool.clear_cache();
    assert!(matches!(pool.read(hash, 0), Err(Error::Damaged { .. })));
    assert_eq!(pool.faults().len(), 1);
}

#[test]
fn a_damaged_block_that_is_written_again_is_healed() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let root = commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    let bad = pool.begin().write_data(&content(2)).unwrap();
    damage(&disk, &pool, &bad);
    // Data that comes again, as a new backup brings it; the transaction itself may be dropped.
    assert_eq!(pool.begin().write_data(&content(2)).unwrap(), bad);
    assert_eq!(pool.faults(), []);
    // A node, too.
    damage(&disk, &pool, &root);
    commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    assert_eq!(pool.faults(), []);
    pool.clear_cache();
    assert_eq!(read_tree(&pool, &root).unwrap().len(), 3);
    assert_sound(&pool, "healed");
    drop(pool);
    disk.crash();
    let pool = open(&disk).unwrap();
    assert_eq!(read_tree(&pool, &root).unwrap().len(), 3, "durably");
    assert_eq!(scrub(&pool).damaged, 0);
    assert_sound(&pool, "healed and reopened");
}

#[test]
fn a_scrub_heals_from_the_cache_and_forgets_what_is_sound_again() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let root = commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    let bad = pool.begin().write_data(&content(2)).unwrap();
    let (path, bytes) = only_segment(&disk);
    let at = find(&bytes, &bad) as u64 + 3;
    read_tree(&pool, &root).unwrap();
    disk.flip_bit(&path, at, 1);
    assert_eq!(scrub(&pool).damaged, 0);
    assert_eq!(pool.faults(), []);
    pool.clear_cache();
    assert_eq!(*pool.read(&bad, 0).unwrap(), content(2)[..]);
    // Deleting a block also removes its fault.
    let other = pool.begin().write_data(&content(3)).unwrap();
    damage(&disk, &pool, &other);
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    reclaim(&pool);
    assert_eq!(pool.faults(), []);
}
