//! How the engine's own threads are told to end.

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Tells threads to end. Those that rest between two rounds wake at once: an engine that makes room for another
/// must not be waited for.
#[derive(Default)]
pub struct Stopping {
    told: Mutex<bool>,
    changed: Condvar,
}

impl Stopping {
    /// Tells them.
    pub fn tell(&self) {
        *self.told.lock() = true;
        self.changed.notify_all();
    }

    /// Whether they were told.
    pub fn is_told(&self) -> bool {
        *self.told.lock()
    }

    /// Rests for so long, or until they are told; whether they were.
    pub fn rest(&self, time: Duration) -> bool {
        let mut told = self.told.lock();
        self.changed.wait_while_for(&mut told, |told| !*told, time);
        *told
    }
}

#[cfg(test)]
mod tests;
