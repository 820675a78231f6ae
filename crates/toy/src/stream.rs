//! The stream: one thread that pulls the source's journal and writes it to the log's directory.
//!
//! ```text
//! Idle ─▶ Streaming ◀─▶ Retrying      any ─▶ Gap: the thread ends      stop ─▶ Idle
//! ```
//! Each answer to a pull has the journal's end and the source's clock at one moment. When all bytes up to that end
//! are durable here, the two prove completeness: later commits have later times.

use crate::address::{Address, info};
use crate::client::{Client, Refused};
use crate::journal::{Journal, SEGMENT_BYTES, segment_start};
use crate::remembered::identity_in;
use jiff::Timestamp;
use offshoot_connector::{LogStream, StreamRequest, StreamState, StreamStatus};
use offshoot_domain::Position;
use offshoot_os::Clock;
use offshoot_types::{ErrorKind, Failure, LogPosition};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often to ask an idle source.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a broken stream waits before it retries.
const RETRY: Duration = Duration::from_millis(100);
/// Do not wait for a stream that is broken for longer than a restart of the source takes.
const BREAK: Duration = Duration::from_secs(3);

/// What the thread and its callers share.
pub(crate) struct Shared {
    address: Address,
    identity: String,
    reservation: Option<String>,
    journal: Journal,
    clock: Arc<dyn Clock>,
    facts: Mutex<Facts>,
    changed: Condvar,
}

struct Facts {
    state: StreamState,
    state_since: Duration,
    received: Option<u64>,
    flushed: Option<u64>,
    synced_to: Option<Position>,
    synced_at: Duration,
    answered_at: Option<Duration>,
    clock_skew_ms: Option<i64>,
    failed_tries: u64,
    /// How many callers asked for a proof so far,
    asked: u64,
    /// and up to which of them have one.
    answered: u64,
    stopping: bool,
}

/// Why a session with the source ended.
enum Ended {
    Stopped,
    Broken(Failure),
    Gap(Failure),
}

impl Shared {
    pub(crate) fn new(address: Address, request: StreamRequest) -> Result<Shared, Failure> {
        let facts = Facts {
            state: StreamState::Idle,
            state_since: request.clock.elapsed(),
            received: None,
            flushed: None,
            synced_to: None,
            synced_at: Duration::ZERO,
            answered_at: None,
            clock_skew_ms: None,
            failed_tries: 0,
            asked: 0,
            answered: 0,
            stopping: false,
        };
        Ok(Shared {
            address,
            identity: identity_in(&request.state)?,
            reservation: request.reservation,
            journal: Journal::new(request.log, ""),
            clock: request.clock,
            facts: Mutex::new(facts),
            changed: Condvar::new(),
        })
    }

    fn run(&self) {
        loop {
            match self.session() {
                Ended::Stopped => return,
                Ended::Gap(failure) => return self.set_state(StreamState::Gap(failure)),
                Ended::Broken(failure) => {
                    self.facts.lock().failed_tries += 1;
                    self.set_state(StreamState::Retrying(failure));
                }
            }
            let mut facts = self.facts.lock();
            if !facts.stopping {
                self.changed.wait_for(&mut facts, RETRY);
            }
            if facts.stopping {
                return;
            }
        }
    }

    /// Connects and receives until something happens.
    fn session(&self) -> Ended {
        let broken = |refused: Refused| Ended::Broken(refused.of_source(&self.address.place()));
        let mut client = match self.connect() {
            Ok(client) => client,
            Err(ended) => return ended,
        };
        let reserved = match &self.reservation {
            Some(name) => client.ask(&format!("RESERVE {name}")),
            None => client.ask("POSITION"),
        };
        let begin = match reserved.map(|text| text.parse::<u64>()) {
            Ok(Ok(position)) => segment_start(position),
            Ok(Err(_)) => {
                return Ended::Broken(Failure::internal("the source's answer is unclear"));
            }
            Err(refused) => return broken(refused),
        };
        // The newest file is received again from its beginning: its end may not have been durable.
        let mut at = match self.journal.numbers() {
            Ok(numbers) => numbers.last().map_or(begin, |last| last * SEGMENT_BYTES),
            Err(error) => return cannot_write(&error),
        };
        let mut proof = None;
        loop {
            if self.facts.lock().stopping {
                return Ended::Stopped;
            }
            match self.pull(&mut client, &mut at, &mut proof) {
                Ok(false) => self.rest(),
                Ok(true) => {}
                Err(ended) => return ended,
            }
        }
    }

