//! Steady writes to a source, one small transaction at a time, each recorded once acknowledged.

use crate::{Database, History, Tick};
use anyhow::Result;
use jiff::Timestamp;
use offshoot_os::{Clock, SystemClock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The tables the writer writes: `ticks` gets one row per write, `tick_now` holds the last value.
/// Both change in one transaction, so that a torn state is visible.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE ticks (value bigint PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp());
    CREATE TABLE tick_now (value bigint NOT NULL);
    INSERT INTO tick_now VALUES (0);";

const LAST_VALUE: &str = "SELECT value FROM tick_now";

/// A thread that writes until it is dropped.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    history: Mutex<History>,
}

impl Writer {
    /// Statements that empty the tables, as a clone of a written database needs before a new writer.
    pub const EMPTY: &str = "TRUNCATE ticks; UPDATE tick_now SET value = 0";

    /// Starts writing 1, 2, 3, … to the database behind `uri`, one transaction every `every`. The
    /// database needs the tables of a [`Source`](crate::Source), empty: see [`Writer::EMPTY`].
    pub fn start(uri: String, every: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::spawn(move || write(&theirs, &uri, every));
        Writer { shared, thread: Some(thread) }
    }

    /// What was acknowledged so far.
    pub fn history(&self) -> History {
        self.shared.history.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until `value` is acknowledged; returns whether it was within `limit`.
    pub fn wait_for(&self, value: i64, limit: Duration) -> bool {
        let clock = SystemClock;
        let deadline = clock.elapsed() + limit;
        while self.history().last_value() < value {
            if clock.elapsed() > deadline {
                return false;
            }
            clock.sleep(Duration::from_millis(10));
        }
        true
    }

    /// Stops writing and returns the whole history.
    pub fn stop(mut self) -> History {
        self.end();
        self.history()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // The thread's panic would be ours to report, but there is nothing left to undo.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.end();
    }
}

fn write(shared: &Shared, uri: &str, every: Duration) {
    let clock = SystemClock;
    let now = || Timestamp::try_from(clock.now()).unwrap_or(Timestamp::UNIX_EPOCH);
    // A commit whose acknowledgement was lost: when it was asked for.
    let mut doubtful: Option<Timestamp> = None;
    let mut connection: Option<Database> = None;
    while !shared.stop.load(Ordering::Acquire) {
        let next = shared.history.lock().unwrap_or_else(PoisonError::into_inner).last_value() + 1;
        let before = now();
        let record = |before, value| {
            let tick = Tick { value, before, after: now() };
            shared.history.lock().unwrap_or_else(PoisonError::into_inner).push(tick);
        };
        match &connection {
            None => {
                connection = Database::connect(uri).ok();
                let held = connection.as_ref().and_then(|db| db.number(LAST_VALUE).ok());
                if let Some(held) = held
                    && let Some(asked) = doubtful.take()
                    && held == next
                {
                    record(asked, next);
                }
            }
            Some(db) => match write_one(db, next) {
                Ok(()) => record(before, next),
                Err(_) => {
                    doubtful = Some(before);
                    connection = None;
                }
            },
        }
        clock.sleep(every);
    }
}

fn write_one(db: &Database, value: i64) -> Result<()> {
    db.execute(&format!(
        "BEGIN; INSERT INTO ticks VALUES ({value}); UPDATE tick_now SET value = {value}; COMMIT"
    ))
}
