//! A run cut off by a power loss, and bits that flip in one class of files before the store is opened.
//!
//! Whatever is then read is right, or an I/O error; acknowledged operations are there, or the store says that
//! they are lost. Anything else is a difference. The offline check reports all visible damage.

use crate::Dice;
use crate::course::Plan;
use crate::model::Partial;
use crate::run::check_presence;
use crate::tally::Tally;
use crate::world::{World, check_offline, open};
use offshoot_dataset::{DatasetId, Error, Ino, NewInode, ScrubState, Store};
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Classes of files: the directory and what their names begin with.
const CLASSES: [(&str, &str); 4] = [("segments", ""), ("", "root."), ("table", ""), ("log", "")];

/// How many of a seed's runs are damaged, by how often it loses power.
pub fn count(crashes: u64) -> u64 {
    1 + crashes / 4
}

impl Plan {
    /// Repeats the run up to a random power loss, flips bits and checks how the store handles it.
    ///
    /// # Panics
    /// If it causes anything but errors.
    pub fn flip(&self, index: u64) -> Tally {
        let mut dice = Dice::new(self.seed ^ (index + 1) << 24 ^ 0xF11B);
        // Often not at all: everything is at rest then.
        let at = 1 + dice.roll(self.operations + self.operations / 4);
        let mut tally = Tally { flips: 1, crashes: 1, ..Tally::default() };
        let prepare = |disk: &SimDisk| disk.crash_after(at);
        let world = World::new(self.seed ^ at << 32, &self.run.options, &prepare);
        // Cut short, its creation would be repeated.
        let Ok(world) = world else { return tally };
        let (disk, crashed) = self.repeat(world, &mut tally);
        disk.set_capacity(None);
        disk.fail_syncs(None);
        disk.crash();
        let class = CLASSES[dice.roll(CLASSES.len() as u64) as usize];
        let Some(flipped) = flip_bits(&disk, class, &mut dice) else { return tally };
        let context = format!(
            "power lost at operation {at} of {}, {flipped} (--flip {index})",
            self.operations
        );
        let sound =
            check_offline(&disk, &self.run.options).is_ok_and(|report| report.findings.is_empty());
        let harmless = self.look_at(&disk, crashed, &mut dice, &context);
        assert!(harmless || !sound, "{context}: the offline check has found nothing");
        tally.disk_operations += disk.operations();
        tally
    }

    /// Whether nothing at all is wrong with the store.
    fn look_at(&self, disk: &Arc<SimDisk>, crashed: usize, dice: &mut Dice, context: &str) -> bool {
        let store = match open(disk, &self.run.options) {
            Ok(store) => store,
            Err(error) => {
                assert_eq!(error.errno(), 5, "{context}: {error}");
                return false;
            }
        };
        let (mut harmless, mut told) = (true, !store.faults().is_empty());
        // Found by a search for it, before or after it is needed.
        if dice.chance(2) {
            let tell = &mut |_: &ScrubState| ControlFlow::Continue(());
            let scrubbed = store.pool().scrub(ScrubState::default(), u64::MAX, tell);
            harmless &= scrubbed.is_ok_and(|report| report.damaged == 0);
        }
        let ids: Vec<DatasetId> = store.datasets().iter().map(|info| info.id).collect();
        for (id, history) in &self.run.datasets {
            let there = ids.contains(id);
            check_presence(
                there,
                (history.created, history.deleted),
                crashed,
                &format!("{context}: {id}"),
            );
            if !there {
                continue;
            }
            let lost = store.lost().contains(id);
            if lost {
                assert!(store.dataset(*id).is_err(), "{context}: {id} is served");
                (harmless, told) = (false, true);
                if is_refused(store.accept_loss(*id), context) {
                    continue;
                }
            }
            match store.dataset(*id) {
                Ok(dataset) => {
                    harmless &= history.check_damaged(&dataset, lost, crashed, context);
                }
                refused => harmless &= !is_refused(refused, context),
            }
        }
        harmless &= self.look_at_snapshots(&store, crashed, context);
        told |= !store.faults().is_empty();
        assert!(harmless || told, "{context}: the store knows of no fault");
        go_on(&store, context);
        harmless
    }

