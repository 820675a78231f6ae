//! Scrubbing: all is read, from where it was left, and damage is healed where a sound copy is; and what
//! becomes of blocks that are nowhere.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_format::segment::{FRAME_LEN, Frame};
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_os::{Clock, SystemClock};
use offshoot_pool::{Error, Pool, ScrubState};
use offshoot_types::BlockHash;
use std::ops::ControlFlow;
use std::sync::Arc;
use testpool::*;

/// Every place where a block's frame is: the segment's path and the byte its stored content begins at.
fn places(disk: &SimDisk, hash: &BlockHash) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for name in disk.list("segments").unwrap() {
        let path = format!("segments/{name}");
        let content = disk.content(&path).unwrap();
        let frames = content.windows(FRAME_LEN as usize).enumerate();
        let of = frames.filter(|(_, bytes)| Frame::decode(bytes).is_ok_and(|f| f.hash == *hash));
        found.extend(of.map(|(at, _)| (path.clone(), at as u64 + u64::from(FRAME_LEN))));
    }
    found
}

fn flip(disk: &SimDisk, place: &(String, u64)) {
    disk.flip_bit(&place.0, place.1 + 3, 1);
}

/// A pool of several segments; some of its blocks are gone again.
fn several_segments(disk: &Arc<SimDisk>) -> Arc<Pool> {
    let pool = create(disk);
    commit_tree(&pool, 1, &(0..1000).collect::<Vec<_>>()).unwrap();
    commit_tree(&pool, 2, &(300..1500).collect::<Vec<_>>()).unwrap();
    reclaim(&pool);
    assert!(disk.list("segments").unwrap().len() > 4);
    pool
}

#[test]
fn a_scrub_goes_on_where_it_was_left_and_reads_each_block_once() {
    let disk = SimDisk::new(1);
    let mut pool = several_segments(&disk);
    let whole = scrub(&pool);
    assert_eq!((whole.blocks, whole.bytes), (pool.stats().blocks, pool.stats().live));
    assert_eq!((whole.damaged, whole.total, whole.finished), (0, whole.bytes, true));
    let bad = pool.begin().write_data(&content(700)).unwrap();
    flip(&disk, &places(&disk, &bad)[0]);
    // Stopped after each read, and the pool closed, like an engine that is killed repeatedly.
    let (mut state, mut times) = (ScrubState::default(), 0);
    while !state.finished {
        drop(pool);
        pool = open(&disk).unwrap();
        let tell = &mut |now: &ScrubState| {
            assert_eq!(now.total, whole.total);
            ControlFlow::Break(())
        };
        let before = state.bytes;
        state = pool.scrub(state, u64::MAX, tell).unwrap();
        assert!(state.bytes > before || state.finished || state.bytes == state.total);
        times += 1;
        if state.bytes == state.total && !state.finished {
            // The search for a sound copy is not broken off for ever.
            state = pool.scrub(state, u64::MAX, &mut |_| ControlFlow::Continue(())).unwrap();
        }
    }
    assert!(times > 5, "{times}");
    assert_eq!((state.blocks, state.bytes, state.damaged), (whole.blocks, whole.bytes, 1));
    assert_eq!(pool.scrub(state.clone(), u64::MAX, &mut |_| ControlFlow::Continue(())), Ok(state));
}

