//! The engine's API: what the server and tests call.

use crate::core::Core;
use crate::face::policies::{self, PolicyView};
use crate::face::timeflows::{self, HistoryView};
use crate::face::views::{self, DsourceView, EngineView, PoolView, SnapshotView, VdbView};
use crate::following::Following;
use crate::ground::keeping::Keeping;
use crate::ground::paths::{Paths, keeper_socket};
use crate::history::bookmarks::{self, BookmarkView};
use crate::history::names;
use crate::history::snapshots;
use crate::housekeeping::leftovers;
use crate::housekeeping::restart;
use crate::housekeeping::takeover::{self, Survivors};
use crate::housekeeping::watch;
use crate::images::readiness;
use crate::jobs::bookmark;
use crate::jobs::dsource;
use crate::jobs::link;
use crate::jobs::pool;
use crate::jobs::provision;
use crate::jobs::resync;
use crate::jobs::retention;
use crate::jobs::scrub::{self, ScrubReport};
use crate::jobs::snapshot;
use crate::jobs::vdb;
use crate::parts::Parts;
use crate::serving::Serving;
use crate::serving::servers::stop_leftovers;
use crate::serving::volumes::Volumes;
use crate::space::Space;
use crate::space::damage;
use crate::space::ledger::{self, Deletion, LedgerEntry};
use crate::space::losses;
use crate::space::room;
use jiff::Timestamp;
use offshoot_catalog::{Catalog, Job};
use offshoot_connector::Registry;
use offshoot_dataset::{Store, StoreOptions};
use offshoot_delivery::Delivery;
use offshoot_domain::{
    Dsource, Moment, ObjectName, Parent, Policy, PolicyChange, Secret, Snapshot, SnapshotKind, Vdb,
    VdbState,
};
use offshoot_os::disk::{Disk, LinuxDisk};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, JobId, SnapshotId};
use offshoot_workflow::{AbortAt, CrashPoints, Runner, Workflow};
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
#[derive(Clone)]
pub struct EngineOptions {
    /// The pool directory; made where missing.
    pub pool: PathBuf,
    /// What the shared block cache may hold, in bytes; a share of the memory where absent.
    pub cache_size: Option<u64>,
    /// The most the pool's blocks may take of its file system, in bytes; all of it where absent.
    pub capacity: Option<u64>,
    /// The kinds of databases it works with.
    pub connectors: Registry,
    /// How datasets reach the servers that work in them.
    pub delivery: Arc<dyn Delivery>,
    /// The program whose subcommand `keeper` runs [`keep`]; without it VDBs end with the engine.
    pub keeper: Option<PathBuf>,
}

/// A running engine.
pub struct Engine {
    parts: Arc<Parts>,
    started_at: Timestamp,
    stopping: Arc<AtomicBool>,
    /// What the engine does by itself.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

fn workflows() -> Vec<Workflow<Parts>> {
    let mut all = vec![
        link::workflow(),
        resync::workflow(),
        provision::workflow(),
        readiness::workflow(),
        retention::workflow(),
        restart::workflow(),
        pool::reclaim_workflow(),
        scrub::workflow(),
    ];
    all.extend(dsource::workflows());
    all.extend(snapshot::workflows());
    all.extend(bookmark::workflows());
    all.extend(vdb::workflows());
    all
}

/// Runs the keeper of a pool until nobody needs it.
///
/// # Errors
/// When its socket cannot be made.
pub fn keep(pool: &std::path::Path) -> Result<(), Failure> {
    let paths = Paths::prepare(pool)?;
    offshoot_keeper::keep(&keeper_socket(paths.runtime()))
        .map_err(|error| Failure::internal(format!("the keeper cannot keep: {error}")))
}

impl Engine {
    /// Opens a pool, cleans up what a crash left, finishes or undoes interrupted jobs and starts what
    /// should run.
    ///
    /// # Errors
    /// What prevents it, with its mend: pool in use, of a newer format, not writable; host that
    /// cannot deliver datasets; …
    pub fn open(options: &EngineOptions) -> Result<Engine, Failure> {
        match std::env::var(CRASH_VARIABLE) {
            Ok(text) => Engine::open_with(options, Some(Arc::new(AbortAt::parse(&text)?))),
            Err(_) => Engine::open_with(options, None),
        }
    }

    /// As [`Engine::open`], with places where a test lets the engine die or a job fail.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_with_crash_points(
        options: &EngineOptions,
        crash_points: Arc<dyn CrashPoints>,
    ) -> Result<Engine, Failure> {
        Engine::open_with(options, Some(crash_points))
    }