    fn look_at_snapshots(&self, store: &Store, crashed: usize, context: &str) -> bool {
        let there: Vec<_> = store.snapshots().iter().map(|info| info.id).collect();
        let mut harmless = true;
        for (id, taken) in &self.run.snapshots {
            let found = there.contains(id);
            check_presence(
                found,
                (taken.created, taken.deleted),
                crashed,
                &format!("{context}: {id}"),
            );
            if !found {
                continue;
            }
            let clone = store.clone_snapshot(*id).and_then(|clone| store.dataset(clone));
            match clone {
                Ok(clone) => {
                    let seen = Partial::of(&clone, context);
                    assert!(seen.fits(&taken.dump), "{context}: {id} is wrong");
                    harmless &= seen.unreadable.is_empty();
                }
                refused => harmless &= !is_refused(refused, context),
            }
        }
        harmless
    }
}

/// Whether it returned an I/O error; damage may cause no other error.
fn is_refused<T>(outcome: Result<T, Error>, context: &str) -> bool {
    match outcome {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.errno(), 5, "{context}: {error}");
            true
        }
    }
}

/// Flips one or several bits in a file of a class; returns which. `None`: there is nothing to flip.
fn flip_bits(disk: &SimDisk, class: (&str, &str), dice: &mut Dice) -> Option<String> {
    let (dir, prefix) = class;
    let mut paths = Vec::new();
    for name in disk.list(dir).expect("a sound disk lists") {
        if name.starts_with(prefix) {
            paths.push(if dir.is_empty() { name } else { format!("{dir}/{name}") });
        }
    }
    let path = paths.get(dice.roll(paths.len() as u64) as usize)?.clone();
    let content = disk.content(&path)?;
    // Where something is, mostly.
    let written: Vec<u64> =
        (0..content.len() as u64).filter(|at| content[*at as usize] != 0).collect();
    let begin = match dice.chance(8) || written.is_empty() {
        true => dice.roll(content.len() as u64),
        false => written[dice.roll(written.len() as u64) as usize],
    };
    let count = dice.pick(&[1, 1, 2, 3, 8]);
    let together = dice.chance(2);
    let mut at = begin;
    let mut places = Vec::new();
    for _ in 0..count {
        if at < content.len() as u64 {
            let bit = dice.roll(8) as u8;
            disk.flip_bit(&path, at, bit);
            places.push(format!("{at}.{bit}"));
        }
        at = match together {
            true => begin + dice.roll(16),
            false => {
                written.get(dice.roll(written.len() as u64) as usize).copied().unwrap_or(begin)
            }
        };
    }
    (!places.is_empty()).then(|| format!("bits {} of '{path}' flipped", places.join(" ")))
}

/// A damaged store can be used: what it accepts is durable, and it can be emptied.
fn go_on(store: &Store, context: &str) {
    let mut written = Vec::new();
    for info in store.datasets() {
        let mark = |id| -> Result<Ino, Error> {
            let dataset = store.dataset(id)?;
            let new = dataset.create(Ino::ROOT, b"mark", &NewInode::file(0o600))?;
            dataset.write(new.ino, 3, b"after the damage")?;
            dataset.sync()?;
            Ok(new.ino)
        };
        match mark(info.id) {
            Ok(ino) => written.push((info.id, ino)),
            refused => drop(is_refused(refused, context)),
        }
    }
    for (id, ino) in written {
        let dataset = store.dataset(id).expect("it was written to");
        match dataset.read(ino, 3, 100) {
            Ok(read) => assert_eq!(&read[..], b"after the damage", "{context}: {id}"),
            refused => drop(is_refused(refused, context)),
        }
    }
    for info in store.datasets() {
        is_refused(store.delete_dataset(info.id), context);
    }
    for info in store.snapshots() {
        is_refused(store.delete_snapshot(info.id), context);
    }
}

#[cfg(test)]
mod tests;