#[test]
fn what_is_written_and_moved_meanwhile_neither_hides_nor_prolongs() {
    let disk = SimDisk::new(1);
    let pool = several_segments(&disk);
    let transaction = pool.begin();
    let kept = write_tree(&transaction, 3, &(1390..1410).collect::<Vec<_>>()).unwrap();
    let root = transaction.write_node(&node(4, &[pool.root().hash, kept])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let bad = pool.begin().write_data(&content(1400)).unwrap();
    flip(&disk, &places(&disk, &bad)[0]);
    pool.clear_cache();
    let mut salt = 10;
    let state = pool.scrub(ScrubState::default(), u64::MAX, &mut |_| {
        // Most is removed and as much added; compaction moves what stays.
        salt += 1;
        assert!(salt < 100, "it comes to its end");
        let more = u64::from(salt) * 1000;
        let transaction = pool.begin();
        let tree = write_tree(&transaction, salt, &(more..more + 200).collect::<Vec<_>>()).unwrap();
        let root = transaction.write_node(&node(salt, &[kept, tree])).unwrap();
        pool.commit(transaction, root, b"").unwrap();
        reclaim(&pool);
        ControlFlow::Continue(())
    });
    assert!(state.unwrap().finished);
    assert_eq!(pool.faults().iter().map(|fault| fault.hash).collect::<Vec<_>>(), [bad]);
}

#[test]
fn a_rate_is_kept() {
    let disk = SimDisk::new(1);
    let pool = several_segments(&disk);
    let total = pool.stats().live;
    let begun = SystemClock.elapsed();
    pool.scrub(ScrubState::default(), total * 4, &mut |_| ControlFlow::Continue(())).unwrap();
    let took = SystemClock.elapsed() - begun;
    assert!(took.as_millis() >= 240, "{took:?}");
}

#[test]
fn a_copy_that_no_block_uses_any_more_heals() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let root = commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    let bad = pool.begin().write_data(&content(2)).unwrap();
    let first = places(&disk, &bad)[0].clone();
    flip(&disk, &first);
    pool.clear_cache();
    assert_eq!(scrub(&pool).damaged, 1);
    // It comes again; then what was damaged is dead, and, read from another platter, sound.
    let _ = pool.begin().write_data(&content(2)).unwrap();
    assert_eq!(pool.faults(), []);
    flip(&disk, &first);
    let second = places(&disk, &bad).into_iter().find(|place| *place != first).unwrap();
    flip(&disk, &second);
    pool.clear_cache();
    let state = scrub(&pool);
    assert_eq!((state.damaged, state.healed, state.finished), (0, 1, true));
    assert_eq!(pool.faults(), []);
    drop(pool);
    disk.crash();
    let pool = open(&disk).unwrap();
    assert_eq!(read_tree(&pool, &root).unwrap().len(), 3);
    assert_sound(&pool, "healed from a dead copy");
}

#[test]
fn a_damaged_frame_around_a_sound_block_is_healed() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    let block = pool.begin().write_data(&content(2)).unwrap();
    let (path, content_at) = places(&disk, &block)[0].clone();
    disk.flip_bit(&path, content_at - 5, 2);
    let state = scrub(&pool);
    assert_eq!((state.damaged, state.healed), (0, 1));
    // Rebuilt from the segments alone, the table has it.
    drop(pool);
    for name in disk.list("table").unwrap() {
        disk.remove(&format!("table/{name}")).unwrap();
    }
    let pool = open(&disk).unwrap();
    assert_sound(&pool, "made anew");
    assert_eq!(scrub(&pool).damaged, 0);
}

#[test]
fn damage_is_recalled_and_looked_at_again() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_tree(&pool, 1, &[1, 2, 3]).unwrap();
    let bad = pool.begin().write_data(&content(2)).unwrap();
    let place = places(&disk, &bad)[0].clone();
    flip(&disk, &place);
    drop(pool);
    let pool = open(&disk).unwrap();
    pool.recall_damage(bad);
    pool.recall_damage(BlockHash([7; 32]));
    assert_eq!(pool.faults().len(), 1, "one that is gone is none");
    pool.recheck_damage(&bad).unwrap();
    assert_eq!(pool.faults().len(), 1);
    flip(&disk, &place);
    pool.recheck_damage(&bad).unwrap();
    assert_eq!(pool.faults(), []);
}

/// A pool whose table was rebuilt without `lost`, which was damaged before.
fn without(disk: &Arc<SimDisk>, pool: Arc<Pool>, lost: &BlockHash) -> Arc<Pool> {
    drop(pool);
    places(disk, lost).iter().for_each(|place| flip(disk, place));
    for name in disk.list("table").unwrap() {
        disk.remove(&format!("table/{name}")).unwrap();
    }
    let pool = open(disk).unwrap();
    assert!(pool.faults().iter().any(|fault| fault.hash == *lost));
    assert!(matches!(pool.read(lost, 0), Err(Error::Damaged { .. })));
    pool
}

