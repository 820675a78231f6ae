//! Keeps a dSource in step with its source: stream, index of commits, staging standby.
//!
//! ```text
//!  receiver ──▶ archive (durable, then confirmed) ──update──▶ index of commits
//!                      └──────────feed──────────▶ staging standby ──▶ snapshots
//! ```
//! A moment may be opened as soon as it is *indexed*; it need not be replayed by staging yet.

use crate::core::{Core, staging_key};
use crate::data_files::DataFiles;
use crate::host::Host;
use crate::log_feed::{LogFeed, ReceivedLog};
use crate::losses;
use crate::paths::{INDEX_DIR, WAL_DIR};
use crate::room::{self, Shortage};
use crate::servers;
use jiff::Timestamp;
use offshoot_domain::{Dsource, DsourceState, Position, SPACING_BYTES, Snapshot, SnapshotKind};
use offshoot_fs::NewFile;
use offshoot_postgres::archive::Archive;
use offshoot_postgres::base_backup::recovery_start;
use offshoot_postgres::commit_index::CommitIndex;
use offshoot_postgres::receiver::{
    Receiver, ReceiverSpec, ReceiverState, ReceiverStatus, SyncedTo,
};
use offshoot_postgres::server::{self, Server, StopMode};
use offshoot_postgres::session::Session;
use offshoot_postgres::source::{Password, Source};
use offshoot_postgres::standby::{self, ReplayState};
use offshoot_postgres::{control, superuser};
use offshoot_types::{DsourceId, ErrorKind, Failure, Lsn};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bytes of log that one step indexes beyond what is known to be received.
const AHEAD_BYTES: u64 = 16 << 20;
/// Pause between two rounds.
const ROUND: Duration = Duration::from_millis(200);
/// The least and the most that the staging standby may use for its buffers, in bytes.
const BUFFERS: (u64, u64) = (64 << 20, 1 << 30);
/// How long the staging standby may take until it answers, or gets on with its recovery.
const STAGING_READY: Duration = Duration::from_secs(600);
/// How soon it is asked again, at first and in the end.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// How long a standby that died is left alone before it is started again.
const RESTART_PAUSE: Duration = Duration::from_secs(5);
/// By how much a commit may lie behind one of a later time: it takes its time before its place in the log.
const COMMIT_SKEW: Duration = Duration::from_millis(100);
/// What [`Follower::starves`] means for who waits for the standby.
const STARVES: &str = "staging does not go on until there is room";

