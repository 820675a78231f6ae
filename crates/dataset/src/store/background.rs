//! What happens on its own: commits of datasets that are due, and reading ahead.

use crate::ground::Ground;
use crate::loaded::Loaded;
use crate::prefetch::Request;
use crate::schedule::ScheduleState;
use crate::{Dataset, Error};
use offshoot_types::DatasetId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Datasets committed at a time.
const COMMITTERS: usize = 2;
/// Threads that read ahead, which is also the number of reads in flight.
const PREFETCHERS: usize = 8;
/// After a failed commit a dataset is left alone for this long, in ms.
const RETRY_MS: u64 = 1000;

/// Starts the threads.
pub(super) fn start(
    ground: &Arc<Ground>,
    loaded: &Arc<Loaded>,
) -> std::io::Result<Vec<std::thread::JoinHandle<()>>> {
    ground.prefetch.start();
    let mut threads = Vec::new();
    for number in 0..COMMITTERS {
        let (ground, loaded) = (Arc::clone(ground), Arc::clone(loaded));
        let builder = std::thread::Builder::new().name(format!("commit-{number}"));
        threads.push(builder.spawn(move || run_committer(&ground, &loaded))?);
    }
    for number in 0..PREFETCHERS {
        let (ground, loaded) = (Arc::clone(ground), Arc::clone(loaded));
        let builder = std::thread::Builder::new().name(format!("prefetch-{number}"));
        threads.push(builder.spawn(move || run_prefetcher(&ground, &loaded))?);
    }
    Ok(threads)
}

fn run_committer(ground: &Ground, loaded: &Loaded) {
    let choose = |state: &ScheduleState, now_ms: u64| {
        let due = find_due(ground, loaded, state, now_ms)?;
        Some((due.id(), due))
    };
    while let Some(due) = ground.schedule.next(|| ground.now_ms(), choose) {
        match due.commit() {
            Ok(()) | Err(Error::Stale) => ground.schedule.done(due.id(), None),
            Err(error) => {
                tracing::warn!(dataset = %due.id(), %error, "a commit failed and is tried again");
                ground.schedule.done(due.id(), Some(ground.now_ms() + RETRY_MS));
            }
        }
    }
}

/// A dataset that should be committed now and is not being committed.
fn find_due(
    ground: &Ground,
    loaded: &Loaded,
    state: &ScheduleState,
    now_ms: u64,
) -> Option<Arc<Dataset>> {
    let options = &ground.options;
    let interval_ms = options.commit_interval.as_millis() as u64;
    let free = |id: DatasetId| state.is_free(id);
    let all = loaded.all();
    let due = |dataset: &&Arc<Dataset>| {
        free(dataset.id())
            && (dataset.dirty_bytes() >= options.dirty_limit
                || dataset.survival_is_due()
                || dataset.dirty_for_ms(now_ms).is_some_and(|ms| ms >= interval_ms))
    };
    // Those that fill up at once are due again and again: whoever waits longest comes first.
    let longest = all.iter().filter(due).max_by_key(|one| one.dirty_for_ms(now_ms));
    if let Some(dataset) = longest {
        return Some(Arc::clone(dataset));
    }
    // Those that hold the log back, oldest first, when it is half full.
    let space = ground.log.get().map(|log| log.space());
    if space.is_some_and(|space| space.used > space.total / 2) {
        let oldest = ground.logged.oldest().into_iter().find(|id| free(*id));
        if let Some(dataset) = oldest.and_then(|id| loaded.get(id)) {
            return Some(dataset);
        }
    }
    if ground.weight.load(Ordering::Relaxed) > options.dirty_bound / 2 {
        // A dataset that is small compared with one being committed makes no room: it would be
        // committed again and again for nothing.
        let most = all.iter().map(|dataset| dataset.dirty_bytes()).max()?;
        let heavy =
            |dataset: &&Arc<Dataset>| dataset.dirty_bytes() > most / 4 && free(dataset.id());
        let heaviest = all.iter().filter(heavy);
        return heaviest.max_by_key(|dataset| dataset.dirty_bytes()).map(Arc::clone);
    }
    None
}

fn run_prefetcher(ground: &Ground, loaded: &Loaded) {
    while let Some(request) = ground.prefetch.next() {
        match request {
            Request::Blocks(blocks) => ground.pool.prefetch(&blocks),
            Request::Range(dataset, ino, from, end) => {
                // Only a hint: those who need the blocks see what is wrong with them.
                let _ = loaded.get(dataset).map(|dataset| dataset.prefetch(ino, from, end));
            }
        }
    }
}

#[cfg(test)]
mod tests;
