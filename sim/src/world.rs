//! A store on a simulated disk, and the steps a run takes on it.

use crate::model::{Op, apply_real};
use offshoot_dataset::{
    CheckReport, DataKey, DatasetId, Error, ScrubState, SnapshotId, Store, StoreOptions,
};
use offshoot_os::Clock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What reads fail on.
const BLOCKS: &str = "segments/";

/// Ticks of the clock from one step to the next.
const STEP_TICKS: u64 = 1000;

/// A clock that moves by some ticks whenever it is read.
#[derive(Default)]
struct TickClock {
    ticks: AtomicU64,
    by: u64,
}

impl Clock for TickClock {
    fn now(&self) -> SystemTime {
        let ticks = self.ticks.fetch_add(self.by, Ordering::Relaxed);
        UNIX_EPOCH + Duration::from_micros(1_000_000_000_000 + ticks * 1_000_001)
    }
    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.ticks.load(Ordering::Relaxed))
    }
    fn sleep(&self, _: Duration) {}
}

/// Options for a store of a few MiB on which nothing happens on its own.
pub fn small_options() -> StoreOptions {
    let mut options = StoreOptions {
        log_file_size: 128 << 10,
        log_files: 3,
        commit_workers: 1,
        background: false,
        commit_interval: Duration::from_millis(200),
        ..StoreOptions::default()
    };
    options.pool.cache_size = 4 << 20;
    options.pool.segment_size = 1 << 20;
    options.pool.reserve = Some(RESERVE);
    options.pool.checkpoint_log_min = 16 << 10;
    options.pool.background = false;
    options.pool.check_invariants = true;
    options
}

/// Seeds with this bit are of runs on encrypted pools.
pub const ENCRYPTED: u64 = 1 << 48;

/// The key of the pool in the run of a seed, if it has one.
pub(crate) fn data_key(seed: u64) -> Option<DataKey> {
    (seed & ENCRYPTED != 0).then(|| DataKey::of([7; 32]))
}

/// What small stores reserve, in bytes.
const RESERVE: u64 = 1 << 20;

/// Makes a store on a simulated disk.
pub fn create(disk: &Arc<SimDisk>, options: &StoreOptions) -> Result<(), Error> {
    let disk: Arc<dyn Disk> = disk.clone();
    Store::create(&disk, options)
}

/// What an offline check of the store on a simulated disk finds.
pub fn check_offline(disk: &Arc<SimDisk>, options: &StoreOptions) -> Result<CheckReport, Error> {
    let disk: Arc<dyn Disk> = disk.clone();
    let data_key = options.pool.data_key.as_ref();
    offshoot_dataset::check_encrypted(disk, data_key, &mut |_, _| {})
}

/// Opens a store on a simulated disk.
pub fn open(disk: &Arc<SimDisk>, options: &StoreOptions) -> Result<Arc<Store>, Error> {
    open_at(disk, options, Arc::new(TickClock { by: 1, ..TickClock::default() }))
}

fn open_at(
    disk: &Arc<SimDisk>,
    options: &StoreOptions,
    clock: Arc<TickClock>,
) -> Result<Arc<Store>, Error> {
    let disk: Arc<dyn Disk> = disk.clone();
    Store::open(disk, options, clock)
}

