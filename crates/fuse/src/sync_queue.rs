//! Answers `fsync`: at any time at most one of the threads that serve requests waits for the device.
//!
//! If nobody is flushing, the thread with the request flushes immediately: handing it to another
//! thread would add a wake-up to every commit of a database. Requests that arrive during a flush are
//! left to that thread, which continues until none is left, so the others always keep serving reads.
//!
//! A request is put into the queue after all writes it covers were applied to the dataset, and a
//! flush begins after the requests it answers were taken out of the queue: so each answer comes
//! after a flush that covers its writes. Requests that arrive during a flush share the next one.
//!
//! A stream asks after each piece that arrived, up to a thousand times a second, and nobody waits for one of them: its flushes
//! begin [`STREAM_PACE`] apart, and what arrives meanwhile shares them.

use fuser::{Errno, ReplyEmpty, ReplyWrite};
use offshoot_delivery::Latencies;
use offshoot_fs::Session;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::Latency;
use parking_lot::{Mutex, MutexGuard};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// How far apart flushes of a stream's files begin. `pg_receivewal` makes four for each file of 16 MB, so it still receives up to
/// 400 MB a second.
const STREAM_PACE: Duration = Duration::from_millis(10);

/// A request that waits for what was written to be durable.
pub(crate) enum Waiter {
    /// `fsync`, `fdatasync`, `fsync` of a directory.
    Sync(ReplyEmpty),
    /// A direct write through a descriptor opened with `O_DSYNC`, and how many bytes it wrote.
    Write(ReplyWrite, u32),
}

impl Waiter {
    /// Where its wait is counted.
    fn latency<'a>(&self, of: &'a Latencies) -> &'a Latency {
        match self {
            Waiter::Sync(_) => &of.syncs,
            Waiter::Write(..) => &of.writes,
        }
    }

    fn answer(self, result: Result<(), Errno>) {
        match (self, result) {
            (Waiter::Sync(reply), Ok(())) => reply.ok(),
            (Waiter::Sync(reply), Err(errno)) => reply.error(errno),
            (Waiter::Write(reply, written), Ok(())) => reply.written(written),
            (Waiter::Write(reply, _), Err(errno)) => reply.error(errno),
        }
    }
}

/// The queue. Nothing is left in it when no thread is in [`SyncQueue::push`].
pub(crate) struct SyncQueue {
    session: Arc<Session>,
    latencies: Arc<Latencies>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// With when they came.
    waiting: Vec<(Duration, Waiter)>,
    /// A thread flushes, and will look at `waiting` again.
    flushing: bool,
    /// When the next flush of a stream may begin.
    next: Duration,
}

impl SyncQueue {
    pub(crate) fn new(session: Arc<Session>, latencies: Arc<Latencies>) -> Self {
        SyncQueue { session, latencies, state: Mutex::default() }
    }

    /// Answers a request, which came then, now, or leaves it to the thread that flushes.
    pub(crate) fn push(&self, came: Duration, waiter: Waiter) {
        let mut state = self.state.lock();
        state.waiting.push((came, waiter));
        if state.flushing {
            return;
        }
        state.flushing = true;
        while !state.waiting.is_empty() {
            state = self.pace(state);
            let batch = std::mem::take(&mut state.waiting);
            drop(state);
            let result = self.flush();
            let now = SystemClock.elapsed();
            for (came, waiter) in batch {
                waiter.latency(&self.latencies).record(now.saturating_sub(came));
                waiter.answer(result);
            }
            state = self.state.lock();
        }
        state.flushing = false;
    }

    /// Waits until the next flush of a stream may begin; other files wait for nothing.
    fn pace<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if !self.session.is_stream() {
            return state;
        }
        let early = state.next.saturating_sub(SystemClock.elapsed());
        if !early.is_zero() {
            drop(state);
            SystemClock.sleep(early);
            state = self.state.lock();
        }
        state.next = SystemClock.elapsed() + STREAM_PACE;
        state
    }

    /// A defect that panics must fail these requests, not hang all later ones.
    fn flush(&self) -> Result<(), Errno> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.session.sync())) {
            Ok(result) => result.map_err(|error| Errno::from_i32(error.errno())),
            Err(_) => Err(Errno::EIO),
        }
    }
}
