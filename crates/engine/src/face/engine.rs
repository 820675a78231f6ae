//! The engine's API: what the server and tests call. What can be asked of each kind of object stands in a file of its
//! own, behind a handle.

use crate::face::bisections::Bisections;
use crate::face::bookmarks::Bookmarks;
use crate::face::diffs::Diffs;
use crate::face::dsources::Dsources;
use crate::face::groups::Groups;
use crate::face::jobs::Jobs;
use crate::face::latencies::{self, LatenciesView};
use crate::face::masks::Masks;
use crate::face::opening::{self, EngineOptions};
use crate::face::peers::Peers;
use crate::face::policies::Policies;
use crate::face::pool::Pool;
use crate::face::profiles::Profiles;
use crate::face::replication::Replication;
use crate::face::secrets::Secrets;
use crate::face::snapshots::Snapshots;
use crate::face::templates::Templates;
use crate::face::timeflows::Timeflows;
use crate::face::users::Users;
use crate::face::vdbs::{self, Vdbs};
use crate::face::webhooks::Webhooks;
use crate::ground::custody::Survival;
use crate::ground::paths::{Paths, keeper_socket};
use crate::ground::stopping::Stopping;
use crate::housekeeping::gateways;
use crate::housekeeping::logs;
use crate::housekeeping::restart;
use crate::housekeeping::traces;
use crate::housekeeping::watch;
use crate::housekeeping::webhooks;
use crate::jobs::scrub::{self, ScrubView};
use crate::parts::Parts;
use crate::space::damage;
use crate::space::ledger;
use crate::space::room;
use jiff::Timestamp;
use offshoot_catalog::Fault;
use offshoot_delivery::Delivery;
use offshoot_domain::{Dsource, Vdb, VdbState};
use offshoot_types::{DatasetId, Failure};
use offshoot_workflow::CrashPoints;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long jobs may take to end when the engine stops.
const STOP_JOBS: Duration = Duration::from_secs(60);

/// A running engine.
pub struct Engine {
    parts: Arc<Parts>,
    started_at: Timestamp,
    stopping: Arc<Stopping>,
    /// What the engine does on its own.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// The engine at a glance.
#[derive(Debug, Clone)]
pub struct EngineView {
    /// How many dSources there are.
    pub dsources: u64,
    /// How many VDBs there are.
    pub vdbs: u64,
    /// How many of them are running.
    pub vdbs_running: u64,
    /// How many jobs are at work.
    pub jobs_active: u64,
    /// When the engine was started.
    pub started_at: Timestamp,
    /// What is wrong now.
    pub faults: Vec<Fault>,
    /// Whether running VDBs outlive the engine.
    pub survival: Survival,
    /// What is not wrong, but should be known: of which object, and what.
    pub warnings: Vec<(String, Failure)>,
    /// The last scrub, or the one under way.
    pub last_scrub: Option<ScrubView>,
}

/// Runs the keeper of a pool until nobody needs it.
///
/// # Errors
/// When its socket cannot be made.
pub fn run_keeper(pool: &std::path::Path, delivery: Arc<dyn Delivery>) -> Result<(), Failure> {
    offshoot_os::leave_share();
    let paths = Paths::of(pool)?;
    let socket = keeper_socket(paths.runtime());
    let release = move |held: &[u64]| {
        let kept: Vec<_> = held.iter().map(|key| paths.mount(DatasetId(*key))).collect();
        match delivery.fail_waiting(&paths.mounts(), &kept) {
            Ok(failed) => tracing::warn!(?failed, "mounts that answer nobody fail"),
            Err(failure) => tracing::warn!(%failure, "mounts that answer nobody"),
        }
    };
    offshoot_keeper::run(&socket, release)
        .map_err(|error| Failure::internal(format!("the keeper cannot run: {error}")))
}

fn warnings(parts: &Parts, dsources: &[Dsource], vdbs: &[Vdb]) -> Vec<(String, Failure)> {
    let of_dsources = dsources.iter().map(|one| (one.name.to_string(), one.warnings.clone()));
    let of_vdbs = vdbs.iter().map(|one| (one.name.to_string(), vdbs::warnings(parts, one)));
    let named = |(name, warnings): (String, Vec<Failure>)| {
        warnings.into_iter().map(move |warning| (name.clone(), warning))
    };
    let own = parts.volumes.owners().warning().map(|warning| ("engine".to_owned(), warning));
    own.into_iter().chain(of_dsources.chain(of_vdbs).flat_map(named)).collect()
}

impl Engine {
    /// Opens a pool, cleans up what a crash left, finishes or undoes interrupted jobs and starts what
    /// should run.
    ///
    /// # Errors
    /// What prevents it, with its fix: pool in use, of a newer format, not writable; host that
    /// cannot deliver datasets; …
    pub fn open(options: &EngineOptions) -> Result<Engine, Failure> {
        Engine::of(opening::open(options, opening::crash_points()?)?)
    }

    /// As [`Engine::open`], with places where a test lets the engine die or a job fail.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_with_crash_points(
        options: &EngineOptions,
        crash_points: Arc<dyn CrashPoints>,
    ) -> Result<Engine, Failure> {
        Engine::of(opening::open(options, Some(crash_points))?)
    }

