//! Which dataset is committed next, and notice of those that were.

use offshoot_types::DatasetId;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often the committers check whether a dataset is due.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Something that threads wait for and others announce.
#[derive(Default)]
pub(crate) struct Signal {
    count: Mutex<u64>,
    changed: Condvar,
}

impl Signal {
    /// Wakes all that wait.
    pub(crate) fn announce(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits for the next announcement, at most for `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) {
        let mut count = self.count.lock();
        self.changed.wait_for(&mut count, timeout);
    }
}

/// Who is being committed.
#[derive(Default)]
pub(crate) struct Schedule {
    state: Mutex<ScheduleState>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct ScheduleState {
    stopped: bool,
    /// A check was asked for since the last one.
    woken: bool,
    /// Datasets being committed (0), or left alone until this time in ms.
    busy: BTreeMap<DatasetId, u64>,
}

impl ScheduleState {
    /// Whether a dataset is neither being committed nor left alone.
    pub(crate) fn is_free(&self, id: DatasetId) -> bool {
        !self.busy.contains_key(&id)
    }

    /// Counts a dataset as being committed.
    pub(crate) fn begin(&mut self, id: DatasetId) {
        self.busy.insert(id, 0);
    }
}

impl Schedule {
    pub(crate) fn wake(&self) {
        let mut state = self.state.lock();
        if !state.woken {
            state.woken = true;
            self.changed.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits until `choose` finds a dataset to commit, which counts as being committed from then on; `None`
    /// once stopped. Asked at least every [`LOOK_INTERVAL`].
    pub(crate) fn next<T>(
        &self,
        now_ms: impl Fn() -> u64,
        choose: impl Fn(&ScheduleState, u64) -> Option<(DatasetId, T)>,
    ) -> Option<T> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return None;
            }
            state.woken = false;
            let now_ms = now_ms();
            state.busy.retain(|_, until| *until == 0 || *until > now_ms);
            if let Some((id, chosen)) = choose(&state, now_ms) {
                state.begin(id);
                return Some(chosen);
            }
            self.changed.wait_for(&mut state, LOOK_INTERVAL);
        }
    }

    /// It was committed; if that failed, it is left alone until this time in ms.
    pub(crate) fn done(&self, id: DatasetId, rests_until_ms: Option<u64>) {
        let mut state = self.state.lock();
        match rests_until_ms {
            None => state.busy.remove(&id),
            Some(until) => state.busy.insert(id, until),
        };
    }
}
