use super::*;
use crate::{DecodeError, NodeChildren, Pool, PoolOptions};
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;

/// A node is a list of names.
struct Nodes;

impl NodeChildren for Nodes {
    fn children(&self, node: &[u8]) -> Result<Vec<BlockHash>, DecodeError> {
        Ok(node.chunks_exact(32).filter_map(|hash| hash.try_into().ok()).map(BlockHash).collect())
    }
}

fn pool() -> Arc<Pool> {
    let disk: Arc<dyn Disk> = SimDisk::new(1);
    let options = PoolOptions { background: false, ..PoolOptions::default() };
    Pool::create(&*disk, &options).unwrap();
    Pool::open(disk, &options, Arc::new(Nodes), Arc::new(SystemClock)).unwrap()
}

/// Commits a node with one block, and returns that block's name.
fn commit_one(pool: &Arc<Pool>, content: &[u8]) -> BlockHash {
    let transaction = pool.begin();
    let block = transaction.write_data(content).unwrap();
    let root = transaction.write_node(&block.0).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    block
}

#[test]
#[should_panic(expected = "root 1 after root 1")]
fn a_root_that_is_no_newer_is_not_written() {
    let pool = pool();
    commit_one(&pool, b"content");
    let mut journal = pool.durable.journal();
    let same = journal.root.clone();
    let _ = journal.commit(same, &[]);
}

#[test]
fn a_block_is_durable_once_it_was_flushed() {
    let pool = pool();
    let transaction = pool.begin();
    let block = transaction.write_data(b"content").unwrap();
    let entry = pool.table.get(&block).unwrap();
    assert!(!is_durable(&pool.segments, &entry), "it is in memory");
    pool.flush_segments().unwrap();
    assert!(is_durable(&pool.segments, &entry));
    let later = transaction.write_data(b"later").unwrap();
    assert!(!is_durable(&pool.segments, &pool.table.get(&later).unwrap()));
    assert!(is_durable(&pool.segments, &entry), "what came later does not matter");
}

#[test]
#[should_panic(expected = "is not durable")]
fn what_is_not_durable_is_not_named() {
    let pool = pool();
    let transaction = pool.begin();
    let block = transaction.write_data(b"content").unwrap();
    assert_durable(&pool.segments, &block, &pool.table.get(&block).unwrap());
}

#[test]
#[should_panic(expected = "is to be dropped with 1 references")]
fn what_is_referred_to_is_not_dropped() {
    let pool = pool();
    let block = commit_one(&pool, b"content");
    let entry = pool.table.get(&block).unwrap();
    assert_may_be_dropped(&block, entry.refs, &entry);
}

#[test]
#[should_panic(expected = "a pin is taken away once")]
fn a_pin_is_not_taken_away_twice() {
    let pool = pool();
    let block = commit_one(&pool, b"content");
    pool.unpin(&block);
}

/// As a wrong table on disk could have it.
#[test]
fn a_place_that_is_given_back_twice_costs_neither_the_engine_nor_its_neighbours() {
    let pool = pool();
    let block = commit_one(&pool, b"content");
    let place = pool.table.get(&block).unwrap().place();
    let neighbour = commit_one(&pool, b"what lies beside it");
    pool.segments.release(place);
    pool.segments.release(place);
    assert_eq!(&pool.read(&neighbour, 1).unwrap()[..19], b"what lies beside it");
}

#[test]
fn the_accounts_of_segments_add_up_through_commits_and_aborts() {
    let pool = pool();
    for round in 0..20u8 {
        commit_one(&pool, &[round; 3000]);
        let aborted = pool.begin();
        aborted.write_data(&[round, 1, 2, 3]).unwrap();
        drop(aborted);
        pool.reclaim_step().unwrap();
        assert_accounts(&pool.segments);
    }
}
