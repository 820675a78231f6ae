//! Random operations, snapshots, clones, deletions, commits and reopenings against plain maps.
//! `OFFSHOOT_SEEDS=n` runs more.

mod support;

use offshoot_os::disk::sim::SimDisk;
use support::run::{Run, create, open};
use support::{Dice, seeds};

#[test]
fn a_store_behaves_as_maps_do() {
    for seed in seeds(12) {
        println!("seed {seed}");
        let disk = SimDisk::new(seed);
        let mut run = Run::new(seed);
        let mut dice = Dice::new(seed + 1_000_000);
        create(&disk, &run.options).unwrap();
        let mut store = open(&disk, &run.options).unwrap();
        for _ in 0..6 {
            run.go(&store, 60);
            let close = dice.chance(2);
            if close {
                store.close().unwrap();
            }
            drop(store);
            store = open(&disk, &run.options).unwrap();
            run.reopened(&store, close);
        }
        run.go(&store, 40);
        // Everything goes, in any order; the pool must be empty again.
        let mut datasets = store.datasets();
        let mut snapshots = store.snapshots();
        while !datasets.is_empty() || !snapshots.is_empty() {
            if !datasets.is_empty() && (snapshots.is_empty() || dice.chance(2)) {
                let index = dice.roll(datasets.len() as u64) as usize;
                store.delete_dataset(datasets.swap_remove(index).id).unwrap();
            } else {
                let index = dice.roll(snapshots.len() as u64) as usize;
                store.delete_snapshot(snapshots.swap_remove(index).id).unwrap();
            }
        }
        while store.pool().reclaim_step().unwrap() {}
        let stats = store.stats();
        assert_eq!((stats.blocks, stats.live), (0, 0), "seed {seed}: {stats:?}");
        assert_eq!(store.unwritten_bytes(), 0, "seed {seed}");
        store.close().unwrap();
    }
}
