//! The receiver: the one log stream from a source, by `pg_receivewal` into the archive.
//!
//! Two threads work for it:
//! - the *stream* thread ([`stream`]) starts `pg_receivewal` and restarts it when it ends;
//! - the *watch* thread ([`watch`]) asks the source, once a second and on demand, for its clock and
//!   the end of its log, and sees from the slot what `pg_receivewal` has confirmed as durable.
//!
//! Both write what they see into [`Shared`].
//!
//! ```text
//! Connecting ──slot in use (watch)──▶ Streaming ──child ended (stream)──▶ Retrying ──▶ Streaming …
//!      └────────────log gone (stream, watch)────────────▶ Gap          stop ──▶ Stopped
//! ```

use crate::lsn::Lsn;
use jiff::Timestamp;
use offshoot_os::Clock;
use offshoot_types::{ErrorKind, Failure};
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::archive::Archive;
use crate::installation::Tools;
use crate::source::Source;

mod stream;
mod watch;

/// Do not wait for a stream that is broken for longer than a restart of the source takes.
const BREAK: Duration = Duration::from_secs(5);
/// Longest pause between two checks of a wait.
const TICK: Duration = Duration::from_millis(200);

/// A proof of completeness: every commit of the source that was flushed up to `lsn` is in the
/// archive, and no commit with a time up to `time` is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncedTo {
    /// All log up to here is durable in the archive.
    pub lsn: Lsn,
    /// The source's clock when its log ended there.
    pub time: Timestamp,
}

/// What the receiver is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverState {
    /// Starting.
    Connecting,
    /// Receiving.
    Streaming,
    /// The connection failed and is retried soon.
    Retrying(Failure),
    /// The source no longer has the log that is needed next; only a new SnapSync fixes that. The
    /// receiver has stopped.
    Gap(Failure),
    /// Stopped on request.
    Stopped,
}

/// What is known about the stream at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverStatus {
    /// What it is doing.
    pub state: ReceiverState,
    /// For how long it has been in this state; a change of the reason to retry counts as the same
    /// state.
    pub state_for: Duration,
    /// How far the log is durable in the archive, as confirmed to the source.
    pub received: Option<Lsn>,
    /// How far the source's log was durable when last asked.
    pub source_flushed: Option<Lsn>,
    /// The newest proof of completeness.
    pub synced_to: Option<SyncedTo>,
    /// What is missing, in bytes; `None` before the source was asked.
    pub lag_bytes: Option<u64>,
    /// How long ago (at the receiver's clock) `synced_to` was taken; `None` before the first.
    pub lag: Option<Duration>,
    /// How long ago the source last answered; `None` before it did.
    pub silent_for: Option<Duration>,
    /// How far the source's clock is ahead of ours, in milliseconds; `None` before it was compared, and for a standby.
    pub clock_skew_ms: Option<i64>,
    /// How many more bytes the source keeps for us before the slot may be lost; `None`: no limit.
    pub slot_safe_bytes: Option<u64>,
}

/// What to receive and where to.
#[derive(Debug, Clone)]
pub struct ReceiverSpec {
    /// The programs of the source's major version.
    pub tools: Tools,
    /// The source.
    pub source: Source,
    /// Which cluster the source must be (`SourceFacts::system_identifier`): log of another one is
    /// never received into this archive.
    pub system_identifier: u64,
    /// The slot. If it is missing, as after a failover of the source, it is created.
    pub slot: String,
    /// The archive. The stream resumes at its end, so a SnapSync that fixes a gap must begin a new
    /// one.
    pub archive: Archive,
    /// Where the tool finds the archive's directory, which must exist and belong to the user of the
    /// tools. This process never uses it: it may be a mount that this process serves.
    pub directory: PathBuf,
}

/// What both threads and the callers share.
struct Shared {
    spec: ReceiverSpec,
    clock: Arc<dyn Clock>,
    facts: Mutex<Facts>,
    /// Signalled at every change of `facts`.
    changed: Condvar,
}

struct Facts {
    state: ReceiverState,
    state_since: Duration,
    received: Option<Lsn>,
    source_flushed: Option<Lsn>,
    synced_to: Option<SyncedTo>,
    synced_at: Duration,
    answered_at: Option<Duration>,
    clock_skew_ms: Option<i64>,
    slot_safe_bytes: Option<u64>,
    /// The source's timeline when we last connected.
    timeline: Option<u32>,
    /// Where the slot was before we connected, unless the archive holds the log up to there. While
    /// the slot stays there, nothing is confirmed.
    unconfirmed: Option<Lsn>,
    /// Whether a child of ours runs.
    child_runs: bool,
    /// Failed attempts to stream so far.
    failed_tries: u64,
    /// How many callers asked for a proof so far.
    asked: u64,
    /// Callers up to this number have their proof.
    answered: u64,
    stopping: bool,
}

