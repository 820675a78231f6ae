//! Keeps the figures of the ledger up to date in the background.
//!
//! Figures that were never computed come first. The rest follows by age once it is old enough: soon for what
//! comprises something else now, for what shows a present state, as that changes, and for
//! snapshots whose neighbour in time came, went or is the present, as those share most with them; later for
//! all others, since equal content written anywhere can affect anything. The work takes a bounded share of
//! one core, and what others wait for goes first.
//!
//! What is looked at is kept in the pool meanwhile, as it was: what is overwritten gives no room back. So a
//! present state is let go before a long pause, and nothing is looked at while the pool is full. A snapshot
//! is kept, as it does not change: releasing it would mean walking a whole tree again. When room is reclaimed,
//! everything is let go.

use super::{Known, LET_GO};
use crate::ground::stopping::Stopping;
use crate::space::Space;
use crate::space::inventory::{LedgerKey, Object, inventory};
use crate::space::room::{self, Level};
use jiff::Timestamp;
use offshoot_dataset::StoredBytes;
use offshoot_os::pressure::{Resource, is_short};
use offshoot_types::{BlockHash, Failure};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pause between checks for something to do.
const LOOK: Duration = Duration::from_secs(1);
/// Pauses for each unit of work: for missing figures and for outdated ones; where processors are short, for both.
const PAUSES_MISSING: u32 = 1;
const PAUSES_STALE: u32 = 9;
const PAUSES_BUSY: u32 = 49;
/// Outdated figures are left alone for this long, or for this many times their duration.
const STALE_AGE: (Duration, u32) = (Duration::from_secs(5), 50);
const OTHER_AGE: (Duration, u32) = (Duration::from_secs(600), 1000);
/// The longest pause in which a present state is held, for the next to continue from: with much room
/// and with little.
const HELD_PAUSE_MAX: (Duration, Duration) = (Duration::from_secs(10), Duration::from_millis(500));
/// Little room: less than this many times the pool's reserve.
const LITTLE_ROOM: u64 = 8;
/// Figures computed between two checks of what exists.
const BATCH: usize = 256;
/// After a failure: damaged data must not be read over and over.
const FAILED_PAUSE: Duration = Duration::from_secs(60);

/// Works until told to stop.
pub fn run(space: &Space, stopping: &Stopping) {
    offshoot_os::lower_thread_priority();
    let mut worker =
        Worker { space, stopping, snapshots: BTreeMap::new(), suspect: BTreeSet::new() };
    while !stopping.is_told() {
        match worker.round() {
            Ok(()) => stopping.rest(LOOK),
            Err(failure) => {
                tracing::warn!(%failure, "working out the ledger");
                stopping.rest(FAILED_PAUSE)
            }
        };
    }
}

struct Worker<'a> {
    space: &'a Space,
    stopping: &'a Stopping,
    /// The snapshots of each object at the last check, oldest first.
    snapshots: BTreeMap<String, Vec<LedgerKey>>,
    /// Snapshots whose neighbours changed since their figures were computed.
    suspect: BTreeSet<LedgerKey>,
}

