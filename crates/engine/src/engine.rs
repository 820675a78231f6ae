//! The engine's API: what the server and tests call.

use crate::bookmarks::{self, BookmarkView};
use crate::core::Core;
use crate::exports::Exports;
use crate::host::Host;
use crate::keeping::{self, Keeping};
use crate::ledger::{Deletion, LedgerEntry};
use crate::moments::find_parent;
use crate::paths::Paths;
use crate::policies::PolicyView;
use crate::scrub::{self, ScrubReport};
use crate::servers::{Servers, stop_leftovers};
use crate::takeover::{self, Survivors};
use crate::timeflows::HistoryView;
use crate::views::{self, DsourceView, EngineView, PoolView, SnapshotView, VdbView};
use crate::{
    damage, dsource_jobs, ledger, leftovers, link, losses, policies, pool_jobs, provision,
    readiness, restart, resync, retention, room, snapshots, timeflows, vdb_jobs, watch,
};
use jiff::Timestamp;
use offshoot_catalog::{Catalog, Job};
use offshoot_dataset::{Store, StoreOptions};
use offshoot_domain::{
    Dsource, Moment, ObjectName, Parent, Policy, PolicyChange, Snapshot, SnapshotKind, Vdb,
    VdbState,
};
use offshoot_os::disk::{Disk, LinuxDisk};
use offshoot_os::{Clock, SystemClock};
use offshoot_postgres::source::{Password, Source};
use offshoot_types::{ErrorKind, Failure, JobId, SnapshotId};
use offshoot_workflow::{AbortAt, Runner, Workflow};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Variable that names the step at which a test lets the engine die.
const CRASH_VARIABLE: &str = "OFFSHOOT_CRASH_AT";
/// How long jobs may take to end when the engine stops.
const STOP_JOBS: Duration = Duration::from_secs(60);
/// How long jobs that a crash interrupted may take before objects are started without them.
const RESUME_JOBS: Duration = Duration::from_secs(600);
/// Room set aside for deletions on a file system that others have filled, in bytes.
const BALLAST: u64 = 64 << 20;
/// Jobs a list shows.
const JOBS_LISTED: u32 = 1000;

/// How to open an engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The pool directory; made where missing.
    pub pool: PathBuf,
    /// What the shared block cache may hold, in bytes; a share of the memory where absent.
    pub cache_size: Option<u64>,
    /// The most the pool's blocks may take of its file system, in bytes; all of it where absent.
    pub capacity: Option<u64>,
    /// Directories with PostgreSQL's programs, looked at first.
    pub postgres_bin_dirs: Vec<PathBuf>,
    /// The program whose subcommand `keeper` runs [`keep`]; without it VDBs end with the engine.
    pub keeper: Option<PathBuf>,
}

/// A running engine.
pub struct Engine {
    core: Arc<Core>,
    started_at: Timestamp,
    stopping: Arc<AtomicBool>,
    /// What the engine does by itself.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn workflows() -> Vec<Workflow<Core>> {
    let mut all = vec![
        link::workflow(),
        resync::workflow(),
        provision::workflow(),
        readiness::workflow(),
        retention::workflow(),
        pool_jobs::reclaim_workflow(),
        scrub::workflow(),
    ];
    all.extend(dsource_jobs::workflows());
    all.extend(snapshots::workflows());
    all.extend(bookmarks::workflows());
    all.extend(vdb_jobs::workflows());
    all
}

/// Runs the keeper of a pool until nobody needs it.
///
/// # Errors
/// When its socket cannot be made.
pub fn keep(pool: &std::path::Path) -> Result<(), Failure> {
    let paths = Paths::prepare(pool)?;
    offshoot_keeper::keep(&keeping::socket(paths.runtime()))
        .map_err(|error| Failure::internal(format!("the keeper cannot keep: {error}")))
}

