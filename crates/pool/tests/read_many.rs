//! Reading many blocks at a time.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_os::Clock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{Error, Pool};
use offshoot_types::BlockHash;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use testpool::*;

/// Blocks so far apart on disk that each takes its own read.
fn scattered(disk: &Arc<SimDisk>, count: usize) -> (Arc<Pool>, Vec<BlockHash>) {
    let pool = create(disk);
    let transaction = pool.begin();
    let mut all = Vec::new();
    for number in 0..count as u64 * 6 {
        all.push(transaction.write_data(&Random(number).bytes(8192)).unwrap());
    }
    let root = transaction.write_node(&node(1, &all)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    pool.clear_cache();
    (pool, all.into_iter().step_by(6).collect())
}

fn expected(index: usize) -> Vec<u8> {
    Random(index as u64 * 6).bytes(8192)
}

#[test]
fn scattered_blocks_are_offered_to_others_and_handed_out_once() {
    let disk = SimDisk::new(1);
    let (pool, mut hashes) = scattered(&disk, 60);
    hashes.insert(7, BlockHash::ZERO);
    let shares = RefCell::new(Vec::new());
    let share = |blocks: Vec<BlockHash>| shares.borrow_mut().push(blocks);
    let mut taken = BTreeSet::new();
    let of_block = |index: usize| index - usize::from(index > 7);
    let mut read = || {
        pool.read_many(&hashes, 5, &share, |index, block| {
            assert_eq!(*block, expected(of_block(index))[..]);
            assert!(taken.insert(index), "once");
        })
        .unwrap();
        assert_eq!(taken.len(), 60, "all but the hole");
        taken.clear();
    };
    read();
    let offered: Vec<BlockHash> = shares.take().concat();
    let distinct: BTreeSet<&BlockHash> = offered.iter().collect();
    assert!(offered.len() >= 30 && distinct.len() == offered.len(), "{} offered", offered.len());
    assert!(offered.iter().all(|hash| hashes.contains(hash) && *hash != hashes[0]));
    read();
    assert!(shares.take().is_empty(), "what is in memory needs no reading");
    let cache = pool.stats().cache;
    assert_eq!((cache.hits, cache.misses), (60, 60));
}

#[test]
fn blocks_near_each_other_are_not_offered() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let hashes: Vec<BlockHash> =
        (0..60).map(|number| transaction.write_data(&content(number)).unwrap()).collect();
    let root = transaction.write_node(&node(1, &hashes)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    pool.clear_cache();
    let share = |blocks: Vec<BlockHash>| panic!("{} blocks of one place", blocks.len());
    let mut count = 0;
    pool.read_many(&hashes, 5, &share, |_, _| count += 1).unwrap();
    assert_eq!(count, 60);
}

/// Each waits for blocks that another one loads, and none for itself.
#[test]
fn many_read_the_same_blocks_at_the_same_time() {
    let disk = SimDisk::new(1);
    let (pool, hashes) = scattered(&disk, 60);
    for round in 0..20 {
        pool.clear_cache();
        std::thread::scope(|scope| {
            for reader in 0..4 {
                let (pool, mut order) = (&pool, (0..hashes.len()).collect::<Vec<_>>());
                order.rotate_left((reader * 15 + round) % 60);
                let wanted: Vec<BlockHash> = order.iter().map(|index| hashes[*index]).collect();
                scope.spawn(move || {
                    // As helpers would, but at once.
                    let share = |blocks: Vec<BlockHash>| pool.prefetch(&blocks);
                    let mut count = 0;
                    pool.read_many(&wanted, reader as u64, &share, |index, block| {
                        assert_eq!(*block, expected(order[index])[..]);
                        count += 1;
                    })
                    .unwrap();
                    assert_eq!(count, 60);
                });
            }
        });
    }
}

/// A place within the bytes of a block that is stored as it is.
fn inside(disk: &SimDisk, content: &[u8]) -> (String, u64) {
    let names = disk.list("segments").unwrap();
    let found = names.iter().find_map(|name| {
        let path = format!("segments/{name}");
        let at = disk.content(&path)?.windows(32).position(|window| *window == content[..32])?;
        Some((path, at as u64 + 100))
    });
    found.unwrap()
}

#[test]
fn a_damaged_block_among_many_is_an_error_and_a_fault() {
    let disk = SimDisk::new(1);
    let (pool, hashes) = scattered(&disk, 20);
    let bad = hashes[11];
    let (path, at) = inside(&disk, &expected(11));
    disk.flip_bit(&path, at, 3);
    let read = || {
        pool.read_many(&hashes, 5, &|_| {}, |index, block| {
            assert_eq!(*block, expected(index)[..]);
        })
    };
    assert!(matches!(read(), Err(Error::Damaged { hash, .. }) if hash == bad));
    assert_eq!(pool.faults().iter().map(|fault| fault.hash).collect::<Vec<_>>(), [bad]);
    disk.flip_bit(&path, at, 3);
    read().unwrap();
}

/// A clock by which everything takes two milliseconds.
#[derive(Default)]
struct Slow(AtomicU64);

impl Clock for Slow {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(2 * self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) {}
}

#[test]
fn a_slow_device_is_asked_for_a_block_with_its_neighbours() {
    let disk = SimDisk::new(1);
    let (pool, hashes) = scattered(&disk, 60);
    assert!(!pool.is_worth_its_neighbours(&hashes[0], false), "nothing is known of the device");
    drop(pool);
    let clock = Arc::new(Slow::default());
    let pool = Pool::open(disk.clone(), &options(), Arc::new(Nodes), clock).unwrap();
    for hash in &hashes[40..50] {
        pool.read(hash, 5).unwrap();
    }
    assert!(pool.is_worth_its_neighbours(&hashes[1], false));
    assert!(!pool.is_worth_its_neighbours(&hashes[41], true), "it is in memory");
    assert!(pool.misses(&hashes[48..52]), "two of them are not");
    assert!(!pool.is_worth_its_neighbours(&BlockHash::ZERO, true));
    // All blocks of the file, of which `hashes` are every sixth.
    let all: Vec<BlockHash> = (0..24)
        .map(|number| BlockHash(*blake3::hash(&Random(number).bytes(8192)).as_bytes()))
        .collect();
    let (path, at) = inside(&disk, &Random(7).bytes(8192));
    disk.flip_bit(&path, at, 3);
    let mut taken = Vec::new();
    let around = |hash: &BlockHash, taken: &mut Vec<u8>| {
        pool.read_around(hash, &all[..16], 5, &mut |content| taken.extend_from_slice(content))
    };
    assert!(around(&all[6], &mut taken));
    assert_eq!(taken, expected(1));
    let misses = pool.stats().cache.misses;
    for (number, hash) in all[..16].iter().enumerate().filter(|(number, _)| *number != 7) {
        assert_eq!(*pool.read(hash, 5).unwrap(), Random(number as u64).bytes(8192)[..]);
    }
    assert_eq!(pool.stats().cache.misses, misses, "all of them came with it");
    assert!(!around(&all[7], &mut taken), "damaged: to be read by itself");
    assert!(!around(&all[20], &mut taken), "not among those near");
}