/// Follows one dSource; dropped with [`Follower::stop`].
pub struct Follower {
    core: Weak<Core>,
    id: DsourceId,
    name: String,
    major: u32,
    system_identifier: u64,
    pub log: ReceivedLog,
    /// Where `pg_receivewal` finds the archive: in a mount of ours, which only children use.
    directory: PathBuf,
    pub index: CommitIndex,
    receiver: Mutex<Option<Arc<Receiver>>>,
    feed: Mutex<Option<LogFeed>>,
    session: Mutex<Option<Session>>,
    /// Up to where moments can be opened.
    indexed: Mutex<Option<Position>>,
    stopping: AtomicBool,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Follower {
    /// Opens the log of a dSource (mounting its dataset) without following yet.
    pub fn open(core: &Arc<Core>, dsource: &Dsource) -> Result<Arc<Follower>, Failure> {
        let dataset = dsource
            .log_dataset
            .ok_or_else(|| Failure::internal(format!("'{}' has no log", dsource.name)))?;
        let directory = core.exports.mount_log(dataset)?.join(WAL_DIR);
        let files = core.exports.files(dataset)?;
        files.dataset().mark_stream();
        let owner = core.host.owner();
        // Production's log is no business of any VDB's superuser, who acts as the servers' user.
        let (uid, gid) = Host::own();
        for dir in [WAL_DIR, INDEX_DIR] {
            files.create_dirs(dir, NewFile::private_directory(uid, gid))?;
        }
        let data_dir = |name| Arc::new(DataFiles::at(files.clone(), name));
        let archive = Archive::new(data_dir(WAL_DIR), dsource.wal_segment_bytes)?;
        let index = CommitIndex::open(archive.clone(), data_dir(INDEX_DIR))?;
        Ok(Arc::new(Follower {
            core: Arc::downgrade(core),
            id: dsource.id,
            name: dsource.name.to_string(),
            major: dsource.major_version().unwrap_or_default(),
            system_identifier: dsource.system_identifier,
            log: ReceivedLog { archive, files, owner },
            directory,
            index,
            receiver: Mutex::new(None),
            feed: Mutex::new(None),
            session: Mutex::new(None),
            indexed: Mutex::new(dsource.synced_to),
            stopping: AtomicBool::new(false),
            thread: Mutex::new(None),
        }))
    }

    fn core(&self) -> Result<Arc<Core>, Failure> {
        self.core.upgrade().ok_or_else(|| Failure::internal("the engine is closed"))
    }

    /// Starts receiving log.
    pub fn start_receiver(&self, source: Source, slot: &str) -> Result<(), Failure> {
        let core = self.core()?;
        let spec = ReceiverSpec {
            tools: core.host.tools(self.major)?,
            source,
            system_identifier: self.system_identifier,
            slot: slot.to_owned(),
            archive: self.log.archive.clone(),
            directory: self.directory.clone(),
        };
        *self.receiver.lock() = Some(Arc::new(Receiver::start(spec, core.clock.clone())?));
        Ok(())
    }

    /// Waits until the source streams.
    pub fn wait_streaming(&self, timeout: Duration) -> Result<(), Failure> {
        self.receiver()?.wait_streaming(timeout)
    }

    /// What the receiver is doing; none while paused.
    pub fn status(&self) -> Option<ReceiverStatus> {
        self.receiver().ok().map(|receiver| receiver.status())
    }

    /// Why the log cannot go on, where only a new SnapSync mends that.
    pub fn broken(&self) -> Option<Failure> {
        let damage = || self.index.update().err();
        self.gap().or_else(|| damage().filter(|failure| failure.code == ErrorKind::DataDamaged))
    }

    /// Up to where moments can be opened.
    pub fn indexed(&self) -> Option<Position> {
        *self.indexed.lock()
    }

    /// Starts the staging standby on the dSource's staging dataset and the rounds that feed it.
    pub fn start_staging(self: &Arc<Self>, dsource: &Dsource) -> Result<(), Failure> {
        self.start_standby(dsource)?;
        let follower = self.clone();
        let thread = std::thread::Builder::new()
            .name(format!("follow-{}", self.id.0))
            .spawn(move || follower.rounds())
            .map_err(|error| Failure::internal(format!("no thread to follow with: {error}")))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    fn start_standby(&self, dsource: &Dsource) -> Result<(), Failure> {
        let core = self.core()?;
        let dataset = dsource
            .staging_dataset
            .ok_or_else(|| Failure::internal(format!("'{}' has no staging", self.name)))?;
        core.exports.mount(dataset)?;
        let files = core.exports.files(dataset)?;
        let key = staging_key(self.id);
        let title = format!("staging {}", self.name);
        let mut spec = servers::spec(&core, &key, title, self.major, dataset, None)?;
        let control = control::read(&spec.bin_dir, &spec.data_dir, spec.user.as_ref())?;
        room::favour_vital(&files)?;
        let data = DataFiles::new(files.clone());
        spec.superusers = superuser::candidates(&data);
        // Four times as fast with 256 MiB as with 64 where log touches 1 GB at random; a quiet source's takes little of it.
        let buffers = (core.store.stats().cache.size / 8).clamp(BUFFERS.0, BUFFERS.1);
        standby::prepare(&data, &control, buffers)?;
        let from = recovery_start(&data)?.unwrap_or(control.redo_lsn);
        *self.feed.lock() = Some(LogFeed::new(self.log.clone(), files, from));
        let server = server::start(spec)?;
        core.servers.keep(&key, server);
        Ok(())
    }

    /// Waits until the standby answers (it is consistent then).
    pub fn wait_staging(&self, cancelled: &dyn Fn() -> bool) -> Result<ReplayState, Failure> {
        let core = self.core()?;
        let began = core.clock.elapsed();
        let (mut deadline, mut recovering) = (began + STAGING_READY, None);
        let mut shortage = Shortage::default();
        loop {
            shortage.check(&core, self.starves(&core), STARVES)?;
            let gap = self.gap();
            let failure = match self.replay_state() {
                Ok(state) => return Ok(state),
                Err(failure) => failure,
            };
            // The log that it waits for will never come.
            if let Some(gap) = gap {
                return Err(gap);
            }
            let now = core.clock.elapsed();
            let Some(server) = core.servers.get(&staging_key(self.id)) else { return Err(failure) };
            let (running, found) = {
                let mut server = server.lock();
                (server.running(), server.recovering())
            };
            if found > recovering {
                (recovering, deadline) = (found, now + STAGING_READY);
            }
            if !running {
                return Err(failure);
            }
            if now > deadline {
                return Err(self.unreachable().unwrap_or(failure));
            }
            if cancelled() {
                return Err(Failure::new(ErrorKind::Cancelled, "the job was cancelled", ""));
            }
            // Each refusal is a line in the server's log.
            core.clock.sleep(((now - began) / 8).clamp(ASK_AGAIN.0, ASK_AGAIN.1));
        }
    }

    /// Why the log cannot go on, where it cannot.
    fn gap(&self) -> Option<Failure> {
        match self.status()?.state {
            ReceiverState::Gap(failure) => Some(failure),
            _ => None,
        }
    }

    /// Why the source gives no log, while it gives none.
    fn unreachable(&self) -> Option<Failure> {
        match self.status()?.state {
            ReceiverState::Retrying(failure) => Some(failure),
            _ => None,
        }
    }

    fn received(&self) -> Option<Lsn> {
        self.status()?.received
    }

    /// How far the standby has replayed.
    pub fn replay_state(&self) -> Result<ReplayState, Failure> {
        let mut session = self.session.lock();
        if session.is_none() {
            *session = Some(self.connect()?);
        }
        let state = match session.as_mut() {
            Some(open) => standby::replay_state(open),
            None => Err(Failure::internal("no session")),
        };
        if state.is_err() {
            *session = None;
        }
        state
    }

    fn connect(&self) -> Result<Session, Failure> {
        let server = self.core()?.servers.get(&staging_key(self.id));
        let server = server.ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("the staging server of '{}' does not run", self.name),
                "resume the dSource, or see its faults: offshoot status",
            )
        })?;
        let server = server.lock();
        Server::connect(&server)
    }

    /// Receives all that the source has flushed by now; up to where moments can be opened then.
    pub fn ask_now(&self, timeout: Duration) -> Result<Position, Failure> {
        self.ask(|receiver| receiver.ask_now(timeout))
    }

    /// The same, however much that is: as long as something arrives within each `silence`.
    pub fn receive_all(
        &self,
        silence: Duration,
        tick: &mut dyn FnMut(&ReceiverStatus) -> Result<(), Failure>,
    ) -> Result<Position, Failure> {
        self.ask(|receiver| receiver.receive_all(silence, tick))
    }

    fn ask(
        &self,
        ask: impl FnOnce(&Receiver) -> Result<SyncedTo, Failure>,
    ) -> Result<Position, Failure> {
        ask(&*self.receiver()?)?;
        self.advance()?;
        self.indexed().ok_or_else(|| Failure::internal("nothing is indexed after all was received"))
    }

    /// The receiver; nobody else waits while it is asked something.
    fn receiver(&self) -> Result<Arc<Receiver>, Failure> {
        self.receiver.lock().clone().ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("'{}' is paused", self.name),
                format!("resume it: offshoot dsource resume {}", self.name),
            )
        })
    }

    /// Waits until the standby has replayed everything up to `lsn`.
    pub fn wait_replayed(
        &self,
        lsn: Lsn,
        timeout: Duration,
        tick: &mut dyn FnMut(Lsn) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let core = self.core()?;
        let deadline = core.clock.elapsed() + timeout;
        let mut shortage = Shortage::default();
        loop {
            let state = self.wait_staging(&|| false)?;
            tick(state.replayed_lsn)?;
            if state.replayed_lsn >= lsn {
                return Ok(());
            }
            if let Some(failure) = self.gap().filter(|_| self.received() < Some(lsn)) {
                return Err(failure);
            }
            shortage.check(&core, self.starves(&core), STARVES)?;
            if core.clock.elapsed() > deadline {
                return Err(Failure::new(
                    ErrorKind::WrongState,
                    format!(
                        "staging of '{}' has replayed up to {} and not yet to {lsn}",
                        self.name, state.replayed_lsn
                    ),
                    "try again later; the engine goes on replaying",
                ));
            }
            core.clock.sleep(Duration::from_millis(10));
        }
    }

    /// Whether there is log for the standby but no room for what it would make of it.
    fn starves(&self, core: &Core) -> bool {
        !room::can_grow(core) && self.fed() < self.received()
    }

    /// One step forward: index what was received, feed the standby.
    pub fn advance(&self) -> Result<(), Failure> {
        let status = self.status();
        let mut feed = self.feed.lock();
        let known = status.as_ref().and_then(|status| status.received).unwrap_or_default();
        // Not all that arrives meanwhile: the standby would wait for it.
        let end = self.index.update_until(Lsn(known.max(self.index.end()).0 + AHEAD_BYTES))?;
        if let Some(status) = &status {
            // The status was taken before the index was updated, so that all it proves is indexed.
            if let Some(synced) = status.synced_to {
                let mut indexed = self.indexed.lock();
                let lsn = indexed.map_or(end, |old| old.lsn.max(end));
                let time = indexed.map_or(synced.time, |old| old.time.max(synced.time));
                *indexed = Some(Position { lsn, time });
            }
            // Without room the standby would end in the middle of its replay: it is not led there.
            let roomy = || self.core().is_ok_and(|core| room::can_grow(&core));
            let fed = feed.as_mut().filter(|_| roomy());
            if let (Some(feed), Some(received)) = (fed, status.received) {
                feed.advance(received)?;
            }
        }
        Ok(())
    }

    /// Finds out up to where moments can be opened by what is there alone.
    fn find_end(&self) -> Result<(), Failure> {
        let lsn = self.index.update()?;
        let last = self.index.last()?;
        let time = last.and_then(|last| last.time.checked_sub(COMMIT_SKEW).ok());
        *self.indexed.lock() = time.map(|time| Position { lsn, time });
        Ok(())
    }

    fn rounds(&self) {
        let mut restart_at = Duration::ZERO;
        while !self.stopping.load(Ordering::Relaxed) {
            let Some(core) = self.core.upgrade() else { return };
            match self.advance() {
                Ok(()) => core.clear(&self.name, "log"),
                Err(failure) => core.raise(&self.name, "log", &failure),
            }
            self.report_receiver(&core);
            let now = core.clock.elapsed();
            let ended = !core.servers.is_running(&staging_key(self.id));
            if ended && now >= restart_at && room::can_grow(&core) {
                restart_at = now + RESTART_PAUSE;
                self.restart_standby(&core);
            }
            if let Err(failure) = self.take_due_snapshots(&core) {
                tracing::warn!(dsource = self.name, %failure, "no snapshot was taken");
            }
            core.clock.sleep(ROUND);
        }
    }

    fn report_receiver(&self, core: &Core) {
        match self.status().map(|status| (status.state, status.state_for)) {
            Some((ReceiverState::Gap(failure), _)) => core.raise(&self.name, "source", &failure),
            Some((ReceiverState::Retrying(failure), since)) if since > Duration::from_secs(5) => {
                core.raise(&self.name, "source", &failure);
            }
            Some((ReceiverState::Streaming, _)) | None => core.clear(&self.name, "source"),
            _ => {}
        }
        if self.status().is_some_and(|status| status.synced_to.is_some()) {
            losses::received_again(core, &self.name);
        }
    }

    fn restart_standby(&self, core: &Arc<Core>) {
        tracing::warn!(dsource = self.name, "the staging server has ended; starting it again");
        *self.session.lock() = None;
        let started = core.catalog.get::<Dsource>(self.id).map_err(Failure::from);
        match started.and_then(|dsource| self.start_standby(&dsource)) {
            Ok(()) => core.clear(&self.name, "staging"),
            Err(failure) => core.raise(&self.name, "staging", &failure),
        }
    }

    /// Submits a snapshot where the policy or the provisioning-time objective asks for one.
    fn take_due_snapshots(&self, core: &Arc<Core>) -> Result<(), Failure> {
        let dsource: Dsource = core.catalog.get(self.id)?;
        let waits = dsource.state != DsourceState::Active || !room::takes_on(core);
        if waits || core.runner()?.is_busy(dsource.id) {
            return Ok(());
        }
        let snapshots = snapshots_on_log(core, &dsource)?;
        let current = self.index.end();
        let last = |wanted: &dyn Fn(&&Snapshot) -> bool| {
            snapshots.iter().filter(wanted).max_by_key(|one| one.position.lsn)
        };
        let policy = last(&|one| one.kind != SnapshotKind::RecoveryPoint)
            .map(|one| (one.taken_at, one.position.lsn));
        let newest = last(&|_| true).map_or(Lsn(0), |one| one.position.lsn);
        let kind = if dsource.policy.snapshots.due(core.now(), policy, current) {
            SnapshotKind::Policy
        } else if current.0.saturating_sub(newest.0) >= SPACING_BYTES {
            SnapshotKind::RecoveryPoint
        } else {
            return Ok(());
        };
        crate::snapshots::submit_take(core, dsource.id.into(), &dsource.name, kind).map(drop)
    }

    /// Up to where staging has the log: it may be behind every snapshot while it catches up after a
    /// restart. None while paused.
    pub fn fed(&self) -> Option<Lsn> {
        self.feed.lock().as_ref().map(LogFeed::fed)
    }

    /// Removes whole log files before a position; how many.
    pub fn forget_log(&self, before: Lsn) -> Result<usize, Failure> {
        let removed = self.log.archive.remove_before(before)?;
        if removed > 0 {
            self.index.remove_before(before)?;
        }
        Ok(removed)
    }

    /// The present control file of staging: where replay of a snapshot taken now starts.
    pub fn staging_control(&self) -> Result<control::Control, Failure> {
        let core = self.core()?;
        let dsource: Dsource = core.catalog.get(self.id)?;
        let dataset = dsource.staging_dataset.ok_or_else(|| Failure::internal("no staging"))?;
        let tools = core.host.tools(self.major)?;
        let dir = core.paths.data_dir(dataset);
        control::read(&tools.installation.bin_dir, &dir, tools.user.as_ref())
    }

    /// Stops following: rounds, receiver, standby. What was received stays and can be opened.
    pub fn stop(&self) -> Result<(), Failure> {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.lock().take() {
            // A round may be what stops us; a thread cannot wait for itself.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!(dsource = self.name, "the follower panicked");
            }
        }
        if let Some(receiver) = self.receiver.lock().take() {
            receiver.stop();
        }
        self.advance_last();
        *self.session.lock() = None;
        *self.feed.lock() = None;
        let core = self.core()?;
        if let Some(indexed) = self.indexed() {
            core.catalog.update::<Dsource>(self.id, |dsource| dsource.synced_to = Some(indexed))?;
        }
        core.servers.stop(&staging_key(self.id), StopMode::Fast).map(drop)
    }

    fn advance_last(&self) {
        if let Err(failure) = self.index.update() {
            tracing::warn!(dsource = self.name, %failure, "the end of the log is not indexed");
        }
    }
}

