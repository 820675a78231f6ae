//! One seed: a run, and the same run with power lost at each operation of the disk.

use crate::Dice;
use crate::run::Run;
use crate::tally::Tally;
use crate::world::{World, check_offline, create, open};
use offshoot_dataset::{Ino, NewInode, Store};
use offshoot_os::disk::sim::SimDisk;
use std::fmt;
use std::sync::Arc;

/// A run without a crash, to be repeated.
pub struct Plan {
    pub(crate) seed: u64,
    pub(crate) run: Run,
    /// Operations of the disk it took, the store's creation included.
    pub operations: u64,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.run.steps.iter().enumerate() {
            let text = format!("{step:?}");
            writeln!(f, "{index:>4} {}", text.chars().take(140).collect::<String>())?;
        }
        Ok(())
    }
}

impl Plan {
    /// Takes the run of a seed.
    ///
    /// # Panics
    /// When the store and the model differ.
    pub fn new(seed: u64) -> Plan {
        let mut run = Run::new(seed);
        let mut length = Dice::new(seed ^ 0x5EED);
        let longest = length.pick(&[60, 120, 400]);
        let steps = 30 + length.roll(longest) as usize;
        let world = World::new(seed, &run.options, &|_| {});
        let mut world = world.map_err(|(_, error)| error).expect("a store is made on a sound disk");
        run.go(&mut world, steps);
        Plan { seed, run, operations: world.disk.operations() }
    }

    /// Steps of the run.
    pub fn steps(&self) -> usize {
        self.run.steps.len()
    }

    /// Repeats the run on a disk that `prepare` has set up, with a power loss at its `at`-th
    /// operation. Checks what comes back, that it can be used, and that all of it can be deleted.
    ///
    /// # Panics
    /// If anything is wrong.
    pub fn crash_at(&self, at: u64, prepare: &dyn Fn(&SimDisk)) -> Tally {
        let context = format!("power lost at operation {at} of {}", self.operations);
        let world = World::new(self.seed ^ at << 32, &self.run.options, &|disk| {
            prepare(disk);
            disk.crash_after(at);
        });
        let mut tally = Tally { crashes: 1, ..Tally::default() };
        let (disk, crashed) = match world {
            Ok(world) => self.repeat(world, &mut tally),
            Err((disk, _)) => return self.created_anew(&disk, tally),
        };
        let mut dice = Dice::new(self.seed ^ at);
        let store = self.recover(&disk, &mut dice, &mut tally, &context);
        assert_eq!(store.faults(), [], "{context}");
        self.run.check_recovered(&store, crashed, &context);
        // It can be used, and what it acknowledges is just as durable.
        let mut marked = Vec::new();
        for info in store.datasets() {
            let dataset = store.dataset(info.id).unwrap();
            let new = dataset.create(Ino::ROOT, b"mark", &NewInode::file(0o600)).unwrap();
            dataset.write(new.ino, 3, format!("{}", info.id).as_bytes()).unwrap();
            dataset.sync().unwrap();
            marked.push((info.id, new.ino));
        }
        drop(store);
        let report = check_offline(&disk, &self.run.options).expect("a check can begin");
        assert_eq!(report.findings, [], "{context}: the offline check");
        let store = self.recover(&disk, &mut dice, &mut tally, &context);
        for (id, ino) in marked {
            let dataset = store.dataset(id).unwrap();
            assert_eq!(dataset.lookup(Ino::ROOT, b"mark").unwrap().ino, ino, "{context}");
            assert_eq!(dataset.read(ino, 3, 100).unwrap(), format!("{id}").as_bytes(), "{context}");
        }
        empty(&store, &mut dice, &context);
        store.close().unwrap();
        tally.disk_operations += disk.operations();
        tally.weakened += disk.weakened();
        tally
    }

    /// Repeats the steps until power is lost; returns in which.
    pub(crate) fn repeat(&self, mut world: World, tally: &mut Tally) -> (Arc<SimDisk>, usize) {
        let mut crashed = self.run.steps.len();
        for (index, step) in self.run.steps.iter().enumerate() {
            tally.steps += 1;
            let _ = world.take(step);
            if world.disk.lost_power() {
                crashed = index;
                break;
            }
        }
        (world.disk.clone(), crashed)
    }

    /// The store was not made whole: it can be made again, or is there and empty.
    fn created_anew(&self, disk: &Arc<SimDisk>, mut tally: Tally) -> Tally {
        disk.crash();
        // Refused when it is there.
        let _ = create(disk, &self.run.options);
        let store = open(disk, &self.run.options).expect("a creation can be repeated");
        assert!(store.datasets().is_empty() && store.snapshots().is_empty());
        store.create_dataset().unwrap();
        store.close().unwrap();
        tally.disk_operations += disk.operations();
        tally
    }

    /// Opens a store after a crash, sometimes crashing while it recovers.
    fn recover(
        &self,
        disk: &Arc<SimDisk>,
        dice: &mut Dice,
        tally: &mut Tally,
        context: &str,
    ) -> Arc<Store> {
        disk.set_capacity(None);
        disk.fail_syncs(None);
        disk.fail_reads(None);
        let mut attempts = 0;
        loop {
            disk.crash();
            attempts += 1;
            if attempts < 3 && dice.chance(2) {
                disk.crash_after(1 + dice.roll(25));
                tally.crashes += 1;
                // It may be done before the power goes.
                drop(open(disk, &self.run.options));
                continue;
            }
            return open(disk, &self.run.options)
                .unwrap_or_else(|error| panic!("{context}: cannot open after it: {error}"));
        }
    }
}

/// Deletes everything in any order; the pool must be empty then.
fn empty(store: &Store, dice: &mut Dice, context: &str) {
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
    assert_eq!((stats.blocks, stats.live), (0, 0), "{context}: the pool is not empty: {stats:?}");
    assert_eq!(store.unwritten_bytes(), 0, "{context}");
}

#[cfg(test)]
mod tests;
