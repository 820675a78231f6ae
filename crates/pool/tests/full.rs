//! A device that fills up at any moment: what is refused, what continues, and what deletion brings
//! back.
#![allow(clippy::unwrap_used)]

mod testpool;

use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{Error, Pool, PoolOptions, Purpose};
use offshoot_types::BlockHash;
use std::sync::Arc;
use testpool::*;

const PURPOSES: [Purpose; 5] =
    [Purpose::Growth, Purpose::Rewrite, Purpose::Log, Purpose::Stream, Purpose::Freeing];

/// Makes the root a tree of `count` incompressible blocks.
fn commit_random(
    pool: &Arc<Pool>,
    freeing: bool,
    seed: u64,
    count: u64,
) -> Result<BlockHash, Error> {
    let transaction = if freeing { pool.begin_freeing() } else { pool.begin() };
    let blocks = (0..count).map(|n| transaction.write_data(&Random(seed << 20 | n).bytes(8192)));
    let children = blocks.collect::<Result<Vec<_>, _>>()?;
    let root = transaction.write_node(&node(seed as u32, &children))?;
    pool.commit(transaction, root, b"")?;
    Ok(root)
}

#[test]
fn each_purpose_goes_deeper_into_the_reserve_than_the_one_before() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    for free in [3 << 20, 1 << 20, 700 << 10, 400 << 10, 100 << 10, 0] {
        disk.set_capacity(Some(disk.used() + free));
        let left: Vec<u64> = PURPOSES.iter().map(|purpose| pool.available_now(*purpose)).collect();
        let quarter = 256 << 10;
        let expected = [4, 3, 2, 1, 0].map(|quarters: u64| free.saturating_sub(quarters * quarter));
        assert_eq!(left, expected, "with {free} bytes free");
        assert_eq!(pool.stats().free, left[0]);
        assert_eq!(pool.stats().reserve, 1 << 20);
    }
}

/// Whatever step of a commit, a deletion, reclaim or a checkpoint finds the device full: the pool is
/// as it was or as it should be, stays open, and continues when there is room.
#[test]
fn a_device_filled_before_any_write_harms_nothing() {
    let mut hit = 0;
    for at in 1.. {
        let disk = SimDisk::new(at);
        let pool = create(&disk);
        let mut root = commit_random(&pool, false, 1, 12).unwrap();
        disk.fill_after(at);
        let mut refused = 0;
        for round in 2..8 {
            match commit_random(&pool, round % 2 == 0, round, 12) {
                Ok(new) => root = new,
                Err(Error::Full { .. }) => refused += 1,
                Err(other) => panic!("filled before operation {at}: {other}"),
            }
            match pool.reclaim_step() {
                Ok(_) | Err(Error::Full { .. }) => {}
                Err(other) => panic!("filled before operation {at}: {other}"),
            }
            assert_eq!(pool.root().hash, root);
            pool.clear_cache();
            assert_eq!(read_tree(&pool, &root).unwrap().len(), 12, "filled before {at}");
        }
        assert_sound(&pool, "full");
        disk.set_capacity(None);
        root = commit_random(&pool, false, 9, 50).unwrap();
        reclaim(&pool);
        assert_sound(&pool, "with room again");
        assert!(pool.stats().used < 2 << 20, "what failed was given back: {:?}", pool.stats());
        drop(pool);
        let pool = open(&disk).unwrap();
        assert_eq!(read_tree(&pool, &root).unwrap().len(), 50);
        assert_sound(&pool, "reopened");
        hit += u32::from(refused > 0);
        if refused == 0 {
            break;
        }
    }
    assert!(hit > 40, "only {hit} moments were met");
}

/// A commit that is retried while there is no room must not accumulate in memory what it could not
/// write, nor block the deletion that would make room.
#[test]
fn refused_commits_leave_nothing_in_the_way_of_a_deletion() {
    let disk = SimDisk::new(1);
    let pool = create(&disk);
    commit_random(&pool, false, 1, 40).unwrap();
    disk.set_capacity(Some(disk.used()));
    for round in 0..20 {
        let tried = commit_random(&pool, true, 2 + round, 1000);
        assert!(matches!(tried, Err(Error::Full { .. })), "{tried:?}");
    }
    // Room for a node and a record of the table, far less than what was refused.
    disk.set_capacity(Some(disk.used() + (32 << 10)));
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    reclaim(&pool);
    assert_eq!(pool.stats().live, 0);
    let kept = commit_random(&pool, true, 99, 20).unwrap();
    assert_sound(&pool, "after the deletion");
    drop(pool);
    let pool = open(&disk).unwrap();
    assert_eq!(read_tree(&pool, &kept).unwrap().len(), 20);
    assert_sound(&pool, "reopened");
}

#[test]
fn the_ballast_keeps_the_reserve_from_others() {
    let disk = SimDisk::new(1);
    Pool::create(&*disk, &options()).unwrap();
    let options = PoolOptions { ballast: 1 << 20, ..options() };
    let held = |disk: &SimDisk| disk.open("ballast").unwrap().allocated().unwrap();
    let pool = open_with(&disk, &options).unwrap();
    commit_random(&pool, false, 1, 100).unwrap();
    reclaim(&pool);
    assert_eq!(held(&disk), 1 << 20);
    // Others take every byte that is free.
    disk.set_capacity(Some(disk.used()));
    let left = PURPOSES.map(|purpose| pool.available_now(purpose) >> 18);
    assert_eq!(left, [0, 1, 2, 3, 4], "the whole reserve is there");
    assert!(commit_random(&pool, false, 2, 10).is_err());
    assert_eq!(held(&disk), 1 << 20, "it is not for those who want more");
    // Replaced content is written, and no more of the ballast is given up than that takes.
    let root = commit_random(&pool, true, 3, 10).unwrap();
    assert_eq!(held(&disk), 7 << 17);
    pool.commit(pool.begin_freeing(), BlockHash::ZERO, b"").unwrap();
    let small = commit_random(&pool, true, 4, 4).unwrap();
    assert_ne!(root, small);
    drop(pool);
    let pool = open_with(&disk, &options).unwrap();
    assert_eq!(read_tree(&pool, &small).unwrap().len(), 4);
    // There is room again.
    disk.set_capacity(Some(disk.used() + (4 << 20)));
    reclaim(&pool);
    assert_eq!(held(&disk), 1 << 20, "it is there for the next time");
    assert_sound(&pool, "at the end");
}