impl Engine {
    /// Opens a pool, cleans up what a crash left, finishes or undoes interrupted jobs and starts what
    /// should run.
    ///
    /// # Errors
    /// What prevents it, with its mend: pool in use, of a newer format, not writable; host without
    /// FUSE; …
    pub fn open(options: &EngineOptions) -> Result<Engine, Failure> {
        let cache_size = cache_size(options.cache_size)?;
        offshoot_fuse::check_host()?;
        let host = Host::new(options.postgres_bin_dirs.clone())?;
        let paths = Paths::prepare(&options.pool)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let keeping = Keeping::connect(options.keeper.clone(), &paths);
        let survivors = Survivors::of(&keeping);
        let store = open_store(&paths, cache_size, options.capacity, clock.clone(), &survivors)?;
        room::make_way(&store);
        paths.make_runtime()?;
        paths.remove_deserted_runtimes();
        keeping.start();
        let catalog = Arc::new(Catalog::open(&paths.catalog())?);
        let ballast = Arc::downgrade(&store);
        catalog.on_full(move || ballast.upgrade().is_some_and(|it| it.pool().release_ballast()));
        let allow_other = host.user().is_some();
        let core = Arc::new(Core {
            exports: Exports::new(store.clone(), paths.clone(), allow_other, keeping),
            paths,
            store,
            catalog: catalog.clone(),
            host,
            clock: clock.clone(),
            servers: Servers::default(),
            followers: Mutex::default(),
            retention_wanted: Mutex::default(),
            ledger: Default::default(),
            damage: Default::default(),
            runner: std::sync::OnceLock::new(),
            room: room::Seen::default(),
        });
        clean_up(&core, survivors)?;
        leftovers::check_catalog(&core)?;
        damage::recall(&core)?;
        let runner = match std::env::var(CRASH_VARIABLE) {
            Ok(text) => {
                let abort = Arc::new(AbortAt::parse(&text)?);
                Runner::with_crash_points(catalog, clock, workflows(), abort)
            }
            Err(_) => Runner::new(catalog, clock, workflows()),
        };
        let _ = core.runner.set(runner);
        resume(&core)?;
        losses::report_all(&core)?;
        restart::start_all(&core)?;
        let started_at = core.now();
        let stopping = Arc::new(AtomicBool::new(false));
        let engine = Engine { core, started_at, stopping, threads: Mutex::default() };
        engine.spawn("watch", watch::run)?;
        engine.spawn("ledger", ledger::run)?;
        engine.spawn("damage", damage::run)?;
        Ok(engine)
    }

    /// Stops jobs, followers and servers cleanly, unmounts and closes the pool. What ran is started
    /// again by the next [`Engine::open`].
    ///
    /// # Errors
    /// When the pool cannot be closed; everything acknowledged is durable all the same.
    pub fn close(&self) -> Result<(), Failure> {
        self.quiesce()?;
        restart::stop_all(&self.core);
        self.core.exports.keeping().end();
        self.core.paths.remove_runtime();
        self.core.store.close().map_err(|error| error.failure())
    }

    /// Makes room for another engine: jobs and followers end, VDBs and their mounts go on. The process
    /// must end right after, as if it were killed: everything is with the keeper.
    ///
    /// # Errors
    /// When not everything could be committed; the next engine finds it all the same.
    pub fn make_room(&self) -> Result<(), Failure> {
        self.quiesce()?;
        restart::stop_followers(&self.core);
        self.core.store.commit_all().map_err(|error| error.failure())
    }

    fn quiesce(&self) -> Result<(), Failure> {
        self.stopping.store(true, Ordering::Relaxed);
        room::make_way(&self.core.store);
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        let open = self.core.runner()?.stop(STOP_JOBS);
        if !open.is_empty() {
            tracing::warn!(?open, "jobs that did not end; the next start takes them up");
        }
        Ok(())
    }

