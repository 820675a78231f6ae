//! Keeps a dSource in step with its source: stream, index of commits, staging standby.
//!
//! ```text
//!  receiver ──▶ archive (durable, then confirmed) ──update──▶ index of commits
//!                      └──────────feed──────────▶ staging standby ──▶ snapshots
//! ```
//! A moment may be opened as soon as it is *indexed*; it need not be replayed by staging yet.

use crate::core::keys::{source_password_key, staging_key};
use crate::core::kind::Kind;
use crate::core::topic::Topic;
use crate::following::standby_share::StandbyShare;
use crate::following::working_copy::WorkingCopy;
use crate::ground::stopping::Stopping;
use crate::serving::Serving;
use crate::serving::data_files::{DataFiles, LogReceiver};
use crate::serving::servers;
use crate::serving::vdb::favour_vital;
use crate::space::losses;
use crate::space::room::{self, Shortage};
use offshoot_connector::{
    DataDir, LogFeed, LogStream, LogTarget, Progress, ReceivedLog, Role, ServerSpec, Source,
    SourceUri, StopMode, StreamRequest, StreamState, StreamStatus,
};
use offshoot_domain::{Dsource, Moment, ObjectName, Position, Timeflow};
use offshoot_fs::{FileSystem, NewFile};
use offshoot_os::process::User;
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, LogPosition, SnapshotId};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bytes of log that one step indexes beyond what is known to be received.
const AHEAD_BYTES: u64 = 16 << 20;
/// Pause between two rounds.
const ROUND: Duration = Duration::from_millis(200);
/// The least and the most that the staging standby may use for its buffers, in bytes.
const BUFFERS: (u64, u64) = (64 << 20, 1 << 30);
/// How long the staging standby may take to answer, or to make progress in its recovery.
const STAGING_READY: Duration = Duration::from_secs(600);
/// How soon to ask it again, at first and at most.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// How long to wait before restarting a standby that died.
const RESTART_PAUSE: Duration = Duration::from_secs(5);
/// How long a source may not answer before users get what was received.
const SILENCE: Duration = Duration::from_secs(2);
/// How long before they are refused a moment that they have named, and that it may have: a busy host is as silent at times.
const NAMED_SILENCE: Duration = Duration::from_secs(10);
/// How long nothing may arrive from a source that answers.
const STALLED: Duration = Duration::from_secs(15);
/// How far a commit may be after one with a later time: it gets its time before its place in the log.
const COMMIT_SKEW: Duration = Duration::from_millis(100);
/// What [`Follower::starves`] means for those who wait for the standby.
const STARVES: &str = "staging does not continue until there is room";

/// What those are told who have waited long enough for the standby.
const LATE: &str = "try again later; the engine keeps replaying";

/// Whether a failure only says that the standby is not there yet.
pub fn is_late(failure: &Failure) -> bool {
    failure.hint == LATE
}

