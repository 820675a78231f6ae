//! The records of bookmarks.

use crate::core::kind::{PositionWriters, ShownPosition};
use crate::core::{Core, missing};
use crate::history::names::{self, ObjectKind};
use offshoot_domain::{Bookmark, Owner};
use offshoot_types::{Failure, SnapshotId};
use std::collections::HashMap;

/// A bookmark with the name of what it is on.
#[derive(Debug, Clone)]
pub struct BookmarkView {
    /// Its record.
    pub bookmark: Bookmark,
    /// The moment that it names.
    pub position: ShownPosition,
    /// The name of the dSource or VDB.
    pub object: String,
    /// What that is.
    pub kind: ObjectKind,
}

/// A bookmark by name or id: whoever has checked what it is on goes on by its id, as another one may get the name.
pub fn find(core: &Core, name: &str) -> Result<Bookmark, Failure> {
    let found = match name.parse() {
        Ok(id) => core.catalog.find::<Bookmark>(id)?,
        Err(_) => core.catalog.find_named(name)?,
    };
    found.ok_or_else(|| missing("bookmark", name, "list them: offshoot bookmark list"))
}

/// All bookmarks, by name.
pub fn list(core: &Core) -> Result<Vec<BookmarkView>, Failure> {
    let mut all: Vec<Bookmark> = core.catalog.list()?;
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let mut writers = PositionWriters::new(core);
    all.into_iter().map(|bookmark| view(core, bookmark, &mut writers)).collect()
}

/// One bookmark.
pub fn show(core: &Core, name: &str) -> Result<BookmarkView, Failure> {
    view(core, find(core, name)?, &mut PositionWriters::new(core))
}

fn view(
    core: &Core,
    bookmark: Bookmark,
    writers: &mut PositionWriters<'_>,
) -> Result<BookmarkView, Failure> {
    let object = names::of(core, bookmark.owner)?;
    let position = writers.of(bookmark.owner)?.show(bookmark.position);
    Ok(BookmarkView { position, object, kind: bookmark.owner.into(), bookmark })
}

/// The bookmarks of a dSource or VDB, by the snapshot they name.
pub fn by_snapshot(core: &Core, owner: Owner) -> Result<HashMap<SnapshotId, Vec<String>>, Failure> {
    let mut names: HashMap<SnapshotId, Vec<String>> = HashMap::new();
    for bookmark in core.catalog.list_of::<Bookmark>(owner)? {
        names.entry(bookmark.snapshot).or_default().push(bookmark.name.to_string());
    }
    Ok(names)
}

/// Removes the bookmarks of an object that is removed; their snapshots go with those of the object.
pub fn forget_of(core: &Core, owner: impl Into<Owner>) -> Result<(), Failure> {
    for bookmark in core.catalog.list_of::<Bookmark>(owner.into())? {
        core.catalog.delete::<Bookmark>(bookmark.id)?;
    }
    Ok(())
}