    /// Starts a thread that works until the engine stops.
    fn spawn(&self, name: &str, work: fn(&Arc<Core>, &AtomicBool)) -> Result<(), Failure> {
        let (core, stopping) = (self.core.clone(), self.stopping.clone());
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&core, &stopping))
            .map_err(|error| Failure::internal(format!("no thread for '{name}': {error}")))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// The engine at a glance.
    pub fn view(&self) -> Result<EngineView, Failure> {
        // What a read has just found must not wait for the next round.
        damage::report(&self.core);
        let vdbs: Vec<Vdb> = self.core.catalog.list()?;
        let jobs = self.core.catalog.unsettled_jobs()?;
        Ok(EngineView {
            dsources: self.core.catalog.list::<Dsource>()?.len() as u64,
            vdbs: vdbs.len() as u64,
            vdbs_running: vdbs.iter().filter(|vdb| vdb.state == VdbState::Running).count() as u64,
            jobs_active: jobs.iter().filter(|job| !job.state.is_final()).count() as u64,
            started_at: self.started_at,
            faults: room::fault(&self.core)
                .into_iter()
                .chain(self.core.catalog.faults()?)
                .collect(),
            survival: self.core.exports.keeping().survival(),
            last_scrub: scrub::last(&self.core)?,
        })
    }

    /// The pool directory.
    pub fn pool_dir(&self) -> &std::path::Path {
        self.core.paths.pool()
    }

    /// Gives space that nothing needs back, as a job.
    ///
    /// # Errors
    /// `Busy` when it is under way.
    pub fn reclaim(&self) -> Result<JobId, Failure> {
        pool_jobs::submit_reclaim(&self.core)
    }

    /// Reads and verifies everything in the pool, as a job, at most so many bytes a second.
    ///
    /// # Errors
    /// `InvalidInput` for the rate; `Busy` when it is under way.
    pub fn scrub(&self, bytes_per_s: Option<u64>) -> Result<JobId, Failure> {
        scrub::submit(&self.core, bytes_per_s)
    }

    /// The last scrub, and the damage known now.
    ///
    /// # Errors
    /// The catalog's.
    pub fn last_scrub(&self) -> Result<ScrubReport, Failure> {
        scrub::report(&self.core)
    }

    /// What all objects hold of the pool, or one and its snapshots.
    ///
    /// # Errors
    /// `NotFound` for the object.
    pub fn ledger(&self, object: Option<&str>) -> Result<Vec<LedgerEntry>, Failure> {
        ledger::list(&self.core, object)
    }

    /// What deleting objects together would give back.
    ///
    /// # Errors
    /// `NotFound` for one of them.
    pub fn ledger_deletion(&self, objects: &[String]) -> Result<Deletion, Failure> {
        ledger::deletion(&self.core, objects)
    }

    /// The pool's figures.
    pub fn pool(&self) -> PoolView {
        views::pool(&self.core)
    }

    /// Links a source.
    ///
    /// # Errors
    /// `InvalidInput` for the name or the URI, `AlreadyExists` for the name.
    pub fn link(
        &self,
        name: &str,
        source: &str,
        password: Option<&str>,
        snapshot_every_ms: Option<u64>,
    ) -> Result<JobId, Failure> {
        let name: ObjectName = name.parse()?;
        let source = Source::parse(source, password.map(Password::new))?;
        let change =
            PolicyChange { snapshot_every_ms: snapshot_every_ms.map(Some), ..Default::default() };
        room::check_takes_on(&self.core, "a new link")?;
        let dsource = self.core.catalog.allocate::<Dsource>()?;
        let policy = Policy::default().changed(&change, dsource.into())?;
        let input = link::Input { dsource, name, source: source.address.to_string(), policy };
        link::submit(&self.core, input, source.password)
    }

    /// All dSources, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn dsources(&self) -> Result<Vec<DsourceView>, Failure> {
        let mut all: Vec<Dsource> = self.core.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        views::dsources(&self.core, all)
    }

    /// One dSource.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn dsource(&self, name: &str) -> Result<DsourceView, Failure> {
        let mut one = views::dsources(&self.core, vec![self.core.dsource(name)?])?;
        one.pop().ok_or_else(|| Failure::internal("a dSource without a view"))
    }

    /// Receives what the source has now and takes a snapshot.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn sync(&self, name: &str) -> Result<JobId, Failure> {
        snapshots::submit_sync(&self.core, name)
    }

    /// Stops following a source.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn pause(&self, name: &str) -> Result<JobId, Failure> {
        dsource_jobs::submit_pause(&self.core, name)
    }

    /// Follows a source again.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn resume_dsource(&self, name: &str) -> Result<JobId, Failure> {
        dsource_jobs::submit_resume(&self.core, name)
    }

    /// Removes a dSource.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn unlink(&self, name: &str) -> Result<JobId, Failure> {
        dsource_jobs::submit_unlink(&self.core, name)
    }

    /// Takes a snapshot of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn take_snapshot(&self, object: &str) -> Result<JobId, Failure> {
        let owner = find_parent(&self.core, object)?;
        snapshots::submit_take(&self.core, owner, object, SnapshotKind::Manual)
    }

    /// Snapshots of one object or of all, oldest first.
    ///
    /// # Errors
    /// `NotFound` for the object.
    pub fn snapshots(&self, object: Option<&str>) -> Result<Vec<SnapshotView>, Failure> {
        views::snapshots(&self.core, object)
    }

    /// One snapshot.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn snapshot(&self, id: SnapshotId) -> Result<SnapshotView, Failure> {
        let snapshot: Snapshot = snapshots::find(&self.core, id)?;
        views::snapshot(&self.core, snapshot)
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete_snapshot(&self, id: SnapshotId) -> Result<JobId, Failure> {
        snapshots::submit_delete(&self.core, id)
    }

    /// Provisions a VDB.
    ///
    /// # Errors
    /// What can be known at once: names, ports, settings, moments.
    #[allow(clippy::too_many_arguments)] // the fields of one request
    pub fn provision(
        &self,
        name: &str,
        from: &str,
        moment: Moment,
        port: Option<u16>,
        settings: BTreeMap<String, String>,
        memory_bytes: Option<u64>,
        keep_source_logins: bool,
    ) -> Result<JobId, Failure> {
        let requested_ms = self.core.elapsed_ms();
        let name: ObjectName = name.parse()?;
        let owner = find_parent(&self.core, from)?;
        room::check_takes_on(&self.core, "a new VDB")?;
        let input = provision::Input {
            vdb: self.core.catalog.allocate::<Vdb>()?,
            name,
            parent: Parent { owner, name: from.parse()? },
            moment,
            port,
            settings,
            memory_bytes,
            keep_source_logins,
            requested_ms,
        };
        provision::submit(&self.core, input)
    }

    /// All VDBs, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn vdbs(&self) -> Result<Vec<VdbView>, Failure> {
        let mut all: Vec<Vdb> = self.core.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        views::vdbs(&self.core, all)
    }

    /// One VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn vdb(&self, name: &str) -> Result<VdbView, Failure> {
        let mut one = views::vdbs(&self.core, vec![self.core.vdb(name)?])?;
        one.pop().ok_or_else(|| Failure::internal("a VDB without a view"))
    }

    /// Starts a stopped VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn start_vdb(&self, name: &str) -> Result<JobId, Failure> {
        vdb_jobs::submit_start(&self.core, name)
    }

    /// Stops a running VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn stop_vdb(&self, name: &str) -> Result<JobId, Failure> {
        vdb_jobs::submit_stop(&self.core, name)
    }

    /// Deletes a VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete_vdb(&self, name: &str) -> Result<JobId, Failure> {
        vdb_jobs::submit_delete(&self.core, name)
    }

    /// Opens another moment of the parent.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `MomentUnavailable`.
    pub fn refresh_vdb(&self, name: &str, moment: Moment) -> Result<JobId, Failure> {
        vdb_jobs::submit_refresh(&self.core, name, moment)
    }

    /// Goes back to a snapshot or bookmark of the VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn rewind_vdb(&self, name: &str, to: Moment) -> Result<JobId, Failure> {
        vdb_jobs::submit_rewind(&self.core, name, to)
    }

    /// Takes the last rewind or refresh back.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn undo_rewind(&self, name: &str) -> Result<JobId, Failure> {
        vdb_jobs::submit_rewind_undo(&self.core, name)
    }

    /// Gives a name to a moment of a dSource or VDB.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, `MomentUnavailable`.
    pub fn create_bookmark(&self, name: &str, on: &str, at: Moment) -> Result<JobId, Failure> {
        bookmarks::submit_create(&self.core, name, find_parent(&self.core, on)?, at)
    }

    /// All bookmarks, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn bookmarks(&self) -> Result<Vec<BookmarkView>, Failure> {
        bookmarks::list(&self.core)
    }

    /// One bookmark.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn bookmark(&self, name: &str) -> Result<BookmarkView, Failure> {
        bookmarks::show(&self.core, name)
    }

    /// Deletes a bookmark.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete_bookmark(&self, name: &str) -> Result<JobId, Failure> {
        bookmarks::submit_delete(&self.core, name)
    }

    /// What can be opened of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn timeflows(&self, object: &str) -> Result<HistoryView, Failure> {
        timeflows::show(&self.core, object)
    }

    /// The policies of all dSources and VDBs.
    ///
    /// # Errors
    /// The catalog's.
    pub fn policies(&self) -> Result<Vec<PolicyView>, Failure> {
        policies::list(&self.core)
    }

    /// The policy of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn policy(&self, object: &str) -> Result<PolicyView, Failure> {
        policies::show(&self.core, object)
    }

    /// Changes the policy of a dSource or VDB; what it no longer keeps goes soon after.
    ///
    /// # Errors
    /// `NotFound`, `InvalidInput`.
    pub fn set_policy(&self, object: &str, change: &PolicyChange) -> Result<PolicyView, Failure> {
        policies::set(&self.core, object, change)
    }

    /// The last jobs, newest first.
    ///
    /// # Errors
    /// The catalog's.
    pub fn jobs(&self) -> Result<Vec<Job>, Failure> {
        self.core.runner()?.jobs(JOBS_LISTED)
    }

    /// One job.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn job(&self, id: JobId) -> Result<Job, Failure> {
        self.core.runner()?.job(id)
    }

    /// Asks a job to stop.
    ///
    /// # Errors
    /// `NotFound`, `WrongState`.
    pub fn cancel_job(&self, id: JobId) -> Result<Job, Failure> {
        self.core.runner()?.cancel(id)?;
        self.job(id)
    }
}

