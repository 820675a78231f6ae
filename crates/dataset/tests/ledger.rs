//! The ledger against real deletion: what it predicts is what the pool frees.
#![allow(clippy::unwrap_used)]

mod support;

use offshoot_dataset::{DatasetId, Holding, Ino, SnapshotId, Store};
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::sync::Arc;
use support::{Dice, make_file, seeds, small_options};

/// A store in memory: only what it counts matters here.
fn open(seed: u64) -> Arc<Store> {
    let disk: Arc<dyn Disk> = SimDisk::new(seed);
    Store::create(&disk, &small_options()).unwrap();
    Store::open(disk, &small_options(), Arc::new(SystemClock)).unwrap()
}

/// Stored bytes that datasets and snapshots really reach.
fn content_bytes(store: &Store) -> u64 {
    while store.pool().reclaim_step().unwrap() {}
    store.stats().live - store.directory_bytes().unwrap()
}

struct World {
    store: Arc<Store>,
    dice: Dice,
    datasets: Vec<DatasetId>,
    snapshots: Vec<SnapshotId>,
}

impl World {
    fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.dice.roll(from.len() as u64) as usize])
    }

    /// Changes something: often few blocks of a large file, sometimes content that others hold as well.
    fn step(&mut self) {
        let (datasets, snapshots) = (self.datasets.clone(), self.snapshots.clone());
        match self.dice.roll(8) {
            0 => self.datasets.push(self.store.create_dataset().unwrap()),
            1 | 2 => {
                let Some(of) = self.pick(&datasets) else { return };
                self.snapshots.push(self.store.snapshot(of).unwrap());
            }
            3 => {
                let Some(of) = self.pick(&snapshots) else { return };
                self.datasets.push(self.store.clone_snapshot(of).unwrap());
            }
            _ => {
                let Some(of) = self.pick(&datasets) else { return };
                self.write(of);
            }
        }
    }

    fn write(&mut self, of: DatasetId) {
        let dataset = self.store.dataset(of).unwrap();
        let name = format!("file{}", self.dice.roll(4));
        let ino = match dataset.lookup(Ino::ROOT, name.as_bytes()) {
            Ok(found) => found.ino,
            Err(_) => make_file(&dataset, name.as_bytes()),
        };
        for _ in 0..1 + self.dice.roll(20) {
            // Of few contents, so that many blocks are shared across files and datasets.
            let content = Dice::new(self.dice.roll(200)).bytes(8192);
            dataset.write(ino, self.dice.roll(400) * 8192, &content).unwrap();
        }
        if self.dice.chance(6) {
            dataset.unlink(Ino::ROOT, name.as_bytes()).unwrap();
        }
        dataset.commit().unwrap();
    }

    fn any_holding(&mut self) -> Holding {
        let one_in = 1 + self.dice.roll(6);
        let mut holding = Holding::default();
        for id in self.datasets.clone() {
            holding.datasets.extend(self.dice.chance(one_in).then_some(id));
        }
        for id in self.snapshots.clone() {
            holding.snapshots.extend(self.dice.chance(one_in).then_some(id));
        }
        holding
    }

    fn delete(&mut self, holding: &Holding) {
        // In any order.
        if self.dice.chance(2) {
            holding.snapshots.iter().for_each(|id| self.store.delete_snapshot(*id).unwrap());
            holding.datasets.iter().for_each(|id| self.store.delete_dataset(*id).unwrap());
        } else {
            holding.datasets.iter().for_each(|id| self.store.delete_dataset(*id).unwrap());
            holding.snapshots.iter().rev().for_each(|id| self.store.delete_snapshot(*id).unwrap());
        }
        self.datasets.retain(|id| !holding.datasets.contains(id));
        self.snapshots.retain(|id| !holding.snapshots.contains(id));
    }

    fn rest_of(&self, holding: &Holding) -> Holding {
        let mut rest = Holding::all(&self.store);
        rest.datasets.retain(|id| !holding.datasets.contains(id));
        rest.snapshots.retain(|id| !holding.snapshots.contains(id));
        rest
    }
}

#[test]
fn what_the_ledger_says_is_what_deleting_gives_back() {
    for seed in seeds(6) {
        let store = open(seed);
        let mut world = World {
            store: store.clone(),
            dice: Dice::new(seed),
            datasets: Vec::new(),
            snapshots: Vec::new(),
        };
        let mut stored = store.stored_bytes();
        for round in 0..12 {
            for _ in 0..25 {
                world.step();
            }
            let holding = world.any_holding();
            // Before the space of earlier deletions is back: that must not matter.
            let said = store.freed_by_deleting(&holding).unwrap();
            let reached = stored.replace(&holding).unwrap();
            let rest = world.rest_of(&holding);
            let kept = store.stored_bytes().replace(&rest).unwrap();
            let freed_with_rest = store.freed_by_deleting(&rest).unwrap();
            // Nothing must be held while it is deleted.
            stored.replace(&Holding::default()).unwrap();
            let before = content_bytes(&store);
            assert_eq!(reached + freed_with_rest, before, "seed {seed}, round {round}");
            assert_eq!(kept + said, before, "seed {seed}, round {round}");
            world.delete(&holding);
            let given_back = before - content_bytes(&store);
            assert_eq!(said, given_back, "seed {seed}, round {round}: {holding:?}");
            // Left in the queue for the next round to look past.
            if world.dice.chance(2) {
                let holding = world.any_holding();
                world.delete(&holding);
            }
        }
        let all = Holding::all(&store);
        world.delete(&all);
        assert_eq!(content_bytes(&store), 0, "seed {seed}");
        assert_eq!(store.stats().live, 0, "seed {seed}");
        let problems = store.pool().check().unwrap();
        assert!(problems.is_empty(), "seed {seed}: {problems:#?}");
    }
}
