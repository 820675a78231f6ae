//! Writing, sharing, reading and giving back blocks.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_os::SystemClock;
use offshoot_os::disk::LinuxDisk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{Error, Pool, PoolOptions};
use offshoot_types::{BlockHash, Txg};
use std::sync::Arc;
use testpool::*;

fn files(disk: &SimDisk) -> u64 {
    disk.used()
}

#[test]
fn a_new_pool_is_empty_and_a_commit_survives_reopening() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    assert_eq!(pool.root().txg, Txg(0));
    assert!(pool.root().hash.is_zero());
    let root = commit_tree(&pool, 7, &[1, 2, 3]).unwrap();
    assert_sound(&pool, "after the commit");
    let expected: Vec<Vec<u8>> = [1, 2, 3].map(content).to_vec();
    assert_eq!(read_tree(&pool, &root).unwrap(), expected);
    drop(pool);
    let pool = open(&disk).unwrap();
    assert_eq!((pool.root().txg, pool.root().hash), (Txg(1), root));
    assert_eq!(pool.root().extra, 7u32.to_le_bytes());
    assert_eq!(read_tree(&pool, &root).unwrap(), expected);
    assert_sound(&pool, "after reopening");
}

#[test]
fn works_on_a_real_directory_with_the_background_thread() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(LinuxDisk::new(dir.path().join("pool")).unwrap());
    let options = PoolOptions { background: true, ..options() };
    Pool::create(&*disk, &options).unwrap();
    let open = || Pool::open(disk.clone(), &options, Arc::new(Nodes), Arc::new(SystemClock));
    assert_eq!(Pool::create(&*disk, &options).unwrap_err(), Error::Exists);
    let pool = open().unwrap();
    assert_eq!(open().unwrap_err(), Error::InUse);
    let mut root = BlockHash::ZERO;
    for salt in 0..30 {
        let numbers: Vec<u64> = (0..100).map(|i| u64::from(salt) * 10 + i).collect();
        root = commit_tree(&pool, salt, &numbers).unwrap();
    }
    pool.close();
    assert!(matches!(commit_tree(&pool, 1, &[1]), Err(Error::Failed(_))));
    drop(pool);
    let pool = open().unwrap();
    assert_eq!(pool.root().hash, root);
    let expected: Vec<Vec<u8>> = (290..390).map(content).collect();
    assert_eq!(read_tree(&pool, &root).unwrap(), expected);
    assert_sound(&pool, "after reopening");
    let report = scrub(&pool);
    assert_eq!((report.damaged, report.blocks), (0, 101));
}

#[test]
fn identical_blocks_are_stored_once_and_zeros_not_at_all() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    assert_eq!(transaction.write_data(&[0; 8192]).unwrap(), BlockHash::ZERO);
    let first = transaction.write_data(&content(1)).unwrap();
    assert_eq!(transaction.write_data(&content(1)).unwrap(), first);
    let inner = transaction.write_node(&node(1, &[first, BlockHash::ZERO, first])).unwrap();
    let root = transaction.write_node(&node(2, &[inner, first])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let stats = pool.stats();
    assert_eq!((stats.blocks, stats.nodes, stats.zero_saved), (3, 2, 8192));
    assert_eq!(stats.referenced, 3 * 2048, "three references to one data block");
    assert_eq!(stats.dedup_saved, 2048);
    let live = stats.live;
    // A second transaction finds it too, even while a third has not committed.
    let (second, third) = (pool.begin(), pool.begin());
    assert_eq!(second.write_data(&content(1)).unwrap(), first);
    let shared = third.write_data(&content(2)).unwrap();
    assert_eq!(second.write_data(&content(2)).unwrap(), shared);
    let inner2 = second.write_node(&node(3, &[first, shared, root])).unwrap();
    drop(third);
    pool.commit(second, inner2, b"").unwrap();
    assert_sound(&pool, "after an abort of the block's first writer");
    assert_eq!(*pool.read(&shared, 0).unwrap(), content(2)[..]);
    assert_eq!(pool.stats().blocks, 5);
    assert!(pool.stats().live > live);
    drop(pool);
    assert_sound(&open(&disk).unwrap(), "reopened");
}