/// Follows one dSource; dropped with [`Follower::stop`].
pub struct Follower {
    serving: Weak<Serving>,
    id: DsourceId,
    name: ObjectName,
    kind: Kind,
    log: Arc<dyn ReceivedLog>,
    /// The log dataset.
    files: Arc<FileSystem>,
    /// Where a receiving program finds the log: in a mount of ours, which only children use.
    directory: PathBuf,
    stream: Mutex<Option<Arc<dyn LogStream>>>,
    feed: Mutex<Option<Box<dyn LogFeed>>>,
    /// How many wait for the standby, and how many of them are users. As long as somebody waits, it gets all that was received.
    waiting: AtomicUsize,
    hurried: AtomicUsize,
    /// In which recovery points are made.
    working_copy: WorkingCopy,
    /// Whether no standby runs, as nobody needs it: staging is a recovery point then, from which it goes on.
    rests: AtomicBool,
    /// At which point it is to rest as soon as nobody waits for it. Held while it is started or put to rest.
    turning: Mutex<Option<SnapshotId>>,
    /// The position up to which moments can be opened.
    indexed: Mutex<Option<Position>>,
    stopping: Stopping,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Follower {
    /// Opens the log of a dSource (mounting its dataset) without following yet.
    pub fn open(serving: &Arc<Serving>, dsource: &Dsource) -> Result<Arc<Follower>, Failure> {
        let dataset = dsource
            .log_dataset
            .ok_or_else(|| Failure::internal(format!("'{}' has no log", dsource.name)))?;
        let kind = Kind::of_dsource(serving, dsource)?;
        let layout = kind.connector.layout();
        let directory = serving.volumes.mount_gathering(dataset)?.join(layout.log);
        let files = serving.volumes.files(dataset)?;
        files.mark_stream();
        // A VDB's superuser, who acts as the servers' user, must not see production's log.
        let (uid, gid) = User::own_ids();
        for dir in [layout.log, layout.index] {
            files.create_dirs(dir, NewFile::private_directory(uid, gid))?;
        }
        let at = |name| Arc::new(DataFiles::at(files.clone(), name)) as Arc<dyn DataDir>;
        let (received, index) = (at(layout.log), at(layout.index));
        let log = kind.connector.open_log(&dsource.connector_state, received, index)?;
        Ok(Arc::new(Follower {
            serving: Arc::downgrade(serving),
            id: dsource.id,
            name: dsource.name.clone(),
            kind,
            log,
            files,
            directory,
            stream: Mutex::new(None),
            feed: Mutex::new(None),
            waiting: AtomicUsize::new(0),
            hurried: AtomicUsize::new(0),
            working_copy: WorkingCopy::default(),
            rests: AtomicBool::new(false),
            turning: Mutex::new(None),
            indexed: Mutex::new(dsource.synced_to),
            stopping: Stopping::default(),
            thread: Mutex::new(None),
        }))
    }

    fn serving(&self) -> Result<Arc<Serving>, Failure> {
        self.serving.upgrade().ok_or_else(|| Failure::internal("the engine is closed"))
    }

    /// What was received.
    pub fn log(&self) -> &dyn ReceivedLog {
        &*self.log
    }

    /// In which recovery points are made.
    pub fn working_copy(&self) -> &WorkingCopy {
        &self.working_copy
    }

    /// Puts its log into a data directory whose servers are of the same kind.
    pub fn target(&self, files: Arc<FileSystem>) -> LogReceiver {
        let layout = self.kind.connector.layout();
        let log = DataFiles::at(self.files.clone(), layout.log);
        LogReceiver::new(DataFiles::at(files, layout.data), log, self.kind.server_owner())
    }

    /// Starts receiving log.
    pub fn start_stream(&self, dsource: &Dsource) -> Result<(), Failure> {
        let serving = self.serving()?;
        let directory = self.kind.connector.layout().log;
        let stream = source_of(&serving, dsource)?.stream(StreamRequest {
            state: dsource.connector_state.clone(),
            version: dsource.server_version.clone(),
            reservation: dsource.reservation.clone(),
            log: Arc::new(DataFiles::at(self.files.clone(), directory)),
            directory: self.directory.clone(),
            clock: serving.clock.clone(),
        })?;
        *self.stream.lock() = Some(stream);
        Ok(())
    }

    /// Waits until the source streams.
    pub fn wait_streaming(&self, timeout: Duration) -> Result<(), Failure> {
        self.stream()?.wait_streaming(timeout)
    }

    /// What the stream is doing; none while paused.
    pub fn status(&self) -> Option<StreamStatus> {
        self.stream().ok().map(|stream| stream.status())
    }

    /// Why the log cannot continue, if only a new SnapSync fixes that.
    pub fn broken(&self) -> Option<Failure> {
        self.gap().or_else(|| self.damage())
    }

    /// What is wrong with the received log itself.
    pub fn damage(&self) -> Option<Failure> {
        let found = self.log.update_until(LogPosition::END).err();
        found.filter(|failure| failure.code == ErrorKind::DataDamaged)
    }

    /// The position up to which moments can be opened.
    pub fn indexed(&self) -> Option<Position> {
        *self.indexed.lock()
    }

    /// Starts the staging standby on the dSource's staging dataset, unless it rests, and the rounds that feed it.
    pub fn start_staging(self: &Arc<Self>, dsource: &Dsource) -> Result<(), Failure> {
        self.start_or_rest(dsource)?;
        let follower = self.clone();
        let thread = std::thread::Builder::new()
            .name(format!("follow-{}", self.id.0))
            .spawn(move || follower.rounds())
            .map_err(|error| Failure::internal(format!("no thread to follow with: {error}")))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    fn start_or_rest(&self, dsource: &Dsource) -> Result<(), Failure> {
        let rests = match self.kind.connector.point_maker() {
            Some(maker) => maker.is_point(&self.staging_spec(dsource)?.1)?,
            None => false,
        };
        self.rests.store(rests, Ordering::Relaxed);
        if rests { Ok(()) } else { self.start_standby(dsource) }
    }

    fn staging_spec(&self, dsource: &Dsource) -> Result<(DatasetId, ServerSpec), Failure> {
        let serving = self.serving()?;
        let dataset = dsource
            .staging_dataset
            .ok_or_else(|| Failure::internal(format!("'{}' has no staging", self.name)))?;
        let (key, title) = (staging_key(self.id), format!("staging {}", self.name));
        Ok((dataset, servers::spec(&serving, &key, title, &self.kind, dataset, None)?))
    }

    fn start_standby(&self, dsource: &Dsource) -> Result<(), Failure> {
        let (serving, (dataset, spec)) = (self.serving()?, self.staging_spec(dsource)?);
        serving.volumes.mount(dataset)?;
        let files = serving.volumes.files(dataset)?;
        let connector = &self.kind.connector;
        favour_vital(&files, connector.layout())?;
        // Four times as fast with 256 MiB as with 64 if log touches 1 GB at random; for a quiet source it takes little
        // of it.
        let buffers = (serving.store.stats().cache.size / 8).clamp(BUFFERS.0, BUFFERS.1);
        let target: Arc<dyn LogTarget> = Arc::new(self.target(files));
        let goes_on = match connector.point_maker() {
            Some(maker) => maker.go_on(spec.clone(), self.log(), target.clone(), self.log.end())?,
            None => None,
        };
        let feed = match goes_on {
            Some(feed) => feed,
            None => self.log.feed(target, connector.replay_begins(&spec)?),
        };
        *self.feed.lock() = Some(feed);
        serving
            .servers
            .add(&staging_key(self.id), connector.start(spec, Role::Staging { buffers })?);
        Ok(())
    }

    /// Whether the standby rests: what it would replay is replayed by the rounds that make recovery points.
    pub fn rests(&self) -> bool {
        self.rests.load(Ordering::Relaxed)
    }

    /// Ends the standby as soon as nobody waits for it: staging becomes a copy of a recovery point, from which it goes on
    /// when somebody needs it again.
    pub fn rest_at(&self, point: SnapshotId) -> Result<(), Failure> {
        *self.turning.lock() = Some(point);
        self.rest()
    }

    fn rest(&self) -> Result<(), Failure> {
        let mut turning = self.turning.lock();
        if self.waiting.load(Ordering::Relaxed) > 0 || self.stopping.is_told() {
            return Ok(());
        }
        let Some(point) = turning.take() else { return Ok(()) };
        let serving = self.serving()?;
        let staging = serving.store.clone_snapshot(point).map_err(|e| e.failure())?;
        // From here on nobody starts it again.
        self.rests.store(true, Ordering::Relaxed);
        *self.feed.lock() = None;
        let stopped = serving.servers.stop(&staging_key(self.id), StopMode::Immediate);
        let changed = stopped.and_then(|_| Ok(self.replace_staging(&serving, staging)?));
        // A crash leaves one of the two without an owner: the next start deletes it.
        match changed {
            Ok(before) => before.map_or(Ok(()), |before| serving.delete_dataset(before)),
            Err(failure) => serving.delete_dataset(staging).and(Err(failure)),
        }
    }

    /// Returns the one before.
    fn replace_staging(
        &self,
        serving: &Serving,
        staging: DatasetId,
    ) -> Result<Option<DatasetId>, offshoot_catalog::Error> {
        serving.catalog.transaction(|tx| {
            let mut before = None;
            let dsource = tx.update::<Dsource>(self.id, |dsource| {
                before = dsource.staging_dataset.replace(staging);
            })?;
            if let Some(timeflow) = dsource.timeflow {
                tx.update::<Timeflow>(timeflow, |timeflow| timeflow.dataset = Some(staging))?;
            }
            Ok(before)
        })
    }

    /// Keeps the standby awake as long as the guard lives; starts it if it rests. It answers when its source has said again
    /// which transactions run: after seconds, mostly.
    pub fn keep_awake(&self) -> Result<Counted<'_>, Failure> {
        let waits = Counted::by(&self.waiting);
        let mut turning = self.turning.lock();
        if self.rests() && !self.stopping.is_told() {
            let dsource: Dsource = self.serving()?.catalog.get(self.id)?;
            self.start_standby(&dsource)?;
            self.rests.store(false, Ordering::Relaxed);
            *turning = None;
        }
        Ok(waits)
    }

    /// Waits until the standby answers (then it is consistent).
    pub fn wait_staging(&self, cancelled: &dyn Fn() -> bool) -> Result<Progress, Failure> {
        let _waits = (self.keep_awake()?, Counted::by(&self.hurried));
        self.wait_answer(cancelled)
    }

    fn wait_answer(&self, cancelled: &dyn Fn() -> bool) -> Result<Progress, Failure> {
        let serving = self.serving()?;
        let began = serving.clock.elapsed();
        let (mut deadline, mut recovering) = (began + STAGING_READY, None);
        let mut shortage = Shortage::default();
        loop {
            shortage.check(&serving, self.starves(&serving), STARVES)?;
            let gap = self.gap();
            let failure = match self.replay_state() {
                Ok(state) => return Ok(state),
                Err(failure) => failure,
            };
            // The log that it waits for will never come.
            if let Some(gap) = gap {
                return Err(gap);
            }
            let now = serving.clock.elapsed();
            let Some(server) = serving.servers.get(&staging_key(self.id)) else {
                return Err(failure);
            };
            let (running, found) = (server.running(), server.recovering());
            if found > recovering {
                (recovering, deadline) = (found, now + STAGING_READY);
            }
            if !running {
                // It says why, by the end of its log.
                return Err(server.wait_ready(Duration::ZERO).err().unwrap_or(failure));
            }
            if now > deadline {
                return Err(self.unreachable().unwrap_or(failure));
            }
            if cancelled() {
                return Err(Failure::new(ErrorKind::Cancelled, "the job was cancelled", ""));
            }
            // Each refusal is a line in the server's log.
            serving.clock.sleep(((now - began) / 8).clamp(ASK_AGAIN.0, ASK_AGAIN.1));
        }
    }

    /// Why the log cannot continue, if it cannot.
    fn gap(&self) -> Option<Failure> {
        match self.status()?.state {
            StreamState::Gap(failure) => Some(failure),
            _ => None,
        }
    }

    /// Why the source gives no log at present.
    fn unreachable(&self) -> Option<Failure> {
        match self.status()?.state {
            StreamState::Retrying(failure) => Some(failure),
            _ => None,
        }
    }

    fn received(&self) -> Option<LogPosition> {
        self.status()?.received
    }

    /// How far the standby has replayed.
    pub fn replay_state(&self) -> Result<Progress, Failure> {
        let server = self.serving()?.servers.get(&staging_key(self.id));
        let server = server.ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("the staging server of '{}' does not run", self.name),
                "resume the dSource, or see its faults: offshoot status",
            )
        })?;
        // As long as it runs, it recovers; then it answers.
        server.replayed().map_err(|failure| match server.running() {
            true => Failure::new(
                ErrorKind::WrongState,
                format!("staging of '{}' does not answer yet: {}", self.name, failure.message),
                LATE,
            ),
            false => failure,
        })
    }

    /// Receives all that the source has flushed by now; returns up to which position moments can be
    /// opened then.
    pub fn ask_now(&self, timeout: Duration) -> Result<Position, Failure> {
        self.ask(|stream| stream.ask_now(timeout))
    }

    /// The same, however long it takes, as long as the source answers and its log arrives: for what a
    /// user waits for, who gets what was received if the source does not answer.
    pub fn catch_up(
        &self,
        wanted: &Moment,
        tick: &mut dyn FnMut(&StreamStatus) -> Result<(), Failure>,
    ) -> Result<Position, Failure> {
        let patience = if *wanted == Moment::Latest { SILENCE } else { NAMED_SILENCE };
        let clock = self.serving()?.clock.clone();
        let began = clock.elapsed();
        self.receive_all(STALLED, &mut |status| {
            let silent = status.silent_for.is_none_or(|silent| silent > patience);
            let waited = clock.elapsed().saturating_sub(began);
            match &status.state {
                StreamState::Retrying(failure) if waited > SILENCE => Err(failure.clone()),
                _ if waited > patience && silent => Err(self.silence()),
                _ => tick(status),
            }
        })
    }

    fn silence(&self) -> Failure {
        Failure::new(
            ErrorKind::SourceUnreachable,
            format!("the source of '{}' does not answer", self.name),
            "check that the source runs and can be reached; the engine keeps trying",
        )
    }

    /// As [`Follower::ask_now`], as long as something arrives within each `silence`.
    pub fn receive_all(
        &self,
        silence: Duration,
        tick: &mut dyn FnMut(&StreamStatus) -> Result<(), Failure>,
    ) -> Result<Position, Failure> {
        self.ask(|stream| stream.receive_all(silence, tick))
    }

    fn ask(
        &self,
        ask: impl FnOnce(&dyn LogStream) -> Result<Position, Failure>,
    ) -> Result<Position, Failure> {
        ask(&*self.stream()?)?;
        self.advance()?;
        self.indexed().ok_or_else(|| Failure::internal("nothing is indexed after all was received"))
    }

    /// The stream; asking it blocks nobody else.
    fn stream(&self) -> Result<Arc<dyn LogStream>, Failure> {
        self.stream.lock().clone().ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("'{}' is paused", self.name),
                format!("resume it: offshoot dsource resume {}", self.name),
            )
        })
    }

    /// Waits until the standby has replayed everything up to a position; a user may wait for that.
    pub fn wait_replayed(
        &self,
        to: LogPosition,
        timeout: Duration,
        for_user: bool,
        tick: &mut dyn FnMut(LogPosition) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let _waits = self.keep_awake()?;
        let _hurries = for_user.then(|| Counted::by(&self.hurried));
        // Now rather than in the next round, which reports what is wrong with the log.
        let _ = self.advance();
        let serving = self.serving()?;
        let deadline = serving.clock.elapsed() + timeout;
        let mut shortage = Shortage::default();
        loop {
            let state = self.wait_answer(&|| false)?;
            tick(state.position)?;
            if state.position >= to {
                return Ok(());
            }
            if let Some(failure) = self.gap().filter(|_| self.received() < Some(to)) {
                return Err(failure);
            }
            shortage.check(&serving, self.starves(&serving), STARVES)?;
            if serving.clock.elapsed() > deadline {
                let left = to.bytes_since(state.position);
                let message =
                    format!("staging of '{}' has {left} bytes of log still to replay", self.name);
                return Err(Failure::new(ErrorKind::WrongState, message, LATE));
            }
            serving.clock.sleep(Duration::from_millis(10));
        }
    }

    /// Whether there is log for the standby but no room for what it would make of it.
    fn starves(&self, serving: &Serving) -> bool {
        !room::can_grow(serving) && self.fed() < self.received()
    }

    /// One step forward: index what was received, feed the standby.
    pub fn advance(&self) -> Result<(), Failure> {
        let status = self.status();
        let mut feed = self.feed.lock();
        let known = status.as_ref().and_then(|status| status.received).unwrap_or_default();
        // Not everything that arrives during this: the standby would wait for it.
        let ahead = LogPosition(known.max(self.log.end()).0 + AHEAD_BYTES);
        let end = self.log.update_until(ahead)?;
        if let Some(status) = &status {
            // The status was taken before the index was updated, so everything it proves is
            // indexed.
            if let Some(synced) = status.synced_to {
                // As long as a log that was just begun has no whole record, nothing was committed in it.
                let end = if end == LogPosition::START { synced.log } else { end };
                self.advance_to(Position { log: end, time: synced.time });
            }
            // Without room the standby would end in the middle of its replay, so it gets no log.
            let roomy = || self.serving().is_ok_and(|serving| room::can_grow(&serving));
            let fed = feed.as_mut().filter(|_| roomy());
            if let (Some(feed), Some(received)) = (fed, status.received) {
                feed.advance(self.wanted_by_staging(received))?;
            }
        }
        Ok(())
    }

    /// Up to where the standby gets the log. A file that is whole is shared, while a growing one would be copied into
    /// staging, hashed and compressed once more: it gets that only while somebody waits.
    fn wanted_by_staging(&self, received: LogPosition) -> LogPosition {
        match self.waiting.load(Ordering::Relaxed) {
            0 => self.log.kept_from(received),
            _ => received,
        }
    }

    /// How much log waits for the standby, in bytes; none while it does not answer.
    fn behind(&self) -> u64 {
        let end = self.log.end();
        self.replay_state().map_or(0, |progress| end.bytes_since(progress.position))
    }

    /// Determines up to which position moments can be opened, only from what is received: the catalog knows it from
    /// the last clean stop, and the log itself after a crash.
    pub fn find_end(&self) -> Result<(), Failure> {
        let log = self.log.update_until(LogPosition::END)?;
        let Some(last) = self.log.last()? else { return Ok(()) };
        if let Ok(time) = last.time.checked_sub(COMMIT_SKEW) {
            self.advance_to(Position { log, time });
        }
        Ok(())
    }

    fn advance_to(&self, end: Position) {
        let mut indexed = self.indexed.lock();
        let old = indexed.unwrap_or(end);
        *indexed = Some(Position { log: old.log.max(end.log), time: old.time.max(end.time) });
    }

    fn rounds(&self) {
        let (mut restart_at, mut share) = (Duration::ZERO, StandbyShare::default());
        while !self.stopping.is_told() {
            let Some(serving) = self.serving.upgrade() else { return };
            match self.advance() {
                Ok(()) => serving.clear(&self.name, Topic::Log),
                Err(failure) => serving.raise(&self.name, Topic::Log, &failure),
            }
            self.report_stream(&serving);
            if let Err(failure) = self.working_copy.expire(&serving) {
                tracing::warn!(dsource = %self.name, %failure, "the copy for recovery points stays");
            }
            if let Err(failure) = self.rest() {
                tracing::warn!(dsource = %self.name, %failure, "staging does not rest");
            }
            let hurried = self.hurried.load(Ordering::Relaxed) > 0;
            share.look_after(&serving, &staging_key(self.id), hurried, || self.behind());
            let now = serving.clock.elapsed();
            let ended = !self.rests() && !serving.servers.is_running(&staging_key(self.id));
            if ended && now >= restart_at && room::can_grow(&serving) {
                restart_at = now + RESTART_PAUSE;
                self.restart_standby(&serving);
            }
            self.stopping.rest(ROUND);
        }
    }

    fn report_stream(&self, serving: &Serving) {
        match self.status().map(|status| (status.state, status.state_for)) {
            Some((StreamState::Gap(failure), _)) => {
                serving.raise(&self.name, Topic::Source, &failure)
            }
            Some((StreamState::Retrying(failure), since)) if since > Duration::from_secs(5) => {
                serving.raise(&self.name, Topic::Source, &failure);
            }
            Some((StreamState::Streaming, _)) | None => serving.clear(&self.name, Topic::Source),
            _ => {}
        }
        if self.status().is_some_and(|status| status.synced_to.is_some()) {
            losses::received_again(serving, &self.name);
        }
    }

    fn restart_standby(&self, serving: &Arc<Serving>) {
        let _alone = self.turning.lock();
        if self.rests() {
            return;
        }
        tracing::warn!(dsource = %self.name, "the staging server has ended; starting it again");
        let started = serving.catalog.get::<Dsource>(self.id).map_err(Failure::from);
        match started.and_then(|dsource| self.start_standby(&dsource)) {
            Ok(()) => serving.clear(&self.name, Topic::Staging),
            Err(failure) => serving.raise(&self.name, Topic::Staging, &failure),
        }
    }

    /// The position up to which staging has the log: it may be behind every snapshot while it
    /// catches up after a restart. None while paused, and while it rests.
    pub fn fed(&self) -> Option<LogPosition> {
        self.feed.lock().as_ref().map(|feed| feed.fed())
    }

    /// The position from which the log must stay for staging; none while that is unknown. One that rests is a copy of a
    /// recovery point.
    pub fn staging_needs_from(&self) -> Result<Option<LogPosition>, Failure> {
        if self.rests() { self.replay_begins().map(Some) } else { Ok(self.fed()) }
    }

    /// Where replay of a snapshot of staging taken now would begin.
    pub fn replay_begins(&self) -> Result<LogPosition, Failure> {
        let dsource: Dsource = self.serving()?.catalog.get(self.id)?;
        self.kind.connector.replay_begins(&self.staging_spec(&dsource)?.1)
    }

    /// Stops following: rounds, receiver, standby. What was received stays and can be opened.
    pub fn stop(&self) -> Result<(), Failure> {
        self.stopping.tell();
        if let Some(thread) = self.thread.lock().take() {
            // A round may be the caller; a thread cannot wait for itself.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!(dsource = %self.name, "the follower panicked");
            }
        }
        if let Some(stream) = self.stream.lock().take() {
            stream.stop();
        }
        self.advance_last();
        *self.feed.lock() = None;
        let serving = self.serving()?;
        self.working_copy.delete(&serving)?;
        if let Some(indexed) = self.indexed() {
            serving
                .catalog
                .update::<Dsource>(self.id, |dsource| dsource.synced_to = Some(indexed))?;
        }
        let _alone = self.turning.lock();
        serving.servers.stop(&staging_key(self.id), StopMode::Fast).map(drop)
    }

    fn advance_last(&self) {
        if let Err(failure) = self.log.update_until(LogPosition::END) {
            tracing::warn!(dsource = %self.name, %failure, "the end of the log is not indexed");
        }
    }
}

/// One of those whom a counter counts, as long as it lives.
pub struct Counted<'a>(&'a AtomicUsize);

impl Counted<'_> {
    fn by(counter: &AtomicUsize) -> Counted<'_> {
        counter.fetch_add(1, Ordering::Relaxed);
        Counted(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The source of a dSource with its password from the catalog.
pub fn source_of(serving: &Serving, dsource: &Dsource) -> Result<Box<dyn Source>, Failure> {
    let secret = serving.catalog.secret(&source_password_key(dsource.id))?;
    let uri = SourceUri { uri: dsource.source.clone(), secret };
    serving.connectors.find(&dsource.connector)?.source(&uri)
}
