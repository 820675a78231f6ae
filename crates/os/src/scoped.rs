//! Threads that may be had or not.

use std::thread::{Builder, Result, Scope, ScopedJoinHandle};

/// Work that was begun: a thread does it, or it is done.
#[derive(Debug)]
pub enum Begun<'scope, T> {
    Running(ScopedJoinHandle<'scope, T>),
    Done(T),
}

impl<T> Begun<'_, T> {
    /// Waits for the end, and returns what came of it.
    ///
    /// # Errors
    /// What the thread panicked with.
    pub fn join(self) -> Result<T> {
        match self {
            Begun::Running(thread) => thread.join(),
            Begun::Done(result) => Ok(result),
        }
    }
}

/// Runs `work` on a thread of its own, or here and now if the system has no more of them.
pub fn spawn_or_run<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Clone + Send + 'scope,
) -> Begun<'scope, T> {
    match Builder::new().spawn_scoped(scope, work.clone()) {
        Ok(thread) => Begun::Running(thread),
        Err(_) => Begun::Done(work()),
    }
}