/// Finishes or undoes what a crash interrupted, then removes what nobody knows.
fn resume(core: &Arc<Core>) -> Result<(), Failure> {
    // Undoing a step may need the log of a dSource, or stop what is not there: both are harmless.
    let deadline = core.clock.elapsed() + RESUME_JOBS;
    for job in core.runner()?.resume(core)? {
        let left = deadline.saturating_sub(core.clock.elapsed());
        let ended = core.runner()?.wait(job, left)?;
        tracing::info!(%job, kind = ended.kind, state = ended.state.as_str(), "an interrupted job");
    }
    if core.runner()?.has_unsettled()? { Ok(()) } else { leftovers::remove(core) }
}

/// Takes over what goes on. Whatever else still runs on the pool, whose lock is ours, was left by an
/// engine that was killed.
fn clean_up(core: &Arc<Core>, survivors: Survivors) -> Result<(), Failure> {
    let going_on = takeover::take_over(core, survivors)?;
    stop_leftovers(core.paths.runtime(), &going_on.servers)?;
    for stale in offshoot_fuse::clean_stale_mounts(core.paths.mounts(), &going_on.mounts)? {
        tracing::info!(mount = %stale.display(), "a stale mount was removed");
    }
    offshoot_os::cgroup::remove_empty("offshoot-");
    Ok(())
}

