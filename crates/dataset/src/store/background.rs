//! What happens by itself: commits of datasets that are due, and reading ahead.

use super::Shared;
use crate::{Dataset, Error};
use offshoot_types::{BlockHash, DatasetId, Ino};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Datasets committed at a time.
const COMMITTERS: usize = 2;
/// Threads that read ahead: so many reads they have under way.
const PREFETCHERS: usize = 8;
/// Requests to read ahead that may wait; further ones are dropped.
const PREFETCH_REQUESTS_MAX: usize = 64;
/// How often the committers look whether a dataset is due.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// After a failed commit a dataset is left alone for this long, in ms.
const RETRY_MS: u64 = 1000;

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
pub(super) struct Schedule {
    state: Mutex<ScheduleState>,
    changed: Condvar,
}

#[derive(Default)]
struct ScheduleState {
    stopped: bool,
    /// A look was asked for since the last one.
    woken: bool,
    /// Datasets being committed (0), or left alone until this time in ms.
    busy: BTreeMap<DatasetId, u64>,
}

impl Schedule {
    pub(super) fn wake(&self) {
        let mut state = self.state.lock();
        if !state.woken {
            state.woken = true;
            self.changed.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }
}

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
    /// Asks for blocks. Dropped when too much is asked for, or when nobody reads ahead here.
    pub(crate) fn request(&self, request: Request) {
        let mut state = self.state.lock();
        if state.running && state.requests.len() < PREFETCH_REQUESTS_MAX {
            state.requests.push_back(request);
            self.changed.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        let mut state = self.state.lock();
        state.running = false;
        state.requests.clear();
        self.changed.notify_all();
    }
}

/// Starts the threads.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<Vec<std::thread::JoinHandle<()>>> {
    shared.prefetch.state.lock().running = true;
    let mut threads = Vec::new();
    for number in 0..COMMITTERS {
        let shared = Arc::clone(shared);
        let builder = std::thread::Builder::new().name(format!("commit-{number}"));
        threads.push(builder.spawn(move || run_committer(&shared))?);
    }
    for number in 0..PREFETCHERS {
        let shared = Arc::clone(shared);
        let builder = std::thread::Builder::new().name(format!("prefetch-{number}"));
        threads.push(builder.spawn(move || run_prefetcher(&shared))?);
    }
    Ok(threads)
}

fn run_committer(shared: &Shared) {
    loop {
        let due = {
            let mut state = shared.schedule.state.lock();
            loop {
                if state.stopped {
                    return;
                }
                state.woken = false;
                let now_ms = shared.now_ms();
                state.busy.retain(|_, until| *until == 0 || *until > now_ms);
                if let Some(due) = find_due(shared, &state, now_ms) {
                    state.busy.insert(due.id(), 0);
                    break due;
                }
                shared.schedule.changed.wait_for(&mut state, LOOK_INTERVAL);
            }
        };
        let outcome = due.commit();
        let mut state = shared.schedule.state.lock();
        match outcome {
            Ok(()) | Err(Error::Stale) => {
                state.busy.remove(&due.id());
            }
            Err(error) => {
                tracing::warn!(dataset = %due.id(), %error, "a commit failed and is tried again");
                state.busy.insert(due.id(), shared.now_ms() + RETRY_MS);
            }
        }
    }
}

/// A dataset that should be committed now and is not being committed.
fn find_due(shared: &Shared, state: &ScheduleState, now_ms: u64) -> Option<Arc<Dataset>> {
    let options = &shared.options;
    let interval_ms = options.commit_interval.as_millis() as u64;
    let free = |id: DatasetId| !state.busy.contains_key(&id);
    let loaded = shared.loaded();
    let due = |dataset: &&Arc<Dataset>| {
        free(dataset.id())
            && (dataset.dirty_bytes() >= options.dirty_limit
                || dataset.survival_is_due()
                || dataset.dirty_for_ms(now_ms).is_some_and(|ms| ms >= interval_ms))
    };
    if let Some(dataset) = loaded.iter().find(due) {
        return Some(Arc::clone(dataset));
    }
    // Those that hold the log back, oldest first, when it is half full.
    let space = shared.log.get().map(|log| log.space());
    if space.is_some_and(|space| space.used > space.total / 2) {
        let oldest = shared.logged.oldest().into_iter().find(|id| free(*id));
        if let Some(dataset) = oldest.and_then(|id| shared.datasets.read().get(&id).cloned()) {
            return Some(dataset);
        }
    }
    if shared.weight.load(Ordering::Relaxed) > options.dirty_bound / 2 {
        // What is light beside one that is being committed makes no room: it would be committed
        // again and again, for nothing.
        let most = loaded.iter().map(|dataset| dataset.dirty_bytes()).max()?;
        let heavy =
            |dataset: &&Arc<Dataset>| dataset.dirty_bytes() > most / 4 && free(dataset.id());
        let heaviest = loaded.iter().filter(heavy);
        return heaviest.max_by_key(|dataset| dataset.dirty_bytes()).map(Arc::clone);
    }
    None
}

fn run_prefetcher(shared: &Shared) {
    loop {
        let request = {
            let mut state = shared.prefetch.state.lock();
            loop {
                if !state.running {
                    return;
                }
                if let Some(request) = state.requests.pop_front() {
                    break request;
                }
                shared.prefetch.changed.wait(&mut state);
            }
        };
        match request {
            Request::Blocks(blocks) => shared.pool.prefetch(&blocks),
            Request::Range(dataset, ino, from, end) => {
                let dataset = shared.datasets.read().get(&dataset).cloned();
                // A hint: whoever needs the blocks sees what is wrong with them.
                let _ = dataset.map(|dataset| dataset.prefetch(ino, from, end));
            }
        }
    }
}

#[cfg(test)]
mod tests;
