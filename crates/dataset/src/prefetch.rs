//! Requests to read ahead.

use offshoot_types::{BlockHash, DatasetId, Ino};
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;

/// Requests to read ahead that may wait; further ones are dropped.
const PREFETCH_REQUESTS_MAX: usize = 64;

/// What to bring into the cache.
pub(crate) enum Request {
    /// These blocks of a file, from the first to before the last.
    Range(DatasetId, Ino, u64, u64),
    /// These, which somebody waits for.
    Blocks(Vec<BlockHash>),
}

/// Requests to read ahead.
#[derive(Default)]
pub(crate) struct Prefetch {
    state: Mutex<PrefetchState>,
    changed: Condvar,
}

#[derive(Default)]
struct PrefetchState {
    running: bool,
    requests: VecDeque<Request>,
}

impl Prefetch {
    /// Asks for blocks. Dropped if too much is waiting, or if nobody reads ahead here.
    pub(crate) fn request(&self, request: Request) {
        let mut state = self.state.lock();
        if state.running && state.requests.len() < PREFETCH_REQUESTS_MAX {
            state.requests.push_back(request);
            self.changed.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.running = false;
        state.requests.clear();
        self.changed.notify_all();
    }

    /// From now on somebody reads ahead.
    pub(crate) fn start(&self) {
        self.state.lock().running = true;
    }

    /// Waits for the next request; `None` once stopped.
    pub(crate) fn next(&self) -> Option<Request> {
        let mut state = self.state.lock();
        while state.running {
            if let Some(request) = state.requests.pop_front() {
                return Some(request);
            }
            self.changed.wait(&mut state);
        }
        None
    }
}