    fn connect(&self) -> Result<Client, Ended> {
        let broken = |refused: Refused| Ended::Broken(refused.of_source(&self.address.place()));
        let mut client = self.address.connect().map_err(broken)?;
        let found = info(&mut client).map_err(broken)?;
        if found.identity == self.identity {
            return Ok(client);
        }
        Err(Ended::Broken(Failure::new(
            ErrorKind::SourceRefused,
            format!("{} is another database than was linked", self.address.place()),
            "bring the old one back, or link this one as a dSource of its own",
        )))
    }

    /// Receives what there is, at most one answer; returns whether there was anything.
    fn pull(
        &self,
        client: &mut Client,
        at: &mut u64,
        proof: &mut Option<(u64, i64, u64)>,
    ) -> Result<bool, Ended> {
        let ticket = self.facts.lock().asked;
        let name = self.reservation.as_deref().unwrap_or("-");
        let (numbers, bytes) = client.ask_bytes(&format!("PULL {at} {name} {at}")).map_err(
            |refused| match refused {
                Refused::Gone(text) => Ended::Gap(gap(&text)),
                refused => Ended::Broken(refused.of_source(&self.address.place())),
            },
        )?;
        let (Some(flushed), Some(clock_us)) = (numbers.get(1), numbers.get(2)) else {
            return Err(Ended::Broken(Failure::internal("the source's answer is unclear")));
        };
        let flushed = u64::try_from(*flushed).unwrap_or_default();
        if !bytes.is_empty() {
            self.journal.write_at(*at, &bytes).map_err(|error| cannot_write(&error))?;
            *at += bytes.len() as u64;
        }
        let now = Timestamp::try_from(self.clock.now()).unwrap_or(Timestamp::UNIX_EPOCH);
        let due = proof.get_or_insert((flushed, *clock_us, ticket));
        let mut facts = self.facts.lock();
        (facts.received, facts.flushed) = (Some(*at), Some(flushed));
        facts.answered_at = Some(self.clock.elapsed());
        facts.clock_skew_ms = Some(clock_us.saturating_sub(now.as_microsecond()) / 1000);
        if *at >= due.0 {
            if let Ok(time) = Timestamp::from_microsecond(due.1) {
                facts.synced_to = Some(Position { log: LogPosition(due.0), time });
                facts.synced_at = self.clock.elapsed();
                facts.answered = due.2;
            }
            *proof = None;
        }
        drop(facts);
        self.set_state(StreamState::Streaming);
        self.changed.notify_all();
        Ok(!bytes.is_empty())
    }

    /// Sleeps until somebody asks, but not long.
    fn rest(&self) {
        let mut facts = self.facts.lock();
        if !facts.stopping && facts.asked == facts.answered {
            self.changed.wait_for(&mut facts, PAUSE);
        }
    }

    fn set_state(&self, state: StreamState) {
        let mut facts = self.facts.lock();
        let kind = std::mem::discriminant::<StreamState>;
        if kind(&facts.state) != kind(&state) {
            facts.state_since = self.clock.elapsed();
        }
        facts.state = state;
        self.changed.notify_all();
    }

    fn status(&self) -> StreamStatus {
        let now = self.clock.elapsed();
        let facts = self.facts.lock();
        let lag_bytes = facts.flushed.zip(facts.received);
        StreamStatus {
            state: facts.state.clone(),
            state_for: now.saturating_sub(facts.state_since),
            received: facts.received.map(LogPosition),
            synced_to: facts.synced_to,
            lag_bytes: lag_bytes.map(|(flushed, received)| flushed.saturating_sub(received)),
            lag: facts.synced_to.map(|_| now.saturating_sub(facts.synced_at)),
            silent_for: facts.answered_at.map(|at| now.saturating_sub(at)),
            clock_skew_ms: facts.clock_skew_ms,
        }
    }
}

