//! What has come by a request and waits for the job that takes it.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Things that wait, each under a number.
pub struct Arrivals<T> {
    waiting: Mutex<(u64, BTreeMap<u64, T>)>,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Arrivals { waiting: Mutex::new((0, BTreeMap::new())) }
    }
}

impl<T> Arrivals<T> {
    /// Lets something wait; its number is never given again while the engine runs.
    pub fn put(&self, what: T) -> u64 {
        let mut waiting = self.waiting.lock();
        waiting.0 += 1;
        let number = waiting.0;
        waiting.1.insert(number, what);
        number
    }

    /// Gives it away. Nothing waits under the numbers of an engine that has ended.
    pub fn take(&self, number: u64) -> Option<T> {
        self.waiting.lock().1.remove(&number)
    }
}