/// The snapshots into which the log can be replayed: those of ended timeflows have none.
fn snapshots_on_log(core: &Core, dsource: &Dsource) -> Result<Vec<Snapshot>, Failure> {
    let mut snapshots: Vec<Snapshot> = core.catalog.list_of(dsource.id)?;
    snapshots.retain(|one| Some(one.timeflow) == dsource.timeflow && one.follows_log());
    Ok(snapshots)
}

/// The source of a dSource with its password from the catalog.
pub fn source_of(core: &Core, dsource: &Dsource) -> Result<Source, Failure> {
    let secret = core.catalog.secret(&password_key(dsource.id))?;
    Source::parse(&dsource.source, secret.map(|secret| Password::new(secret.reveal())))
}

/// Where the catalog keeps the password for a source.
pub fn password_key(id: DsourceId) -> String {
    format!("{id}/source-password")
}

/// Opens and starts everything of a dSource that is to be followed; without its source (paused), only
/// its log is opened.
pub fn start(core: &Arc<Core>, dsource: &Dsource, follow: bool) -> Result<(), Failure> {
    let dsource = &losses::accept_of_dsource(core, dsource)?;
    let follower = Follower::open(core, dsource)?;
    // A damaged log must not keep the rounds from saying so.
    if dsource.synced_to.is_none()
        && let Err(failure) = follower.find_end()
    {
        tracing::warn!(dsource = %dsource.name, %failure, "the end of its log is not known");
    }
    core.followers.lock().insert(dsource.id, follower.clone());
    if !follow {
        return Ok(());
    }
    let slot = dsource.slot.as_deref().unwrap_or_default();
    follower.start_receiver(source_of(core, dsource)?, slot)?;
    follower.start_staging(dsource)
}

/// Where a commit time given in microseconds since 1970 lies.
pub fn timestamp(micros: i64) -> Option<Timestamp> {
    Timestamp::from_microsecond(micros).ok()
}
