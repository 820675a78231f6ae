//! Timelines and their history files.
//!
//! A history file `00000003.history` has one line per ancestor of timeline 3, oldest first:
//! `parent-timeline TAB switch-position TAB reason`.

use crate::lsn::Lsn;
use offshoot_types::{ErrorKind, Failure};

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
    ancestors: Vec<Timeline>,
    newest: Timeline,
}

impl TimelineHistory {
    /// The history of a timeline without known ancestors.
    pub fn single(id: u32) -> Self {
        let newest = Timeline { id, begin: Lsn(0), end: None };
        TimelineHistory { ancestors: Vec::new(), newest }
    }

    /// Parses the history file of a timeline.
    ///
    /// # Errors
    /// `DataDamaged` if a line is invalid.
    pub fn parse(id: u32, text: &str) -> Result<Self, Failure> {
        let damaged = |line: &str| {
            Failure::new(
                ErrorKind::DataDamaged,
                format!("the history file of timeline {id} is damaged at: '{line}'"),
                "link the source again: a new SnapSync starts with a new archive",
            )
        };
        let mut ancestors: Vec<Timeline> = Vec::new();
        let mut begin = Lsn(0);
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut fields = line.split_whitespace();
            let parent = fields.next().and_then(|field| field.parse::<u32>().ok());
            let switch = fields.next().and_then(|field| field.parse::<Lsn>().ok());
            let (Some(parent), Some(switch)) = (parent, switch) else { return Err(damaged(line)) };
            let follows = ancestors.last().is_none_or(|last| last.id < parent);
            if !follows || parent >= id || switch < begin {
                return Err(damaged(line));
            }
            ancestors.push(Timeline { id: parent, begin, end: Some(switch) });
            begin = switch;
        }
        Ok(TimelineHistory { ancestors, newest: Timeline { id, begin, end: None } })
    }

    /// The newest timeline.
    pub fn newest(&self) -> Timeline {
        self.newest
    }

    /// All timelines, oldest first.
    pub fn timelines(&self) -> impl DoubleEndedIterator<Item = Timeline> {
        self.ancestors.iter().copied().chain([self.newest])
    }

    /// A timeline of this history by its number.
    pub fn find(&self, id: u32) -> Option<Timeline> {
        self.timelines().find(|one| one.id == id)
    }

    /// The timeline on which the byte *at* a position was written.
    pub fn at(&self, position: Lsn) -> Timeline {
        self.timelines().rev().find(|one| one.begin <= position).unwrap_or(self.newest)
    }
}
