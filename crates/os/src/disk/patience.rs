//! What the store does when descriptors or memory are used up: it takes from a reserve, then it waits.
//!
//! An error would reach a database as damage, or end all writing, though the next moment may have what is missing.
//! Somebody may have taken all descriptors on purpose, so a few are held here for the store alone.

use crate::limits::is_shortage;
use crate::{Clock, SystemClock};
use parking_lot::Mutex;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Descriptors kept in reserve: a commit opens a few files at a time.
const SPARES: usize = 16;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a wait is logged.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Of this process, whose limit it is.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());
/// How many of the reserve are missing. Read without the lock.
static MISSING: AtomicUsize = AtomicUsize::new(SPARES);

/// Does something that takes descriptors or memory, as often as it takes until there are some.
pub(super) fn patiently<T>(attempt: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let begun = SystemClock.elapsed();
    let mut told = Duration::ZERO;
    loop {
        let error = match attempt() {
            Err(error) if is_shortage(&error) => error,
            done => {
                restore();
                return done;
            }
        };
        if give_up_one() {
            continue;
        }
        let waited = SystemClock.elapsed().saturating_sub(begun);
        if waited >= told {
            tracing::warn!(%error, waited_s = waited.as_secs(), "the store waits");
            told = waited + TELL_EVERY;
        }
        SystemClock.sleep(PAUSE);
    }
}

/// Takes what is missing of the reserve while there are enough.
pub(super) fn restore() {
    while MISSING.load(Ordering::Relaxed) > 0 {
        let Ok(spare) = File::open("/dev/null") else { return };
        let mut held = HELD.lock();
        if held.len() < SPARES {
            held.push(spare);
        }
        MISSING.store(SPARES - held.len(), Ordering::Relaxed);
    }
}

fn give_up_one() -> bool {
    let mut held = HELD.lock();
    let spare = held.pop();
    MISSING.store(SPARES - held.len(), Ordering::Relaxed);
    spare.is_some()
}