/// A stream.
pub(crate) struct Stream {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Stream {
    pub(crate) fn start(shared: Arc<Shared>) -> Result<Stream, Failure> {
        let running = shared.clone();
        let thread = std::thread::Builder::new().name("toy-stream".to_owned());
        let thread = thread.spawn(move || running.run()).map_err(|error| {
            let message = format!("cannot start a thread: {error}");
            let hint = "raise the limit of threads of this host";
            Failure::new(ErrorKind::HostUnprepared, message, hint)
        })?;
        Ok(Stream { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Waits for a proof that begins now. `tick` returns whether the timeout starts again.
    fn ask(
        &self,
        patience: Duration,
        tick: &mut dyn FnMut(&StreamStatus) -> Result<bool, Failure>,
    ) -> Result<Position, Failure> {
        let shared = &*self.shared;
        let mut deadline = shared.clock.elapsed() + patience;
        let mut facts = shared.facts.lock();
        facts.asked += 1;
        let (ticket, tries_enough) = (facts.asked, facts.failed_tries + 2);
        shared.changed.notify_all();
        loop {
            if MutexGuard::unlocked(&mut facts, || tick(&shared.status()))? {
                deadline = shared.clock.elapsed() + patience;
            }
            if facts.answered >= ticket
                && let Some(position) = facts.synced_to
            {
                return Ok(position);
            }
            let now = shared.clock.elapsed();
            match &facts.state {
                StreamState::Gap(failure) => return Err(failure.clone()),
                StreamState::Retrying(failure)
                    if now >= deadline
                        || (now.saturating_sub(facts.state_since) > BREAK
                            && facts.failed_tries >= tries_enough) =>
                {
                    return Err(failure.clone());
                }
                _ if facts.stopping => return Err(stopped()),
                _ if now >= deadline => return Err(late(&shared.address, patience)),
                _ => {}
            }
            let left = deadline.saturating_sub(now).min(Duration::from_millis(100));
            shared.changed.wait_for(&mut facts, left);
        }
    }
}

impl LogStream for Stream {
    fn status(&self) -> StreamStatus {
        self.shared.status()
    }

    fn wait_streaming(&self, timeout: Duration) -> Result<(), Failure> {
        let shared = &*self.shared;
        let deadline = shared.clock.elapsed() + timeout;
        let mut facts = shared.facts.lock();
        loop {
            let left = deadline.saturating_sub(shared.clock.elapsed());
            match &facts.state {
                StreamState::Streaming => return Ok(()),
                StreamState::Gap(failure) => return Err(failure.clone()),
                StreamState::Retrying(failure) if left.is_zero() => return Err(failure.clone()),
                _ if facts.stopping => return Err(stopped()),
                _ if left.is_zero() => return Err(late(&shared.address, timeout)),
                _ => {}
            }
            shared.changed.wait_for(&mut facts, left);
        }
    }

    fn ask_now(&self, timeout: Duration) -> Result<Position, Failure> {
        self.ask(timeout, &mut |_| Ok(false))
    }

    fn receive_all(
        &self,
        silence: Duration,
        tick: &mut dyn FnMut(&StreamStatus) -> Result<(), Failure>,
    ) -> Result<Position, Failure> {
        let mut last = None;
        self.ask(silence, &mut |status| {
            tick(status)?;
            Ok(std::mem::replace(&mut last, status.received) != status.received)
        })
    }

    fn stop(&self) {
        self.shared.facts.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of a stream panicked");
        }
        self.shared.set_state(StreamState::Idle);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop();
    }
}

fn cannot_write(error: &std::io::Error) -> Ended {
    let failure = Failure::internal(format!("received log cannot be written: {error}"));
    Ended::Broken(failure.or_pool_full(error))
}

fn gap(why: &str) -> Failure {
    Failure::new(
        ErrorKind::SourceRefused,
        format!("the source no longer has log that was not received yet: {why}"),
        "copy the source again: offshoot dsource sync NAME",
    )
}

fn stopped() -> Failure {
    Failure::new(
        ErrorKind::WrongState,
        "the source's log is not being received",
        "enable the dSource: its log is received again then",
    )
}

fn late(address: &Address, timeout: Duration) -> Failure {
    Failure::new(
        ErrorKind::SourceUnreachable,
        format!("{} did not answer within {} ms", address.place(), timeout.as_millis()),
        "check that the source runs and can be reached; the receiver keeps trying",
    )
}