impl Worker<'_> {
    fn round(&mut self) -> Result<(), Failure> {
        if room::level(self.space) == Level::Full {
            return Ok(());
        }
        let objects = inventory(&self.space.catalog)?;
        self.forget_gone(&objects);
        self.suspect_neighbours(&objects);
        // Oldest first, so that neighbours stay neighbours: from one to the next only their difference
        // is walked.
        let mut due = self.due(&objects);
        due.sort_unstable();
        let ledger = &self.space.ledger;
        ledger.at_work.store(!due.is_empty(), Ordering::Relaxed);
        let worked = self.work(&objects, due);
        ledger.at_work.store(false, Ordering::Relaxed);
        worked
    }

    fn work(
        &mut self,
        objects: &[Object],
        due: Vec<(Option<Timestamp>, usize)>,
    ) -> Result<(), Failure> {
        let busy = is_short(Resource::Processor);
        let mut stored = self.space.store.stored_bytes();
        for (as_of, index) in due.into_iter().take(BATCH) {
            let object = &objects[index];
            let took = self.space.ledger.work_out(self.space, object, &mut stored)?;
            self.suspect.remove(&object.key);
            let pauses = match as_of {
                _ if busy => PAUSES_BUSY,
                None => PAUSES_MISSING,
                Some(_) => PAUSES_STALE,
            };
            let pause = took * pauses;
            if self.lets_go(object.key, pause) {
                stored = self.space.store.stored_bytes();
            }
            if self.pause(pause, &mut stored) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits, and lets go of what is kept when somebody waits for it; whether the worker is to stop.
    fn pause(&self, pause: Duration, stored: &mut StoredBytes) -> bool {
        let clock = &self.space.clock;
        let end = clock.elapsed() + pause;
        loop {
            if self.space.ledger.wanted.load(Ordering::Relaxed) {
                *stored = self.space.store.stored_bytes();
                self.space.ledger.wanted.store(false, Ordering::Relaxed);
            }
            let left = end.saturating_sub(clock.elapsed());
            if self.stopping.rest(left.min(LET_GO.1)) {
                return true;
            }
            if left.is_zero() {
                return false;
            }
        }
    }

    fn lets_go(&self, key: LedgerKey, pause: Duration) -> bool {
        let store = &self.space.store;
        let little = store.growth_room() < store.pool().reserve() * LITTLE_ROOM;
        let longest = if little { HELD_PAUSE_MAX.1 } else { HELD_PAUSE_MAX.0 };
        !matches!(key, LedgerKey::Snapshot(_)) && pause > longest
    }

    /// Which objects' figures to compute, with the time of the known ones.
    fn due(&self, objects: &[Object]) -> Vec<(Option<Timestamp>, usize)> {
        let (version, now) = (self.space.store.version(), self.space.now());
        let known = self.space.ledger.known.lock();
        let due = objects.iter().enumerate().filter_map(|(index, object)| {
            let Some(figures) = known.get(&object.key) else { return Some((None, index)) };
            self.is_due(object, figures, version, now).then_some((Some(figures.as_of), index))
        });
        due.collect()
    }

    fn is_due(&self, object: &Object, known: &Known, version: BlockHash, now: Timestamp) -> bool {
        let (key, same) = (object.key, known.is_of(object));
        let other = matches!(key, LedgerKey::Snapshot(_)) && !self.suspect.contains(&key);
        let (age, times) = match (same, other) {
            (false, _) => (Duration::ZERO, STALE_AGE.1),
            (true, true) => OTHER_AGE,
            (true, false) => STALE_AGE,
        };
        let old = now.duration_since(known.as_of).unsigned_abs() >= age.max(known.took * times);
        old && !(same && known.version == version)
    }

    fn forget_gone(&self, objects: &[Object]) {
        let there: BTreeSet<LedgerKey> = objects.iter().map(|object| object.key).collect();
        self.space.ledger.known.lock().retain(|key, _| there.contains(key));
    }

    /// Finds the snapshots beside those that came or went, and the newest of each object.
    fn suspect_neighbours(&mut self, objects: &[Object]) {
        let mut now: BTreeMap<String, Vec<LedgerKey>> = BTreeMap::new();
        for object in objects {
            if let Some(of) = &object.of {
                now.entry(of.clone()).or_default().push(object.key);
            }
        }
        for (of, keys) in &now {
            self.suspect.extend(keys.last());
            let before = self.snapshots.get(of).map(Vec::as_slice).unwrap_or_default();
            self.suspect.extend(new_neighbours(before, keys));
        }
        self.snapshots = now;
    }
}

/// Those of a list that have a different predecessor or successor than before.
fn new_neighbours(before: &[LedgerKey], now: &[LedgerKey]) -> Vec<LedgerKey> {
    let around = |list: &[LedgerKey]| -> HashMap<LedgerKey, [Option<LedgerKey>; 2]> {
        let at = |index: Option<usize>| list.get(index?).copied();
        let beside = |index: usize| [at(index.checked_sub(1)), at(index.checked_add(1))];
        list.iter().enumerate().map(|(index, key)| (*key, beside(index))).collect()
    };
    let before = around(before);
    let changed = around(now).into_iter().filter(|(key, beside)| before.get(key) != Some(beside));
    changed.map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use offshoot_types::SnapshotId;

    #[test]
    fn the_neighbours_of_what_came_and_went_are_found() {
        let keys = |ids: &[u64]| -> Vec<LedgerKey> {
            ids.iter().map(|id| LedgerKey::Snapshot(SnapshotId(*id))).collect()
        };
        let found = |before: &[u64], now: &[u64]| {
            let mut found = new_neighbours(&keys(before), &keys(now));
            found.sort_unstable();
            found
        };
        assert_eq!(found(&[1, 2, 3, 4, 5], &[1, 2, 4, 5]), keys(&[2, 4]));
        assert_eq!(found(&[1, 2, 3], &[1, 2, 3, 4]), keys(&[3, 4]));
        assert_eq!(found(&[1, 2, 3], &[1, 2, 3]), []);
        assert_eq!(found(&[], &[7, 8]), keys(&[7, 8]));
    }
}