    fn open_with(
        options: &EngineOptions,
        crash_points: Option<Arc<dyn CrashPoints>>,
    ) -> Result<Engine, Failure> {
        let cache_size = cache_size(options.cache_size)?;
        options.delivery.check_host()?;
        let connectors = options.connectors.clone();
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
        let delivery = options.delivery.clone();
        let other_users = connectors.all().iter().any(|kind| kind.server_user().is_some());
        let volumes = Volumes::new(store.clone(), paths.clone(), delivery, other_users, keeping);
        let core =
            Core { paths, store, catalog: catalog.clone(), clock: clock.clone(), connectors };
        let space = Arc::new(Space::new(Arc::new(core)));
        let serving = Arc::new(Serving::new(space.clone(), volumes));
        let parts = Arc::new(Parts::new(Following::new(serving)));
        clean_up(&parts, survivors)?;
        leftovers::check_catalog(&parts)?;
        damage::recall(&parts)?;
        let runner = match crash_points {
            Some(points) => Runner::with_crash_points(catalog, clock, workflows(), points),
            None => Runner::new(catalog, clock, workflows()),
        };
        parts.set_runner(runner);
        resume(&parts)?;
        losses::report_all(&parts)?;
        restart::start_all(&parts)?;
        let started_at = parts.now();
        let stopping = Arc::new(AtomicBool::new(false));
        let engine = Engine { parts, started_at, stopping, threads: Mutex::default() };
        let parts = engine.parts.clone();
        engine.spawn("watch", move |stopping| watch::run(&parts, stopping))?;
        let counted = space.clone();
        engine.spawn("ledger", move |stopping| ledger::run(&counted, stopping))?;
        engine.spawn("damage", move |stopping| damage::run(&space, stopping))?;
        Ok(engine)
    }

    /// Stops jobs, followers and servers cleanly, unmounts and closes the pool. What ran is started
    /// again by the next [`Engine::open`].
    ///
    /// # Errors
    /// When the pool cannot be closed; everything acknowledged is durable all the same.
    pub fn close(&self) -> Result<(), Failure> {
        self.quiesce()?;
        restart::stop_all(&self.parts);
        self.parts.volumes.keeping().end();
        self.parts.paths.remove_runtime();
        self.parts.store.close().map_err(|error| error.failure())
    }

    /// Makes room for another engine: jobs and followers end, VDBs and their mounts go on. The process
    /// must end right after, as if it were killed: everything is with the keeper.
    ///
    /// # Errors
    /// When not everything could be committed; the next engine finds it all the same.
    pub fn make_room(&self) -> Result<(), Failure> {
        self.quiesce()?;
        self.parts.stop_all();
        self.parts.store.commit_all().map_err(|error| error.failure())
    }

    fn quiesce(&self) -> Result<(), Failure> {
        self.stopping.store(true, Ordering::Relaxed);
        room::make_way(&self.parts.store);
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
        let open = self.parts.runner()?.stop(STOP_JOBS);
        if !open.is_empty() {
            tracing::warn!(?open, "jobs that did not end; the next start takes them up");
        }
        Ok(())
    }