#[test]
fn a_data_block_never_passes_for_a_node() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let child = transaction.write_data(&content(1)).unwrap();
    let bytes = node(1, &[child]);
    let as_data = transaction.write_data(&bytes).unwrap();
    let as_node = transaction.write_node(&bytes).unwrap();
    assert_ne!(as_data, as_node);
    assert!(matches!(transaction.write_node(b"no node"), Err(Error::Decode(_))));
    let stranger = BlockHash([9; 32]);
    let missing = transaction.write_node(&node(1, &[stranger]));
    assert_eq!(missing, Err(Error::Missing(stranger)));
    assert!(matches!(transaction.write_data(&[1; 65_537]), Err(Error::TooLarge { .. })));
    let root = transaction.write_node(&node(2, &[as_data, as_node])).unwrap();
    let long = pool.commit(pool.begin(), BlockHash::ZERO, &[0; 2049]);
    assert!(matches!(long, Err(Error::TooLarge { .. })));
    pool.commit(transaction, root, b"").unwrap();
    assert_sound(&pool, "with a node's bytes stored as data");
}

#[test]
fn compression_is_used_where_it_helps() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let text = b"a line of a log that repeats itself\n".repeat(227);
    let noise = Random(3).bytes(8192);
    let children = [&text[..8172], &noise].map(|data| transaction.write_data(data).unwrap());
    let root = transaction.write_node(&node(1, &children)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let stats = pool.stats();
    assert!(stats.live < 8192 + 1024, "the text shrinks: {} bytes are live", stats.live);
    assert!(stats.live > 8192, "the noise does not");
    assert!(stats.compression_ratio > 1.7);
    pool.clear_cache();
    assert_eq!(read_tree(&pool, &root).unwrap(), [text[..8172].to_vec(), noise]);
}

#[test]
fn an_abort_leaves_nothing() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_tree(&pool, 1, &[1, 2]).unwrap();
    let before = pool.stats();
    let transaction = pool.begin();
    let root = write_tree(&transaction, 9, &(10..500).collect::<Vec<_>>()).unwrap();
    drop(transaction);
    assert_eq!(pool.read(&root, 0), Err(Error::Missing(root)));
    assert_eq!((pool.stats().live, pool.stats().blocks), (before.live, before.blocks));
    assert_sound(&pool, "after an abort");
    reclaim(&pool);
    assert!(pool.stats().used < before.used + 300_000, "the space is given back");
    // Blocks of a transaction that its root does not reach are not kept either.
    let transaction = pool.begin();
    write_tree(&transaction, 9, &(10..50).collect::<Vec<_>>()).unwrap();
    let root = write_tree(&transaction, 10, &[1, 2]).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    assert_eq!(pool.stats().blocks, 3);
    assert_sound(&pool, "after a commit with stray blocks");
}

#[test]
fn deletion_returns_the_pool_to_empty() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    // Three levels, 4,000 blocks: several segments, more dead nodes than one commit releases.
    let mut parents = Vec::new();
    for group in 0..1000u64 {
        let numbers: Vec<u64> = (group * 4..group * 4 + 4).collect();
        parents.push(write_tree(&transaction, group as u32, &numbers).unwrap());
    }
    let root = transaction.write_node(&node(0, &parents)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    assert!(pool.stats().segments > 10);
    assert_sound(&pool, "full");
    let full = files(&disk);
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    assert!(pool.stats().reclaim_queue > 0, "the rest is left to the background");
    assert_sound(&pool, "with dead nodes queued");
    drop(pool);
    let pool = open(&disk).unwrap();
    assert!(pool.stats().reclaim_queue > 0, "the queue survives");
    assert_sound(&pool, "with dead nodes queued, reopened");
    reclaim(&pool);
    let stats = pool.stats();
    assert_eq!((stats.live, stats.blocks, stats.segments, stats.reclaim_queue), (0, 0, 0, 0));
    assert_sound(&pool, "empty again");
    // What is left is the log of the table; a checkpoint drops that.
    assert!(files(&disk) * 10 < full, "{} bytes are left of {full}", files(&disk));
    drop(pool);
    assert_eq!(open(&disk).unwrap().stats().blocks, 0);
}

