//! What has come by a request and waits for the job that takes it.

use offshoot_os::random_bytes;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Things that wait, each under a number.
pub struct Arrivals<T> {
    waiting: Mutex<HashMap<u64, T>>,
}

impl<T> Default for Arrivals<T> {
    fn default() -> Self {
        Arrivals { waiting: Mutex::new(HashMap::new()) }
    }
}

impl<T> Arrivals<T> {
    /// Lets something wait. Its number is random: a job of an engine that has ended finds nothing of the next one's.
    pub fn put(&self, what: T) -> u64 {
        let number = u64::from_le_bytes(random_bytes());
        self.waiting.lock().insert(number, what);
        number
    }

    /// Gives it away.
    pub fn take(&self, number: u64) -> Option<T> {
        self.waiting.lock().remove(&number)
    }
}
