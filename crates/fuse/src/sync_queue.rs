//! Answers `fsync`: at any time at most one of the threads that serve requests waits for the device.
//!
//! If nobody is flushing, the thread with the request flushes immediately: handing it to another
//! thread would add a wake-up to every commit of a database. Requests that arrive during a flush are
//! left to that thread, which continues until none is left, so the others always keep serving reads.
//!
//! A request is put into the queue after all writes it covers were applied to the dataset, and a
//! flush begins after the requests it answers were taken out of the queue: so each answer comes
//! after a flush that covers its writes. Requests that arrive during a flush share the next one.

use fuser::{Errno, ReplyEmpty, ReplyWrite};
use offshoot_delivery::Latencies;
use offshoot_fs::Session;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::Latency;
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

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

    /// A defect that panics must fail these requests, not hang all later ones.
    fn flush(&self) -> Result<(), Errno> {
        match std::panic::catch_unwind(AssertUnwindSafe(|| self.session.sync())) {
            Ok(result) => result.map_err(|error| Errno::from_i32(error.errno())),
            Err(_) => Err(Errno::EIO),
        }
    }
}