#[test]
fn exclusive_bytes_are_what_deletion_gives_back() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let shared = write_tree(&transaction, 1, &[1, 2, 3]).unwrap();
    let block = transaction.write_data(&content(9)).unwrap();
    let one = transaction.write_node(&node(2, &[shared, block, block])).unwrap();
    let two = transaction.write_node(&node(3, &[shared])).unwrap();
    let root = transaction.write_node(&node(4, &[one, two])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let (live, one_alone) = (pool.stats().live, pool.freed_by(&[one]).unwrap());
    assert_eq!(pool.freed_by(&[root]).unwrap(), live);
    let transaction = pool.begin();
    let root = transaction.write_node(&node(4, &[two])).unwrap();
    let shrink = 32 - 32; // both roots round to the same room below
    pool.commit(transaction, root, b"").unwrap();
    reclaim(&pool);
    let given_back = live - pool.stats().live;
    assert!(given_back.abs_diff(one_alone) <= 40 + shrink, "{given_back} against {one_alone}");
    assert_sound(&pool, "after the deletion");
}

#[test]
fn a_pin_keeps_a_tree_readable() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let old = commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    let pin = pool.pin(&old).unwrap();
    commit_tree(&pool, 2, &[3, 4, 5]).unwrap();
    reclaim(&pool);
    pool.clear_cache();
    assert_eq!(read_tree(&pool, &old).unwrap(), [1, 2, 3].map(content).to_vec());
    assert_sound(&pool, "with a pinned old root");
    // Sharing a pinned tree brings it back to life.
    let transaction = pool.begin();
    let root = transaction.write_node(&node(3, &[old])).unwrap();
    drop(pin);
    pool.commit(transaction, root, b"").unwrap();
    reclaim(&pool);
    assert_eq!(read_tree(&pool, &root).unwrap(), [1, 2, 3].map(content).to_vec());
    assert_sound(&pool, "with the old tree shared");
    let pin = pool.pin(&old).unwrap();
    pool.commit(pool.begin(), BlockHash::ZERO, b"").unwrap();
    reclaim(&pool);
    assert_eq!(pool.stats().blocks, 3, "the pinned node's children");
    assert_eq!(read_tree(&pool, &old).unwrap().len(), 3);
    drop(pin);
    reclaim(&pool);
    assert_eq!(pool.read(&old, 0), Err(Error::Missing(old)));
    assert_eq!(pool.stats().segments, 0);
    assert_eq!(pool.pin(&old).err(), Some(Error::Missing(old)));
}

#[test]
fn compaction_moves_blocks_and_keeps_them_readable() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let all: Vec<u64> = (0..2000).collect();
    commit_tree(&pool, 1, &all[..1000]).unwrap();
    let transaction = pool.begin();
    let first = pool.root().hash;
    let second = write_tree(&transaction, 2, &all[1000..]).unwrap();
    let root = transaction.write_node(&node(3, &[first, second])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    // Every 15th block stays.
    let kept: Vec<u64> = all.iter().copied().filter(|number| number % 15 == 0).collect();
    let root = commit_tree(&pool, 4, &kept).unwrap();
    let before = pool.stats();
    reclaim(&pool);
    let after = pool.stats();
    assert!(after.segments * 2 < before.segments, "{} of {}", after.segments, before.segments);
    assert!(after.used < before.used / 2, "{} of {}", after.used, before.used);
    assert!(after.used < after.live * 2 + 300_000);
    let expected: Vec<Vec<u8>> = kept.iter().map(|number| content(*number)).collect();
    pool.clear_cache();
    assert_eq!(read_tree(&pool, &root).unwrap(), expected);
    assert_sound(&pool, "compacted");
    drop(pool);
    let pool = open(&disk).unwrap();
    assert_eq!(read_tree(&pool, &root).unwrap(), expected);
    assert_sound(&pool, "compacted and reopened");
    assert_eq!(pool.faults(), []);
}