    /// Starts a thread that works until the engine stops.
    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<(), Failure> {
        let stopping = self.stopping.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&stopping))
            .map_err(|error| Failure::internal(format!("no thread for '{name}': {error}")))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// The engine at a glance.
    pub fn view(&self) -> Result<EngineView, Failure> {
        // What a read has just found must not wait for the next round.
        damage::report(&self.parts);
        let vdbs: Vec<Vdb> = self.parts.catalog.list()?;
        let jobs = self.parts.catalog.unsettled_jobs()?;
        Ok(EngineView {
            dsources: self.parts.catalog.list::<Dsource>()?.len() as u64,
            vdbs: vdbs.len() as u64,
            vdbs_running: vdbs.iter().filter(|vdb| vdb.state == VdbState::Running).count() as u64,
            jobs_active: jobs.iter().filter(|job| !job.state.is_final()).count() as u64,
            started_at: self.started_at,
            faults: room::fault(&self.parts)
                .into_iter()
                .chain(self.parts.catalog.faults()?)
                .collect(),
            survival: self.parts.volumes.keeping().survival(),
            last_scrub: scrub::last(&self.parts)?,
        })
    }

    /// The pool directory.
    pub fn pool_dir(&self) -> &std::path::Path {
        self.parts.paths.pool()
    }

    /// Gives space that nothing needs back, as a job.
    ///
    /// # Errors
    /// `Busy` when it is under way.
    pub fn reclaim(&self) -> Result<JobId, Failure> {
        pool::submit_reclaim(&self.parts)
    }

    /// Reads and verifies everything in the pool, as a job, at most so many bytes a second.
    ///
    /// # Errors
    /// `InvalidInput` for the rate; `Busy` when it is under way.
    pub fn scrub(&self, bytes_per_s: Option<u64>) -> Result<JobId, Failure> {
        scrub::submit(&self.parts, bytes_per_s)
    }

    /// The last scrub, and the damage known now.
    ///
    /// # Errors
    /// The catalog's.
    pub fn last_scrub(&self) -> Result<ScrubReport, Failure> {
        scrub::report(&self.parts)
    }

    /// What all objects hold of the pool, or one and its snapshots.
    ///
    /// # Errors
    /// `NotFound` for the object.
    pub fn ledger(&self, object: Option<&str>) -> Result<Vec<LedgerEntry>, Failure> {
        ledger::list(&self.parts, object)
    }

    /// What deleting objects together would give back.
    ///
    /// # Errors
    /// `NotFound` for one of them.
    pub fn ledger_deletion(&self, objects: &[String]) -> Result<Deletion, Failure> {
        ledger::deletion(&self.parts, objects)
    }

    /// The pool's figures.
    pub fn pool(&self) -> PoolView {
        views::pool(&self.parts)
    }

    /// Links a source.
    ///
    /// # Errors
    /// `InvalidInput` for the name or the URI, `AlreadyExists` for the name.
    pub fn link(
        &self,
        name: &str,
        connector: &str,
        source: &str,
        password: Option<&str>,
        snapshot_every_ms: Option<u64>,
    ) -> Result<JobId, Failure> {
        let name: ObjectName = name.parse()?;
        let connector = self.parts.connectors.find(connector)?;
        let source = connector.parse_source(source, password.map(Secret::new))?;
        let change =
            PolicyChange { snapshot_every_ms: snapshot_every_ms.map(Some), ..Default::default() };
        room::check_takes_on(&self.parts, "a new link")?;
        let dsource = self.parts.catalog.allocate::<Dsource>()?;
        let policy = Policy::default().changed(&change, dsource.into())?;
        let connector = connector.kind().to_owned();
        let input = link::Input { dsource, name, connector, source: source.uri, policy };
        link::submit(&self.parts, input, source.secret)
    }

    /// All dSources, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn dsources(&self) -> Result<Vec<DsourceView>, Failure> {
        let mut all: Vec<Dsource> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        views::dsources(&self.parts, all)
    }

    /// One dSource.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn dsource(&self, name: &str) -> Result<DsourceView, Failure> {
        let mut one = views::dsources(&self.parts, vec![self.parts.dsource(name)?])?;
        one.pop().ok_or_else(|| Failure::internal("a dSource without a view"))
    }

    /// Receives what the source has now and takes a snapshot.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn sync(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_sync(&self.parts, name)
    }

    /// Stops following a source.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn pause(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_pause(&self.parts, name)
    }

    /// Follows a source again.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn resume_dsource(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_resume(&self.parts, name)
    }

    /// Removes a dSource.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn unlink(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_unlink(&self.parts, name)
    }

    /// Takes a snapshot of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn take_snapshot(&self, object: &str) -> Result<JobId, Failure> {
        let owner = names::find(&self.parts, object)?;
        snapshot::submit_take(&self.parts, owner, object, SnapshotKind::Manual)
    }

    /// Snapshots of one object or of all, oldest first.
    ///
    /// # Errors
    /// `NotFound` for the object.
    pub fn snapshots(&self, object: Option<&str>) -> Result<Vec<SnapshotView>, Failure> {
        views::snapshots(&self.parts, object)
    }

    /// One snapshot.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn snapshot(&self, id: SnapshotId) -> Result<SnapshotView, Failure> {
        let snapshot: Snapshot = snapshots::find(&self.parts, id)?;
        views::snapshot(&self.parts, snapshot)
    }

    /// Deletes a snapshot.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete_snapshot(&self, id: SnapshotId) -> Result<JobId, Failure> {
        snapshot::submit_delete(&self.parts, id)
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
        let requested_ms = self.parts.elapsed_ms();
        let name: ObjectName = name.parse()?;
        let owner = names::find(&self.parts, from)?;
        room::check_takes_on(&self.parts, "a new VDB")?;
        let input = provision::Input {
            vdb: self.parts.catalog.allocate::<Vdb>()?,
            name,
            parent: Parent { owner, name: from.parse()? },
            moment,
            port,
            settings,
            memory_bytes,
            keep_source_logins,
            requested_ms,
        };
        provision::submit(&self.parts, input)
    }

    /// All VDBs, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn vdbs(&self) -> Result<Vec<VdbView>, Failure> {
        let mut all: Vec<Vdb> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        views::vdbs(&self.parts, all)
    }

    /// One VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn vdb(&self, name: &str) -> Result<VdbView, Failure> {
        let mut one = views::vdbs(&self.parts, vec![self.parts.vdb(name)?])?;
        one.pop().ok_or_else(|| Failure::internal("a VDB without a view"))
    }

    /// Starts a stopped VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn start_vdb(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_start(&self.parts, name)
    }

    /// Stops a running VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn stop_vdb(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_stop(&self.parts, name)
    }

    /// Deletes a VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete_vdb(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_delete(&self.parts, name)
    }

    /// Opens another moment of the parent.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `MomentUnavailable`.
    pub fn refresh_vdb(&self, name: &str, moment: Moment) -> Result<JobId, Failure> {
        vdb::submit_refresh(&self.parts, name, moment)
    }

    /// Goes back to a snapshot or bookmark of the VDB.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn rewind_vdb(&self, name: &str, to: Moment) -> Result<JobId, Failure> {
        vdb::submit_rewind(&self.parts, name, to)
    }

    /// Takes the last rewind or refresh back.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn undo_rewind(&self, name: &str) -> Result<JobId, Failure> {
        vdb::submit_rewind_undo(&self.parts, name)
    }

    /// Gives a name to a moment of a dSource or VDB.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, `MomentUnavailable`.
    pub fn create_bookmark(&self, name: &str, on: &str, at: Moment) -> Result<JobId, Failure> {
        bookmark::submit_create(&self.parts, name, names::find(&self.parts, on)?, at)
    }

    /// All bookmarks, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn bookmarks(&self) -> Result<Vec<BookmarkView>, Failure> {
        bookmarks::list(&self.parts)
    }

    /// One bookmark.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn bookmark(&self, name: &str) -> Result<BookmarkView, Failure> {
        bookmarks::show(&self.parts, name)
    }

    /// Deletes a bookmark.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete_bookmark(&self, name: &str) -> Result<JobId, Failure> {
        bookmark::submit_delete(&self.parts, name)
    }

    /// What can be opened of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn timeflows(&self, object: &str) -> Result<HistoryView, Failure> {
        timeflows::show(&self.parts, object)
    }

    /// The policies of all dSources and VDBs.
    ///
    /// # Errors
    /// The catalog's.
    pub fn policies(&self) -> Result<Vec<PolicyView>, Failure> {
        policies::list(&self.parts)
    }

    /// The policy of a dSource or VDB.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn policy(&self, object: &str) -> Result<PolicyView, Failure> {
        policies::show(&self.parts, object)
    }

    /// Changes the policy of a dSource or VDB; what it no longer keeps goes soon after.
    ///
    /// # Errors
    /// `NotFound`, `InvalidInput`.
    pub fn set_policy(&self, object: &str, change: &PolicyChange) -> Result<PolicyView, Failure> {
        policies::set(&self.parts, object, change)
    }

    /// The last jobs, newest first.
    ///
    /// # Errors
    /// The catalog's.
    pub fn jobs(&self) -> Result<Vec<Job>, Failure> {
        self.parts.runner()?.jobs(JOBS_LISTED)
    }

    /// One job.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn job(&self, id: JobId) -> Result<Job, Failure> {
        self.parts.runner()?.job(id)
    }

    /// Asks a job to stop.
    ///
    /// # Errors
    /// `NotFound`, `WrongState`.
    pub fn cancel_job(&self, id: JobId) -> Result<Job, Failure> {
        self.parts.runner()?.cancel(id)?;
        self.job(id)
    }
}

/// Finishes or undoes what a crash interrupted, then removes what nobody knows.
fn resume(parts: &Arc<Parts>) -> Result<(), Failure> {
    // Undoing a step may need the log of a dSource, or stop what is not there: both are harmless.
    let deadline = parts.clock.elapsed() + RESUME_JOBS;
    for job in parts.runner()?.resume(parts)? {
        let left = deadline.saturating_sub(parts.clock.elapsed());
        let ended = parts.runner()?.wait(job, left)?;
        tracing::info!(%job, kind = ended.kind, state = ended.state.as_str(), "an interrupted job");
    }
    if parts.runner()?.has_unsettled()? { Ok(()) } else { leftovers::remove(parts) }
}

/// Takes over what goes on. Whatever else still runs on the pool, whose lock is ours, was left by an
/// engine that was killed.
fn clean_up(parts: &Arc<Parts>, survivors: Survivors) -> Result<(), Failure> {
    let going_on = takeover::take_over(parts, survivors)?;
    stop_leftovers(&parts.connectors, parts.paths.runtime(), &going_on.servers)?;
    for stale in parts.volumes.delivery().clean_stale(&parts.paths.mounts(), &going_on.mounts)? {
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
