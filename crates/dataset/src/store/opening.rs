//! Creating and opening a store, and replaying the log of the last run.

use super::losses::Losses;
use super::{Store, background};
use crate::blocks::StoreNodes;
use crate::ground::Ground;
use crate::loaded::Loaded;
use crate::{Dataset, Error, Result, StoreOptions};
use offshoot_format::operation::Batch;
use offshoot_intent_log::{IntentLog, Replay, VolatileLog};
use offshoot_os::Clock;
use offshoot_os::disk::Disk;
use offshoot_pool::{Pool, Purpose};
use offshoot_types::{DatasetId, Txg};
use parking_lot::Mutex;
use std::sync::Arc;

/// Datasets whose replay is committed at the same time.
const REPLAYS_COMMITTED: usize = 4;

impl Store {
    /// Makes an empty store in an empty directory.
    pub fn create(disk: &Arc<dyn Disk>, options: &StoreOptions) -> Result<()> {
        Pool::create(&**disk, &options.pool)?;
        // If creation is cut short here, the first opening makes the log.
        Ok(IntentLog::create(&**disk, options.log_file_size, options.log_files)?)
    }

    /// Opens a store as it was when it was closed or as a crash left it, and locks it.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: &StoreOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<Store>> {
        Store::take_over(disk, options, clock, &[])
    }

    /// Opens a store with the volatile logs that outlived an engine: those datasets are as their
    /// programs last saw them, and continue with their logs ([`Dataset::volatile`]). A dataset
    /// without a log afterwards has lost something that only its programs know: they must not
    /// continue.
    ///
    /// [`Dataset::volatile`]: crate::Dataset::volatile
    pub fn take_over(
        disk: Arc<dyn Disk>,
        options: &StoreOptions,
        clock: Arc<dyn Clock>,
        survivors: &[(DatasetId, Arc<VolatileLog>)],
    ) -> Result<Arc<Store>> {
        let pool_clock = Arc::clone(&clock);
        let pool = Pool::open(Arc::clone(&disk), &options.pool, Arc::new(StoreNodes), pool_clock)?;
        let mut options = options.clone();
        if options.commit_workers == 0 {
            options.commit_workers =
                std::thread::available_parallelism().map_or(1, |cores| cores.get());
        }
        let ground = Arc::new(Ground::new(pool, clock, options)?);
        let loaded = Loaded::new(&ground);
        // Made now, so that a failure below closes everything.
        let store = Arc::new(Store { ground, loaded, threads: Mutex::default() });
        let (options, seals) = (&store.ground.options, store.ground.pool.seals());
        if store.ground.pool.root().txg == Txg(0)
            && IntentLog::replay_sealed(&*disk, seals).is_err()
        {
            IntentLog::create(&*disk, options.log_file_size, options.log_files)?;
        }
        // Before the first commit, which may write what older engines do not know.
        store.ground.pool.declare_features()?;
        let last_run = IntentLog::read(&*disk, store.ground.pool.seals())?;
        tracing::debug!(records = last_run.replay().records.len(), "the intent log is read");
        store.replay(last_run.replay(), survivors)?;
        // Everything of the old log is in durable commits, or known to be lost: its room may be
        // reused.
        let pool = Arc::clone(&store.ground.pool);
        let room = move || pool.available_now(Purpose::Growth);
        let size_max = options.log_file_size * u64::from(options.log_files_max);
        let log = IntentLog::begin(last_run, seals.clone())?;
        let clock = Arc::clone(&store.ground.clock);
        let log = log.growing(disk, size_max, room).timed(clock);
        let _ = store.ground.log.set(log);
        if store.ground.options.background {
            let threads = background::start(&store.ground, &store.loaded)
                .map_err(|error| Error::Io(format!("cannot start a thread: {error}")))?;
            store.threads.lock().extend(threads);
        }
        Ok(store)
    }

    /// Applies what the log holds beyond each dataset's last commit, and commits it. Repeating it
    /// after a crash in the middle changes nothing: the number of applied operations is stored with
    /// the tree.
    fn replay(&self, last: &Replay, survivors: &[(DatasetId, Arc<VolatileLog>)]) -> Result<()> {
        let mut losses = Losses::default();
        for record in &last.records {
            let batch = Batch::decode(&record.payload)?;
            if losses.has(batch.dataset) {
                continue;
            }
            match self.replay_batch(&batch) {
                Ok(()) => losses.note_applied(batch.dataset, record.sequence),
                // A prefix of the history stays a prefix only if nothing after it is applied.
                Err(error) if is_damage(&error) => {
                    tracing::error!(dataset = %batch.dataset, %error, "replay ends early");
                    losses.add(batch.dataset);
                }
                Err(error) => return Err(error),
            }
        }
        tracing::debug!("the intent log is replayed");
        let mut complete = Vec::new();
        for (id, volatile) in survivors {
            match self.loaded.dataset(*id, true).and_then(|dataset| {
                dataset.replay_volatile(volatile)?;
                Ok(dataset)
            }) {
                Ok(dataset) => {
                    // Whatever is damaged on disk, here is all of it.
                    losses.exclude(*id);
                    complete.push((dataset, Arc::clone(volatile)));
                }
                Err(error) if is_damage(&error) || matches!(error, Error::NoDataset(_)) => {
                    tracing::error!(dataset = %id, %error, "its volatile log cannot be used");
                }
                Err(error) => return Err(error),
            }
        }
        tracing::debug!(logs = complete.len(), "what only programs knew is replayed");
        for (dataset, committed) in self.commit_replayed() {
            match committed {
                // One damaged dataset must not keep the others closed.
                Err(error) if is_damage(&error) => {
                    tracing::error!(dataset = %dataset.id(), %error, "cannot commit the replay");
                    if !dataset.is_committed() {
                        losses.add(dataset.id());
                    }
                }
                other => other?,
            }
        }
        tracing::debug!("the replay is committed");
        self.mark_lost(&losses, last)?;
        for (dataset, volatile) in complete {
            // All of it is in a durable root (V3), or the commit above has failed.
            if dataset.is_committed() {
                let recovered = dataset.last_operation();
                volatile.trim(recovered);
                volatile.settle(recovered);
                dataset.survive(volatile);
            }
        }
        Ok(())
    }

    /// Commits what was replayed, several datasets at a time: clients of VDBs wait for it. One at a time where
    /// everything has to happen in the same order each time.
    fn commit_replayed(&self) -> Vec<(Arc<Dataset>, Result<()>)> {
        let all = self.loaded.all();
        let at_once = if self.ground.options.background { REPLAYS_COMMITTED } else { 1 };
        let (rest, outcomes) = (Mutex::new(all.iter()), Mutex::new(Vec::new()));
        let work = || loop {
            let next = rest.lock().next();
            let Some(dataset) = next else { return };
            let outcome = dataset.free_orphans().and_then(|()| dataset.commit());
            outcomes.lock().push((Arc::clone(dataset), outcome));
        };
        std::thread::scope(|scope| {
            for _ in 1..at_once.min(all.len()) {
                // Without another thread, this one does all.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        outcomes.into_inner()
    }

    /// Applies the operations of a record that are not applied yet.
    fn replay_batch(&self, batch: &Batch<'_>) -> Result<()> {
        let dataset = match self.loaded.dataset(batch.dataset, true) {
            // Deleted since; its number is not reused.
            Err(Error::NoDataset(_)) => return Ok(()),
            other => other?,
        };
        let last = dataset.last_operation();
        let count = batch.operations.len() as u64;
        if batch.first.saturating_add(count) <= last + 1 {
            return Ok(());
        }
        if batch.first > last + 1 {
            return Err(Error::Corrupt(format!(
                "operations {} to {} are missing from the log",
                last + 1,
                batch.first - 1
            )));
        }
        for operation in &batch.operations[(last + 1 - batch.first) as usize..] {
            dataset.replay(operation).map_err(|error| match error {
                Error::Io(_) | Error::Damaged(_) | Error::Missing(_) | Error::NoSpace => error,
                other => Error::Corrupt(format!("an operation of the log fails: {other}")),
            })?;
        }
        Ok(())
    }
}

/// Whether an error says that data is damaged, rather than that the disk refuses for now.
fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt(_) | Error::Damaged(_) | Error::Missing(_))
}