/// Commits a root over trees that are there.
fn commit_root(pool: &Arc<Pool>, salt: u32, trees: &[BlockHash]) {
    let transaction = pool.begin();
    let root = transaction.write_node(&node(salt, trees)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    reclaim(pool);
}

#[test]
fn a_lost_block_keeps_its_count_until_it_comes_again() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let trees = [[1, 2], [2, 3], [2, 4]]
        .map(|numbers| write_tree(&transaction, numbers[1] as u32, &numbers).unwrap());
    let root = transaction.write_node(&node(9, &trees)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let bad = pool.begin().write_data(&content(2)).unwrap();
    let pool = without(&disk, pool, &bad);
    // One of three that refer to it goes, one more comes, and a restart.
    commit_root(&pool, 10, &trees[1..]);
    let transaction = pool.begin();
    let more = transaction.write_node(&node(5, &[bad, bad])).unwrap();
    let root = transaction.write_node(&node(11, &[trees[1], trees[2], more])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    drop(pool);
    let pool = open(&disk).unwrap();
    assert!(pool.check().unwrap().iter().all(|problem| problem.contains("is lost")));
    // Written and dropped it is lost again; committed it is there.
    let _ = pool.begin().write_data(&content(2)).unwrap();
    assert!(matches!(pool.read(&bad, 0), Err(Error::Damaged { .. })));
    let transaction = pool.begin();
    let last = write_tree(&transaction, 6, &[2, 5]).unwrap();
    let all = [trees[1], trees[2], more, last];
    let root = transaction.write_node(&node(12, &all)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    assert!(!pool.faults().iter().any(|fault| fault.hash == bad));
    assert_sound(&pool, "it came again");
    assert_eq!(read_tree(&pool, &root).unwrap().len(), 8);
    // It goes with the last that refers to it, and not before.
    for left in (0..4).rev() {
        commit_root(&pool, 20 + left as u32, &all[..left]);
        assert_sound(&pool, "one less");
        assert_eq!(pool.read(&bad, 0).is_ok(), left > 0);
    }
    assert_eq!(pool.stats().blocks, 1);
}

#[test]
fn a_lost_node_that_comes_again_brings_its_children() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let lost = write_tree(&transaction, 1, &[1, 2, 3]).unwrap();
    let beside = write_tree(&transaction, 2, &[3, 4]).unwrap();
    let over = transaction.write_node(&node(3, &[lost, beside])).unwrap();
    let root = transaction.write_node(&node(4, &[over, lost])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let pool = without(&disk, pool, &lost);
    assert!(pool.check().unwrap().iter().all(|problem| problem.contains("is lost")));
    let transaction = pool.begin();
    assert_eq!(write_tree(&transaction, 1, &[1, 2, 3]).unwrap(), lost);
    let root = transaction.write_node(&node(5, &[over, lost])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    reclaim(&pool);
    assert_sound(&pool, "the node came again");
    assert_eq!(read_tree(&pool, &root).unwrap().len(), 8);
    drop(pool);
    let pool = open(&disk).unwrap();
    assert_sound(&pool, "reopened");
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    reclaim(&pool);
    assert_eq!((pool.stats().live, pool.stats().blocks), (0, 0));
    assert_sound(&pool, "empty");
}

#[test]
fn a_lost_block_found_meanwhile_is_no_others() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    let transaction = pool.begin();
    let trees = [[1, 2], [2, 3]].map(|numbers| write_tree(&transaction, 7, &numbers).unwrap());
    let root = transaction.write_node(&node(9, &trees)).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    let bad = pool.begin().write_data(&content(2)).unwrap();
    let pool = without(&disk, pool, &bad);
    // While one transaction has it, another's commit takes references away, down to none.
    let transaction = pool.begin();
    let mine = write_tree(&transaction, 8, &[2]).unwrap();
    commit_root(&pool, 10, &trees[1..]);
    commit_root(&pool, 11, &[]);
    let root = transaction.write_node(&node(12, &[mine])).unwrap();
    pool.commit(transaction, root, b"").unwrap();
    reclaim(&pool);
    assert_sound(&pool, "kept by the one");
    assert_eq!(read_tree(&pool, &root).unwrap(), [content(2)]);
}