/// A running receiver. Dropping it stops it.
pub struct Receiver {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Receiver {
    /// Starts receiving, in its own threads and child process. Connection failures are not errors
    /// here: the status shows them, and they are retried for ever.
    ///
    /// # Errors
    /// `HostUnprepared` when no thread can be started.
    pub fn start(spec: ReceiverSpec, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        let facts = Facts {
            state: ReceiverState::Connecting,
            state_since: clock.elapsed(),
            received: None,
            source_flushed: None,
            synced_to: None,
            synced_at: Duration::ZERO,
            answered_at: None,
            clock_skew_ms: None,
            slot_safe_bytes: None,
            timeline: None,
            unconfirmed: None,
            child_runs: false,
            failed_tries: 0,
            asked: 0,
            answered: 0,
            stopping: false,
        };
        let shared =
            Arc::new(Shared { spec, clock, facts: Mutex::new(facts), changed: Condvar::new() });
        let receiver = Receiver { shared, threads: Mutex::new(Vec::new()) };
        receiver.spawn("log-stream", stream::run)?;
        receiver.spawn("log-watch", watch::run)?;
        Ok(receiver)
    }

    fn spawn(&self, name: &str, work: fn(&Shared)) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&shared))
            .map_err(|error| {
                Failure::new(
                    ErrorKind::HostUnprepared,
                    format!("cannot start a thread: {error}"),
                    "raise the limit of threads of this host",
                )
            })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// What is known now.
    pub fn status(&self) -> ReceiverStatus {
        let now = self.shared.clock.elapsed();
        let facts = self.shared.facts.lock();
        let lag_bytes = match (facts.source_flushed, facts.received) {
            (Some(flushed), Some(received)) => Some(flushed.0.saturating_sub(received.0)),
            _ => None,
        };
        ReceiverStatus {
            state: facts.state.clone(),
            state_for: now.saturating_sub(facts.state_since),
            received: facts.received,
            source_flushed: facts.source_flushed,
            synced_to: facts.synced_to,
            lag_bytes,
            lag: facts.synced_to.map(|_| now.saturating_sub(facts.synced_at)),
            silent_for: facts.answered_at.map(|at| now.saturating_sub(at)),
            clock_skew_ms: facts.clock_skew_ms,
            slot_safe_bytes: facts.slot_safe_bytes,
        }
    }

    /// Waits until it streams.
    ///
    /// # Errors
    /// The reason why it does not stream, after `timeout`, or immediately for a gap.
    pub fn wait_streaming(&self, timeout: Duration) -> Result<(), Failure> {
        let deadline = self.shared.clock.elapsed() + timeout;
        let mut facts = self.shared.facts.lock();
        loop {
            match &facts.state {
                ReceiverState::Streaming => return Ok(()),
                ReceiverState::Gap(failure) => return Err(failure.clone()),
                ReceiverState::Stopped => return Err(stopped()),
                ReceiverState::Connecting | ReceiverState::Retrying(_) => {}
            }
            let left = deadline.saturating_sub(self.shared.clock.elapsed());
            if left.is_zero() {
                return Err(match &facts.state {
                    ReceiverState::Retrying(failure) => failure.clone(),
                    _ => self.late("does not stream its log", timeout),
                });
            }
            self.shared.changed.wait_for(&mut facts, left);
        }
    }

    /// Asks the source for its clock and the end of its log *now* and waits until all of that is
    /// received. Takes at least 25 ms. If the stream is broken it is retried immediately, and this
    /// waits for the source only as long as a restart may take.
    ///
    /// # Errors
    /// `SourceUnreachable` if that does not succeed within `timeout`; the reason why the stream cannot
    /// resume, as soon as it is known; the failure of a gap.
    pub fn ask_now(&self, timeout: Duration) -> Result<SyncedTo, Failure> {
        self.ask(timeout, &mut |_| Ok(false))
    }

    /// As [`Receiver::ask_now`], however much there is to receive: it ends only if nothing arrives
    /// for `silence`. `tick` gets the progress a few times a second.
    ///
    /// # Errors
    /// `SourceUnreachable` if nothing arrives any more; the failure of a gap; what `tick` returns.
    pub fn receive_all(
        &self,
        silence: Duration,
        tick: &mut dyn FnMut(&ReceiverStatus) -> Result<(), Failure>,
    ) -> Result<SyncedTo, Failure> {
        let mut last = None;
        self.ask(silence, &mut |status| {
            tick(status)?;
            Ok(std::mem::replace(&mut last, status.received) != status.received)
        })
    }

    /// Waits for a proof. `tick` returns whether the timeout starts again.
    fn ask(
        &self,
        patience: Duration,
        tick: &mut dyn FnMut(&ReceiverStatus) -> Result<bool, Failure>,
    ) -> Result<SyncedTo, Failure> {
        let mut deadline = self.shared.clock.elapsed() + patience;
        let mut facts = self.shared.facts.lock();
        facts.asked += 1;
        let ticket = facts.asked;
        // One may be in progress; the next one begins after the request.
        let tries_enough = facts.failed_tries + 2;
        self.shared.changed.notify_all();
        loop {
            // Checked first, so as not to sleep through an answer that arrives in between.
            if MutexGuard::unlocked(&mut facts, || tick(&self.status()))? {
                deadline = self.shared.clock.elapsed() + patience;
            }
            if facts.answered >= ticket
                && let Some(synced_to) = facts.synced_to
            {
                return Ok(synced_to);
            }
            match &facts.state {
                ReceiverState::Gap(failure) => return Err(failure.clone()),
                ReceiverState::Stopped => return Err(stopped()),
                ReceiverState::Retrying(failure) => {
                    let broken_for = self.shared.clock.elapsed().saturating_sub(facts.state_since);
                    if broken_for > BREAK && facts.failed_tries >= tries_enough {
                        return Err(failure.clone());
                    }
                }
                _ => {}
            }
            let left = deadline.saturating_sub(self.shared.clock.elapsed());
            if left.is_zero() {
                return Err(match &facts.state {
                    ReceiverState::Retrying(failure) => failure.clone(),
                    _ => self.late("did not send its newest log", patience),
                });
            }
            self.shared.changed.wait_for(&mut facts, left.min(TICK));
        }
    }

    /// Stops the child and the threads; what was received stays. May take some seconds when the
    /// source does not answer.
    pub fn stop(&self) {
        self.shared.facts.lock().stopping = true;
        self.shared.changed.notify_all();
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                tracing::error!("a thread of the receiver panicked");
            }
        }
        self.shared.set_state(ReceiverState::Stopped);
    }

    fn late(&self, what: &str, timeout: Duration) -> Failure {
        Failure::new(
            ErrorKind::SourceUnreachable,
            format!("{} {what} within {} ms", self.shared.spec.source.address, timeout.as_millis()),
            "check that the source runs and can be reached; the receiver keeps trying",
        )
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    /// Changes the state, except that a gap stays until the receiver is stopped.
    fn set_state(&self, state: ReceiverState) {
        let mut facts = self.facts.lock();
        let leaves_gap = matches!(facts.state, ReceiverState::Gap(_));
        if facts.state == state || (leaves_gap && state != ReceiverState::Stopped) {
            return;
        }
        let kind = std::mem::discriminant::<ReceiverState>;
        if kind(&facts.state) != kind(&state) {
            facts.state_since = self.clock.elapsed();
            match &state {
                ReceiverState::Retrying(why) => tracing::warn!("the log stream broke: {why}"),
                ReceiverState::Gap(why) => tracing::error!("the log stream has a gap: {why}"),
                ReceiverState::Streaming => tracing::info!("the log stream runs"),
                _ => {}
            }
        }
        facts.state = state;
        drop(facts);
        self.changed.notify_all();
    }

    /// Whether the threads must end.
    fn must_end(&self) -> bool {
        let facts = self.facts.lock();
        facts.stopping || matches!(facts.state, ReceiverState::Gap(_))
    }

    /// Records that the source has answered.
    fn heard(&self) {
        let now = self.clock.elapsed();
        self.facts.lock().answered_at = Some(now);
    }

    /// Records a failed attempt to stream.
    fn set_broken(&self, failure: Failure) {
        self.facts.lock().failed_tries += 1;
        self.set_state(ReceiverState::Retrying(failure));
        self.changed.notify_all();
    }

    /// Sleeps, at most until the receiver is stopped.
    fn rest(&self, duration: Duration) {
        self.rest_while(duration, |_| true);
    }

    /// Sleeps while a condition holds, at most until the receiver is stopped.
    fn rest_while(&self, duration: Duration, wanted: impl Fn(&Facts) -> bool) {
        let deadline = self.clock.elapsed() + duration;
        let mut facts = self.facts.lock();
        while !facts.stopping && wanted(&facts) {
            let left = deadline.saturating_sub(self.clock.elapsed());
            if left.is_zero() {
                return;
            }
            self.changed.wait_for(&mut facts, left);
        }
    }
}

fn stopped() -> Failure {
    Failure::new(
        ErrorKind::WrongState,
        "the source's log is not being received",
        "enable the dSource: its log is received again then",
    )
}

/// The failure of a gap.
fn gap(why: &str) -> Failure {
    Failure::new(
        ErrorKind::SourceRefused,
        format!("the source no longer has log that was not received yet: {why}"),
        "copy the source anew by a new SnapSync: offshoot dsource sync NAME; raise \
         max_slot_wal_keep_size on the source first, so that it keeps more log",
    )
}