    fn of(parts: Arc<Parts>) -> Result<Engine, Failure> {
        let started_at = parts.now();
        let stopping = Arc::new(Stopping::default());
        let engine = Engine { parts, started_at, stopping, threads: Mutex::default() };
        engine.spawn("watch", watch::run)?;
        engine.spawn("gateways", gateways::run)?;
        engine.spawn("logs", |parts, stopping| logs::run(parts, stopping))?;
        engine.spawn("ledger", |parts, stopping| ledger::run(parts, stopping))?;
        engine.spawn("damage", |parts, stopping| damage::run(parts, stopping))?;
        engine.spawn("webhooks", |parts, stopping| webhooks::run(parts, stopping))?;
        if let Some(collector) = engine.parts.collector.clone() {
            engine
                .spawn("traces", move |parts, stopping| traces::run(parts, &collector, stopping))?;
        }
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
        self.parts.volumes.custody().end();
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
        self.stopping.tell();
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
        work: impl FnOnce(&Arc<Parts>, &Stopping) + Send + 'static,
    ) -> Result<(), Failure> {
        let (parts, stopping) = (self.parts.clone(), self.stopping.clone());
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&parts, &stopping))
            .map_err(|error| Failure::internal(format!("no thread for '{name}': {error}")))?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// The engine at a glance.
    pub fn view(&self) -> Result<EngineView, Failure> {
        // What a read has just found must not wait for the next round.
        damage::report(&self.parts);
        let vdbs: Vec<Vdb> = self.parts.catalog.list()?;
        let dsources: Vec<Dsource> = self.parts.catalog.list()?;
        let jobs = self.parts.catalog.unsettled_jobs()?;
        Ok(EngineView {
            dsources: dsources.len() as u64,
            warnings: warnings(&self.parts, &dsources, &vdbs),
            vdbs: vdbs.len() as u64,
            vdbs_running: vdbs.iter().filter(|vdb| vdb.state == VdbState::Running).count() as u64,
            jobs_active: jobs.iter().filter(|job| !job.state.is_final()).count() as u64,
            started_at: self.started_at,
            faults: room::fault(&self.parts)
                .into_iter()
                .chain(self.parts.catalog.faults()?)
                .collect(),
            survival: self.parts.volumes.custody().survival(),
            last_scrub: scrub::last(&self.parts)?,
        })
    }

    /// How long servers and the store have waited for files and for the device.
    ///
    /// # Errors
    /// The catalog's.
    pub fn latencies(&self) -> Result<LatenciesView, Failure> {
        latencies::view(&self.parts)
    }

    /// The pool directory.
    pub fn pool_dir(&self) -> &std::path::Path {
        self.parts.paths.pool()
    }

    /// dSources.
    pub fn dsources(&self) -> Dsources<'_> {
        Dsources { parts: &self.parts }
    }

    /// VDBs.
    pub fn vdbs(&self) -> Vdbs<'_> {
        Vdbs { parts: &self.parts }
    }

    /// Snapshots of dSources and VDBs.
    pub fn snapshots(&self) -> Snapshots<'_> {
        Snapshots { parts: &self.parts }
    }

    /// Bookmarks.
    pub fn bookmarks(&self) -> Bookmarks<'_> {
        Bookmarks { parts: &self.parts }
    }

    /// Searches for the commit that changed an answer.
    pub fn bisections(&self) -> Bisections<'_> {
        Bisections { parts: &self.parts }
    }

    /// Masked dSources.
    pub fn masks(&self) -> Masks<'_> {
        Masks { parts: &self.parts }
    }

    /// Comparisons.
    pub fn diffs(&self) -> Diffs<'_> {
        Diffs { parts: &self.parts }
    }

    /// Groups of dSources, and the VDBs that were made of them.
    pub fn groups(&self) -> Groups<'_> {
        Groups { parts: &self.parts }
    }

    /// The histories of dSources and VDBs.
    pub fn timeflows(&self) -> Timeflows<'_> {
        Timeflows { parts: &self.parts }
    }

    /// The policies of dSources and VDBs.
    pub fn policies(&self) -> Policies<'_> {
        Policies { parts: &self.parts }
    }

    /// Jobs, those at work and those that have ended.
    pub fn jobs(&self) -> Jobs<'_> {
        Jobs { parts: &self.parts }
    }

    /// How secrets are sealed.
    pub fn secrets(&self) -> Secrets<'_> {
        Secrets { parts: &self.parts }
    }

    /// Users, their tokens, and the audit.
    pub fn users(&self) -> Users<'_> {
        Users { parts: &self.parts }
    }

    /// What is passed between engines.
    pub fn replication(&self) -> Replication<'_> {
        Replication { parts: &self.parts }
    }

    /// Other engines.
    pub fn peers(&self) -> Peers<'_> {
        Peers { parts: &self.parts }
    }

    /// What is sent to other engines.
    pub fn profiles(&self) -> Profiles<'_> {
        Profiles { parts: &self.parts }
    }

    /// What VDBs are to be like.
    pub fn templates(&self) -> Templates<'_> {
        Templates { parts: &self.parts }
    }

    /// Whom the engine tells of events.
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks { parts: &self.parts }
    }

    /// The pool and its ledger.
    pub fn pool(&self) -> Pool<'_> {
        Pool { parts: &self.parts }
    }
}
