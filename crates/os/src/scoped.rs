//! Threads that may be had or not.

use std::thread::{Builder, Scope};

/// Runs `work` on a thread of its own, or here and now if the system has no more of them.
pub fn spawn_or_run<'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Clone + Send + 'scope,
) {
    if Builder::new().spawn_scoped(scope, work.clone()).is_err() {
        work();
    }
}
