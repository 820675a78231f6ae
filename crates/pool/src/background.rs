//! The thread that reclaims space.

use crate::{Error, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread rests when nothing is left to do.
pub(crate) const REST: Duration = Duration::from_millis(500);

/// What a step says about the next one.
pub(crate) enum Next {
    /// There is more to do now.
    More,
    /// Rest.
    Rest,
    /// Whom it worked for is gone.
    Never,
}

/// A thread that repeats a step, and rests when there is nothing to do.
#[derive(Default)]
pub(crate) struct Background {
    signal: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start(&self, mut step: impl FnMut() -> Next + Send + 'static) -> Result<()> {
        let signal = self.signal.clone();
        let work = move || {
            loop {
                let next = step();
                if matches!(next, Next::Never) {
                    return;
                }
                let mut stopped = signal.0.lock();
                if !*stopped && matches!(next, Next::Rest) {
                    signal.1.wait_for(&mut stopped, REST);
                }
                if *stopped {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("pool-reclaim".into())
            .spawn(work)
            .map_err(|error| Error::io("start the reclaim thread", &error))?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    pub(crate) fn stop(&self) {
        *self.signal.0.lock() = true;
        self.signal.1.notify_all();
        if let Some(thread) = self.thread.lock().take()
            // The thread itself may hold the last reference to the pool.
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }

    pub(crate) fn stopped(&self) -> bool {
        *self.signal.0.lock()
    }
}