/// One step of a run.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Op(DatasetId, Op),
    /// An operation while blocks cannot be read.
    OpUnread(DatasetId, Op),
    Sync(DatasetId),
    Commit(DatasetId),
    CreateDataset,
    Snapshot(DatasetId),
    Clone(SnapshotId),
    DeleteDataset(DatasetId),
    DeleteSnapshot(SnapshotId),
    Label(DatasetId),
    Reclaim,
    Scrub,
    ClearCache,
    /// The engine stops and starts; not `close`: it is killed.
    Reopen {
        close: bool,
    },
    /// Somebody else takes the device's room, up to the reserve and this.
    Fill(u64),
    /// There is room again.
    Room,
    /// Flushes of these files fail until the engine is restarted.
    FailFlushes(&'static str),
    /// The device has no room to flush these files until there is room again.
    RefuseFlushes(&'static str),
}

/// A store on its disk.
pub(crate) struct World {
    pub(crate) disk: Arc<SimDisk>,
    options: StoreOptions,
    clock: Arc<TickClock>,
    steps: u64,
    store: Option<Arc<Store>>,
}

impl World {
    /// A disk with a new store that `prepare` was shown before.
    pub(crate) fn new(
        seed: u64,
        options: &StoreOptions,
        prepare: &dyn Fn(&SimDisk),
    ) -> Result<World, (Arc<SimDisk>, Error)> {
        let disk = SimDisk::new(seed);
        prepare(&disk);
        let clock: Arc<TickClock> = Arc::default();
        let made = create(&disk, options).and_then(|()| open_at(&disk, options, clock.clone()));
        disk.settle();
        match made {
            Ok(store) => {
                Ok(World { disk, options: options.clone(), clock, steps: 0, store: Some(store) })
            }
            Err(error) => Err((disk, error)),
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        self.store.as_ref().expect("a world without power is not looked into")
    }

    /// Takes one step; returns the number of what it made. For a reopening: 1 if it closed cleanly.
    pub(crate) fn take(&mut self, step: &Step) -> Result<Option<u64>, Error> {
        // It stands still within a step: what a step reads from disk, and so how often it fails and
        // reads the clock, depends on what was read before it.
        self.steps += 1;
        self.clock.ticks.store(self.steps * STEP_TICKS, Ordering::Relaxed);
        let outcome = self.take_step(step);
        if !self.disk.lost_power() {
            // Late flushes are late within one step only: what a step said is then as durable as ever.
            self.disk.settle();
        }
        outcome
    }

    fn take_step(&mut self, step: &Step) -> Result<Option<u64>, Error> {
        match step {
            Step::Reopen { close } => return self.reopen(*close).map(|clean| Some(clean.into())),
            Step::Fill(left) => {
                let used = self.disk.used();
                self.disk.set_capacity(Some(used + RESERVE + left));
                return Ok(None);
            }
            Step::Room => {
                self.disk.set_capacity(None);
                self.disk.refuse_syncs(None);
                // So that the pool knows: or an operation would make room by a commit, which fails without reads and
                // not in a repetition.
                self.store().stats();
                return Ok(None);
            }
            Step::RefuseFlushes(prefix) => {
                self.disk.refuse_syncs(Some(prefix));
                return Ok(None);
            }
            Step::FailFlushes(prefix) => {
                self.disk.fail_syncs(Some(prefix));
                return Ok(None);
            }
            _ => {}
        }
        let store = self.store();
        match step {
            Step::Op(id, op) => return apply_real(&*store.dataset(*id)?, op),
            Step::OpUnread(id, op) => {
                let dataset = store.dataset(*id)?;
                store.pool().clear_cache();
                self.disk.fail_reads(Some(BLOCKS));
                let outcome = apply_real(&dataset, op);
                self.disk.fail_reads(None);
                return outcome;
            }
            Step::Sync(id) => store.dataset(*id)?.sync()?,
            Step::Commit(id) => store.dataset(*id)?.commit()?,
            Step::CreateDataset => return Ok(Some(store.create_dataset()?.0)),
            Step::Snapshot(id) => return Ok(Some(store.snapshot(*id)?.0)),
            Step::Clone(id) => return Ok(Some(store.clone_snapshot(*id)?.0)),
            Step::DeleteDataset(id) => store.delete_dataset(*id)?,
            Step::DeleteSnapshot(id) => store.delete_snapshot(*id)?,
            Step::Label(id) => store.set_dataset_label(*id, b"a label")?,
            Step::Reclaim => {
                store.pool().reclaim_step()?;
            }
            Step::Scrub => {
                let tell = &mut |_: &ScrubState| ControlFlow::Continue(());
                let report = store.pool().scrub(ScrubState::default(), u64::MAX, tell)?;
                if report.damaged > 0 && !self.disk.lost_power() {
                    panic!("a scrub finds damage where none was done: {:?}", store.faults());
                }
            }
            Step::ClearCache => store.pool().clear_cache(),
            Step::Reopen { .. }
            | Step::Fill(_)
            | Step::Room
            | Step::FailFlushes(_)
            | Step::RefuseFlushes(_) => {}
        }
        Ok(None)
    }

    fn reopen(&mut self, close: bool) -> Result<bool, Error> {
        let mut clean = false;
        if let Some(store) = self.store.take() {
            clean = close && store.close().is_ok();
        }
        self.disk.fail_syncs(None);
        self.store = Some(open_at(&self.disk, &self.options, self.clock.clone())?);
        Ok(clean)
    }
}