#[test]
fn compaction_leaves_what_a_running_transaction_wrote() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let running = pool.begin();
    let mut blocks = Vec::new();
    for number in 0..50 {
        blocks.push(running.write_data(&content(number)).unwrap());
        // What is between the blocks goes, and with it most of the segments.
        let aborted = pool.begin();
        write_tree(&aborted, 0, &(number * 100 + 1000..number * 100 + 1020).collect::<Vec<_>>())
            .unwrap();
    }
    commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    reclaim(&pool);
    assert!(!pool.reclaim_step().unwrap(), "it does not try again and again");
    let root = running.write_node(&node(2, &blocks)).unwrap();
    pool.commit(running, root, b"").unwrap();
    pool.clear_cache();
    assert_eq!(read_tree(&pool, &root).unwrap(), (0..50).map(content).collect::<Vec<_>>());
    reclaim(&pool);
    assert_sound(&pool, "after the commit");
    let stats = pool.stats();
    assert!(stats.compacted > 0 && stats.used < 3 * stats.live + 300_000, "{stats:?}");
}

#[test]
fn a_prefetch_fills_the_cache() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let numbers: Vec<u64> = (0..300).collect();
    let root = commit_tree(&pool, 1, &numbers).unwrap();
    pool.clear_cache();
    let transaction = pool.begin();
    let hashes: Vec<BlockHash> =
        numbers.iter().map(|number| transaction.write_data(&content(*number)).unwrap()).collect();
    pool.prefetch(&hashes);
    for (hash, number) in hashes.iter().zip(numbers) {
        assert_eq!(*pool.read(hash, 5).unwrap(), content(number)[..]);
    }
    let stats = pool.stats().cache;
    let of_five = stats.owners.iter().find(|owner| owner.owner == 5).unwrap();
    assert_eq!((of_five.hits, of_five.misses), (300, 0));
    pool.read(&root, 6).unwrap();
    assert_eq!(pool.stats().cache.misses, 1);
}

/// The bound on one step once cut off dead nodes that had left the queue: their children's space came back
/// only with the next opening.
#[test]
fn every_dead_node_of_a_deep_tree_is_released() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let mut salt = 0;
    let mut next = || {
        salt += 1;
        salt
    };
    let mut tops = Vec::new();
    for _ in 0..900 {
        let lower: Vec<BlockHash> = (0..3)
            .map(|_| {
                let number = next();
                write_tree(&transaction, number, &[u64::from(number)]).unwrap()
            })
            .collect();
        tops.push(transaction.write_node(&node(next(), &lower)).unwrap());
    }
    let root = transaction.write_node(&node(next(), &tops)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    reclaim(&pool);
    let stats = pool.stats();
    assert_eq!((stats.blocks, stats.live, stats.reclaim_queue), (0, 0, 0));
    assert_sound(&pool, "after the deletion");
    // The table's files shrink, too, without waiting for more logs.
    assert!(files(&disk) < 64 << 10, "{} bytes are left", files(&disk));
}

/// Two references to a tree are two: it is reached once, and freed when both are gone.
#[test]
fn a_ledger_counts_references_and_knows_what_is_dead_already() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let shared = write_tree(&transaction, 1, &[1, 2, 3]).unwrap();
    let own: Vec<BlockHash> = (0..600)
        .map(|i| write_tree(&transaction, 10 + i, &[1, 100 + u64::from(i)]).unwrap())
        .collect();
    let big = transaction.write_node(&node(2, &own)).unwrap();
    let other = transaction.write_node(&node(3, &[shared, shared])).unwrap();
    let root = transaction.write_node(&node(4, &[big, other, other])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let live = pool.stats().live;
    assert!(pool.freed_by(&[other]).unwrap() == 0, "one of two references");
    let freed = pool.freed_by(&[other, other]).unwrap();
    let mut reach = pool.reach();
    reach.add(&root).unwrap();
    assert_eq!(reach.bytes(), live);
    reach.add(&other).unwrap();
    reach.remove(&root).unwrap();
    let of_other = reach.bytes();
    assert!(freed < of_other && of_other < live, "block 1 is in both: {freed}, {of_other}");
    // Block 1 belongs only to the other tree as soon as the big one is deleted, even while that waits for
    // reclaim.
    let transaction = pool.begin();
    let root = transaction.write_node(&node(4, &[other, other])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    assert!(pool.stats().reclaim_queue > 0, "the test means to look before the space is back");
    assert_eq!(pool.freed_by(&[other, other]).unwrap(), of_other);
    reclaim(&pool);
    assert_eq!(pool.freed_by(&[other, other]).unwrap(), of_other);
    assert_eq!(pool.freed_by(&[root]).unwrap(), pool.stats().live);
}
