//! Bookmarks: names for moments, which can then be opened as long as the bookmark exists.
//!
//! A bookmark names a snapshot that holds exactly its moment. If there is one (for a VDB always), it is
//! pinned. For any other moment of a dSource one is made: the moment is opened as for a VDB, shut down
//! cleanly, and that image is kept. So a bookmark opens immediately and needs no log, which retention or a
//! new copy of the source may give up around it.

use crate::core::job_kind::JobKind;
use crate::history::bookmarks;
use crate::history::moments::{Resolved, check};
use crate::history::snapshots;
use crate::images::opening::{self, DATASET, RESOLVED};
use crate::images::readiness::{IMAGE, drop_image, take_image};
use crate::jobs::provision::{is_present_of_vdb, resolve_from};
use crate::jobs::snapshot::SNAPSHOT;
use crate::parts::{Context, Parts};
use offshoot_domain::{Bookmark, Moment, ObjectName, Owner, Readiness, Snapshot, SnapshotKind};
use offshoot_types::{BookmarkId, ErrorKind, Failure, JobId, SnapshotId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What a new bookmark should name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub bookmark: BookmarkId,
    pub name: ObjectName,
    pub owner: Owner,
    pub moment: Moment,
}

/// The workflows.
pub fn workflows() -> Vec<Workflow<Parts>> {
    vec![
        Workflow::new(JobKind::BookmarkCreate)
            .step_without_undo("resolve", resolve_moment)
            .step("clone", clone, opening::delete_clone)
            .step("mount", mount, opening::unmount_clone)
            .step("recover", recover, opening::unmount_clone)
            .step("image", take_image_of_clone, drop_image)
            .step_without_undo("close", opening::delete_clone)
            .step("publish", publish, unpublish),
        Workflow::new(JobKind::BookmarkDelete)
            .point_of_no_return()
            .step_without_undo("delete", delete),
    ]
}

/// Starts a job that sets a bookmark; refuses immediately what is known to fail.
pub fn submit_create(
    parts: &Arc<Parts>,
    name: &str,
    owner: Owner,
    moment: Moment,
) -> Result<JobId, Failure> {
    let name: ObjectName = name.parse()?;
    check_free(parts, &name)?;
    if !is_present_of_vdb(owner, &moment) {
        check(parts, owner, &moment)?;
    }
    let bookmark = parts.catalog.allocate::<Bookmark>()?;
    let input = Input { bookmark, name, owner, moment };
    let submission = Submission::new(JobKind::BookmarkCreate, &input.name, &input);
    parts.submit(submission.exclusive(lock(&input.name)).shared(owner))
}

/// Refuses the name of a bookmark that is there.
pub fn check_free(parts: &Parts, name: &ObjectName) -> Result<(), Failure> {
    if parts.catalog.find_named::<Bookmark>(name)?.is_none() {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::AlreadyExists,
        format!("there is a bookmark '{name}' already"),
        format!("choose another name, or delete it: offshoot bookmark delete {name}"),
    ))
}

/// Starts a job that deletes a bookmark.
pub fn submit_delete(parts: &Arc<Parts>, name: &str) -> Result<JobId, Failure> {
    let bookmark = bookmarks::find(parts, name)?;
    let submission = Submission::new(JobKind::BookmarkDelete, &bookmark.name, &bookmark.id);
    parts.submit(submission.exclusive(lock(&bookmark.name)).shared(bookmark.owner))
}

/// What a job that sets or deletes it holds.
pub fn lock(name: &ObjectName) -> String {
    format!("bookmark:{name}")
}

/// Step: decides which snapshot holds it.
pub fn resolve_moment(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    resolve_from(context, input.owner, &input.moment)
}

/// Whether an image must be made: no snapshot holds the moment, nor will one once it is ready.
fn needs_image(context: &Context) -> Result<bool, Failure> {
    let resolved: Resolved = context.need(RESOLVED)?;
    let Some(to) = resolved.recover_to else { return Ok(false) };
    let base = snapshots::find(context.app(), resolved.snapshot)?;
    Ok(!(base.awaits_proof() && base.position.log == to))
}

fn clone(context: &Context) -> Result<(), Failure> {
    if needs_image(context)? { opening::clone_resolved(context) } else { Ok(()) }
}

fn mount(context: &Context) -> Result<(), Failure> {
    if needs_image(context)? { opening::mount_clone(context) } else { Ok(()) }
}

fn recover(context: &Context) -> Result<(), Failure> {
    if needs_image(context)? { opening::replay_resolved(context) } else { Ok(()) }
}

fn take_image_of_clone(context: &Context) -> Result<(), Failure> {
    match context.get(DATASET)? {
        Some(_) => take_image(context),
        None => Ok(()),
    }
}

/// Step: its record.
pub fn publish(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    let (input, resolved): (Input, Resolved) = (context.input()?, context.need(RESOLVED)?);
    let image: Option<SnapshotId> = context.get(IMAGE)?;
    let now = parts.now();
    let named = parts.catalog.transaction(|tx| -> Result<SnapshotId, offshoot_catalog::Error> {
        // It may have been deleted in the meantime; then there is nothing to name.
        let base: Snapshot = tx.get(resolved.snapshot)?;
        if let Some(image) = image {
            tx.put(&Snapshot {
                id: image,
                position: resolved.position,
                replay_from: resolved.position.log,
                kind: SnapshotKind::Bookmark,
                taken_at: now,
                readiness: Readiness::Ready { image, proven: false },
                unchecked: Vec::new(),
                ..base.clone()
            })?;
        }
        let snapshot = image.unwrap_or(base.id);
        tx.put(&Bookmark {
            id: input.bookmark,
            name: input.name,
            owner: input.owner,
            snapshot,
            position: resolved.position,
            created_at: now,
        })?;
        Ok(snapshot)
    })?;
    context.set(SNAPSHOT, &named)
}

/// Undo: removes that.
pub fn unpublish(context: &Context) -> Result<(), Failure> {
    let input: Input = context.input()?;
    delete_bookmark(context.app(), input.bookmark)
}

fn delete(context: &Context) -> Result<(), Failure> {
    delete_bookmark(context.app(), context.input()?)
}

/// Removes a bookmark, and the snapshot that was made for it unless another bookmark also names
/// that.
fn delete_bookmark(parts: &Parts, id: BookmarkId) -> Result<(), Failure> {
    let Some(bookmark) = parts.catalog.find::<Bookmark>(id)? else { return Ok(()) };
    parts.catalog.delete::<Bookmark>(id)?;
    let others: Vec<Bookmark> = parts.catalog.list_of(bookmark.owner)?;
    if others.iter().any(|one| one.snapshot == bookmark.snapshot) {
        return Ok(());
    }
    // A crash in between leaves a snapshot that no bookmark names: retention finds it.
    match parts.catalog.find::<Snapshot>(bookmark.snapshot)? {
        Some(made) if made.kind == SnapshotKind::Bookmark => snapshots::free(parts, &made),
        _ => Ok(()),
    }
}
