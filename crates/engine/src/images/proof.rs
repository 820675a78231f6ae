//! The proof that an image is sound.
//!
//! A block's hash names its content, so what two images share need not be checked twice: the trees of an
//! image and of a proven one are compared, and the check reads only where they differ. Its cost follows
//! what the database has written since, not its size. The proven image was checked in the same way, so by
//! induction all of this one is.

use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::images::opening;
use crate::parts::{Context, Parts};
use crate::serving::data_files::DataFiles;
use crate::serving::servers;
use offshoot_connector::{ImageChecker, ImageScope, ServerSpec, StopMode};
use offshoot_domain::{Snapshot, Timeflow};
use offshoot_types::{DatasetId, Failure, SnapshotId};
use offshoot_workflow::Key;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::time::Duration;

/// How long the check of heaps and indexes may take.
const CHECK_DEADLINE: Duration = Duration::from_secs(6 * 3600);
/// Keys under which jobs store the clones they compare.
const CHECKED: Key<DatasetId> = Key::new("checked_dataset");
const PROVEN: Key<DatasetId> = Key::new("proven_dataset");

/// What a check found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Proof {
    /// Damage, one line each; empty: sound.
    pub damage: Vec<String>,
    /// Whether nothing was left unchecked.
    pub whole: bool,
    /// What was not checked, and why.
    #[serde(default)]
    pub unchecked: Vec<String>,
}

/// Checks an image of a snapshot on a clone of it.
pub fn prove(context: &Context, snapshot: &Snapshot, image: SnapshotId) -> Result<Proof, Failure> {
    // A check that was cut short when the engine ended starts again.
    clear(context)?;
    let parts = context.app();
    let kind = Kind::of(parts, snapshot.owner)?;
    let Some(checker) = kind.connector.image_checker() else {
        return Ok(Proof { damage: Vec::new(), whole: false, unchecked: Vec::new() });
    };
    let dataset = parts.store.clone_snapshot(image).map_err(|e| e.failure())?;
    context.set(CHECKED, &dataset)?;
    parts.volumes.mount(dataset)?;
    let key = job_key(context.job_id());
    let spec = servers::spec_of_copy(parts, &key, format!("check {key}"), &kind, dataset)?;
    // Before a server writes to the clone.
    let mut scope = scope(context, snapshot, checker, &spec)?;
    let started = parts.elapsed_ms();
    let (bytes, mut done) = (scope.bytes(), 0);
    let mut tick = |bytes_more| {
        done = bytes.min(done + bytes_more);
        context.progress(done, bytes, "bytes");
        context.check_cancelled()
    };
    let mut found = scope.check_files(&spec.files, &mut tick)?;
    let mut whole = true;
    if found.sound() {
        let server =
            opening::start_private(parts, &key, &kind, dataset, opening::RECOVERY_DEADLINE)?;
        let running = scope.check_running(&*server, CHECK_DEADLINE, &mut tick)?;
        // What files alone cannot show, as for a source without checksums, does not count as
        // unchecked.
        whole = running.unchecked.is_empty();
        found.extend(running);
    }
    if found.sound() {
        found.extend(scope.check_rest(&spec.files, &mut tick)?);
    }
    for what in &found.unchecked {
        tracing::warn!(snapshot = %snapshot.id, what, "not checked");
    }
    let ms = parts.elapsed_ms() - started;
    tracing::info!(snapshot = %snapshot.id, bytes, ms, "checked what no earlier check has seen");
    Ok(Proof { damage: found.damage, whole, unchecked: found.unchecked })
}

/// Ends a check; it is no error if none has begun.
pub fn clear(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    parts.servers.stop(&job_key(context.job_id()), StopMode::Immediate)?;
    for clone in [CHECKED, PROVEN] {
        if let Some(dataset) = context.get(clone)? {
            parts.delete_dataset(dataset)?;
        }
    }
    Ok(())
}

/// What no earlier check has seen of an image; everything if that is unknown.
fn scope(
    context: &Context,
    snapshot: &Snapshot,
    checker: &dyn ImageChecker,
    image: &ServerSpec,
) -> Result<Box<dyn ImageScope>, Failure> {
    let parts = context.app();
    // A shared block may have been damaged on disk since: if any block is damaged, everything is
    // read.
    let damaged = !parts.store.faults().is_empty();
    if let Some(proven) = if damaged { None } else { clone_proven(context, snapshot)? } {
        let data = Kind::of(parts, snapshot.owner)?.connector.layout().data;
        let checked = DataFiles::at(parts.volumes.files(context.need(CHECKED)?)?, data);
        let proven = DataFiles::at(parts.volumes.files(proven)?, data);
        match checker.scope(image, &|path| checked.differing(path, &proven)) {
            Ok(scope) => return Ok(scope),
            Err(error) => {
                tracing::warn!(snapshot = %snapshot.id, %error, "all of the image is checked");
            }
        }
    }
    checker.scope(image, &|_| Ok(None))
}

/// A clone of the proven image that is likely to have most in common with a snapshot's.
fn clone_proven(context: &Context, snapshot: &Snapshot) -> Result<Option<DatasetId>, Failure> {
    let parts = context.app();
    let Some(image) = proven_image(parts, snapshot)? else { return Ok(None) };
    match parts.store.clone_snapshot(image) {
        Ok(dataset) => {
            context.set(PROVEN, &dataset)?;
            Ok(Some(dataset))
        }
        // Deleted meanwhile.
        Err(offshoot_dataset::Error::NoSnapshot(_)) => Ok(None),
        Err(error) => Err(error.failure()),
    }
}

/// The latest of the same timeflow; otherwise what that began from; otherwise the owner's latest.
fn proven_image(parts: &Parts, snapshot: &Snapshot) -> Result<Option<SnapshotId>, Failure> {
    let mut all: Vec<Snapshot> = parts.catalog.list_of(snapshot.owner)?;
    all.sort_by_key(|one| Reverse((one.taken_at, one.id)));
    let (same, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| one.timeflow == snapshot.timeflow);
    let timeflow: Option<Timeflow> = parts.catalog.find(snapshot.timeflow)?;
    let origin = match timeflow.and_then(|timeflow| timeflow.origin) {
        Some(origin) => parts.catalog.find::<Snapshot>(origin.snapshot)?,
        None => None,
    };
    let mut candidates = same.into_iter().chain(origin).chain(others);
    Ok(candidates.find_map(|one| one.proven_image()))
}