fn open_store(
    paths: &Paths,
    cache: u64,
    capacity: Option<u64>,
    clock: Arc<dyn Clock>,
    survivors: &Survivors,
) -> Result<Arc<Store>, Failure> {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(paths.pool()).map_err(|error| {
        let message = format!("the pool {} cannot be used: {error}", paths.pool().display());
        Failure::new(ErrorKind::HostUnprepared, message, "check its permissions and its disk")
    })?);
    let mut options = StoreOptions::default();
    options.pool.cache_size = cache;
    options.pool.capacity = capacity;
    options.pool.ballast = BALLAST;
    if !paths.pool().join("label").exists() {
        Store::create(&disk, &options).map_err(|error| error.failure())?;
    }
    Store::take_over(disk, &options, clock, &survivors.logs).map_err(|error| error.failure())
}

/// The size of the shared cache: as asked for, or a quarter of this host's memory.
fn cache_size(wanted: Option<u64>) -> Result<u64, Failure> {
    let memory = memory_bytes();
    match wanted {
        Some(size) if size > memory => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("a cache of {size} bytes does not fit this host's {memory} bytes of memory"),
            "choose a smaller --cache-size",
        )),
        Some(size) => Ok(size),
        None => Ok((memory / 4).max(64 << 20)),
    }
}

fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}
