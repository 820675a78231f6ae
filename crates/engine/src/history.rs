//! What can be opened: snapshots, bookmarks, and the way from a moment to them.

pub mod ancestry;
pub mod bookmarks;
pub mod groups;
pub mod moments;
pub mod names;
pub mod snapshots;
