//! What jobs found that is shown to who asked, and stored nowhere, as it holds rows. It is in memory until it is taken or
//! newer ones take its place.

use offshoot_types::JobId;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Results that are held.
const HELD_MAX: usize = 8;

/// The latest results.
pub struct Results<T>(Mutex<VecDeque<(JobId, T)>>);

impl<T> Default for Results<T> {
    fn default() -> Self {
        Results(Mutex::default())
    }
}

impl<T> Results<T> {
    /// Holds what a job found.
    pub fn put(&self, job: JobId, found: T) {
        let mut held = self.0.lock();
        held.retain(|(one, _)| *one != job);
        held.push_back((job, found));
        while held.len() > HELD_MAX {
            held.pop_front();
        }
    }

    /// Gives it away, if it is still there.
    pub fn take(&self, job: JobId) -> Option<T> {
        let mut held = self.0.lock();
        let at = held.iter().position(|(one, _)| *one == job)?;
        held.remove(at).map(|(_, found)| found)
    }
}

impl<T: Clone> Results<T> {
    /// Shows it, if it is still there.
    pub fn show(&self, job: JobId) -> Option<T> {
        let held = self.0.lock();
        held.iter().find(|(one, _)| *one == job).map(|(_, found)| found.clone())
    }
}
