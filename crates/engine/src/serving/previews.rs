//! Rows that were masked to be looked at. They are in memory only, each until somebody has seen it.

use offshoot_connector::Preview;
use offshoot_types::JobId;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Previews that nobody has fetched are given up when so many newer ones are there.
const HELD_MAX: usize = 8;

/// Previews that nobody has seen yet.
#[derive(Default)]
pub struct Previews(Mutex<VecDeque<(JobId, Preview)>>);

impl Previews {
    /// Holds what a job shows.
    pub fn put(&self, job: JobId, preview: Preview) {
        let mut held = self.0.lock();
        held.retain(|(one, _)| *one != job);
        held.push_back((job, preview));
        while held.len() > HELD_MAX {
            held.pop_front();
        }
    }

    /// Gives it away.
    pub fn take(&self, job: JobId) -> Option<Preview> {
        let mut held = self.0.lock();
        let at = held.iter().position(|(one, _)| *one == job)?;
        held.remove(at).map(|(_, preview)| preview)
    }
}
