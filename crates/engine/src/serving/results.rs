//! What jobs found that is shown to who asked, and stored nowhere, as it holds rows. It is in memory until newer ones
//! take its place.

use offshoot_types::JobId;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Results that are held.
const HELD_MAX: usize = 8;

/// The latest results.
pub struct Results<T>(Mutex<VecDeque<(JobId, Arc<T>)>>);

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
        held.push_back((job, Arc::new(found)));
        while held.len() > HELD_MAX {
            held.pop_front();
        }
    }

    /// Shows it, if it is still there.
    pub fn show(&self, job: JobId) -> Option<Arc<T>> {
        let held = self.0.lock();
        held.iter().find(|(one, _)| *one == job).map(|(_, found)| found.clone())
    }
}
