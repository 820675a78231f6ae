//! Timelines and their history files.

use offshoot_types::{Failure, Lsn};

/// One timeline of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeline {
    /// Its number.
    pub id: u32,
    /// Where it begins: the switch from its parent, 0 for the first.
    pub begin: Lsn,
    /// Where the next timeline left it; `None` for the newest.
    pub end: Option<Lsn>,
}

/// The newest timeline and its ancestors, oldest first; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimelineHistory {
    /// The timelines, oldest first.
    pub timelines: Vec<Timeline>,
}

impl TimelineHistory {
    /// The newest timeline.
    pub fn newest(&self) -> Timeline {
        todo!()
    }

    /// The timeline whose log holds the byte *before* a position, that is, what a record which ends
    /// there was written on.
    pub fn at(&self, position: Lsn) -> Timeline {
        todo!()
    }
}
