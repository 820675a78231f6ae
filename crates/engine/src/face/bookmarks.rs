//! What can be asked of bookmarks.

use crate::history::bookmarks::{self, BookmarkView};
use crate::history::names;
use crate::jobs::bookmark;
use crate::parts::Parts;
use offshoot_domain::Moment;
use offshoot_types::{Failure, JobId};
use std::sync::Arc;

/// What is given a name.
#[derive(Debug, Clone, Default)]
pub struct BookmarkRequest {
    /// The name.
    pub name: String,
    /// The name of the dSource or VDB.
    pub on: String,
    /// The moment of its history.
    pub at: Moment,
}

/// Bookmarks, as a user works with them.
pub struct Bookmarks<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Bookmarks<'_> {
    /// Gives a name to a moment of a dSource or VDB.
    ///
    /// # Errors
    /// `AlreadyExists`, `NotFound`, `MomentUnavailable`.
    pub fn create(&self, request: BookmarkRequest) -> Result<JobId, Failure> {
        let BookmarkRequest { name, on, at } = request;
        bookmark::submit_create(self.parts, &name, names::find(self.parts, &on)?, at)
    }

    /// All bookmarks, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<BookmarkView>, Failure> {
        bookmarks::list(self.parts)
    }

    /// One bookmark.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<BookmarkView, Failure> {
        bookmarks::show(self.parts, name)
    }

    /// Deletes a bookmark.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn delete(&self, name: &str) -> Result<JobId, Failure> {
        bookmark::submit_delete(self.parts, name)
    }
}
