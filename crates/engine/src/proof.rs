//! The proof that an image is sound.
//!
//! A block's hash names its content, so what two images have in common need not be looked at twice: the
//! trees of an image and of one that was proven are compared, and the check reads only where they differ.
//! Its cost follows what the database has written since, not how large it is. The images that it begins
//! with were checked in the same way: by induction, all of this one was.

use crate::core::{Context, Core, job_key};
use crate::data_files::DataFiles;
use crate::opening;
use crate::provision::major_of;
use crate::readiness::RECOVERY_DEADLINE;
use offshoot_domain::{Snapshot, Timeflow};
use offshoot_postgres::check_image::{Scope, check_pages, check_running};
use offshoot_postgres::control::{self, Control};
use offshoot_postgres::server::StopMode;
use offshoot_types::{DatasetId, Failure, SnapshotId};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::time::Duration;

/// How long the check of heaps and indexes may take.
const CHECK_DEADLINE: Duration = Duration::from_secs(6 * 3600);
/// Keys under which jobs note the clones they compare.
const CHECKED: &str = "checked_dataset";
const PROVEN: &str = "proven_dataset";

/// What a check found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Proof {
    /// Damage, one line each; empty: sound.
    pub damage: Vec<String>,
    /// Whether nothing was left unchecked.
    pub whole: bool,
}

/// Checks an image of a snapshot on a clone of it.
pub fn prove(context: &Context, snapshot: &Snapshot, image: SnapshotId) -> Result<Proof, Failure> {
    // A check that the engine's end cut short begins anew.
    clear(context)?;
    let core = context.app();
    let major = major_of(core, snapshot.owner)?;
    let dataset = core.store.clone_snapshot(image).map_err(|e| e.failure())?;
    context.set(CHECKED, &dataset)?;
    core.exports.mount(dataset)?;
    let tools = core.host.tools(major)?;
    let (bin, dir) = (&tools.installation.bin_dir, core.paths.data_dir(dataset));
    let control = control::read(bin, &dir, tools.user.as_ref())?;
    let files = DataFiles::new(core.exports.files(dataset)?);
    // Before a server writes to the clone.
    let scope = scope(context, snapshot, &control, &files)?;
    let started = core.elapsed_ms();
    let (small, large) = scope.split();
    let (bytes, mut done) = (scope.bytes(), 0);
    let mut tick = |bytes_more| {
        done = bytes.min(done + bytes_more);
        context.progress(done, bytes, "bytes");
        context.check_cancelled()
    };
    let mut found = check_pages(&control, &files, &small, &mut tick)?;
    let mut whole = true;
    if found.sound() {
        let key = job_key(context.job_id());
        opening::start_private(core, &key, major, dataset, RECOVERY_DEADLINE)?;
        let shared = core.servers.get(&key).ok_or_else(|| Failure::internal("no server"))?;
        let running = check_running(&shared.lock(), &scope, CHECK_DEADLINE, &mut tick)?;
        // Where a source has no page checksums, nothing is left unchecked by that.
        whole = running.unchecked.is_empty();
        found.extend(running);
    }
    // The server has verified the checksums of what it read: one reading of heaps is enough.
    if found.sound() && control.data_checksums {
        found.extend(check_pages(&control, &files, &large.without(&found.read), &mut tick)?);
    }
    for what in &found.unchecked {
        tracing::warn!(snapshot = %snapshot.id, what, "not checked");
    }
    let ms = core.elapsed_ms() - started;
    tracing::info!(snapshot = %snapshot.id, bytes, ms, "checked what no earlier check has seen");
    Ok(Proof { damage: found.damage, whole })
}

/// Ends what a check has begun; nothing having begun is no error.
pub fn clear(context: &Context) -> Result<(), Failure> {
    let core = context.app();
    core.servers.stop(&job_key(context.job_id()), StopMode::Immediate)?;
    for clone in [CHECKED, PROVEN] {
        if let Some(dataset) = context.get(clone)? {
            opening::delete_dataset(core, dataset)?;
        }
    }
    Ok(())
}

/// What of an image no earlier check has seen; all where that cannot be told.
fn scope(
    context: &Context,
    snapshot: &Snapshot,
    control: &Control,
    files: &DataFiles,
) -> Result<Scope, Failure> {
    // A block that both have may be damaged on disk since: where any is, all is read.
    let damaged = !context.app().store.faults().is_empty();
    if let Some(proven) = if damaged { None } else { clone_proven(context, snapshot)? } {
        let proven = DataFiles::new(context.app().exports.files(proven)?);
        match Scope::of(control, files, |path| files.differing(path, &proven)) {
            Ok(scope) => return Ok(scope),
            Err(error) => {
                tracing::warn!(snapshot = %snapshot.id, %error, "all of the image is checked");
            }
        }
    }
    Scope::of(control, files, |_| Ok(None))
        .map_err(|error| Failure::internal(format!("the files of the image: {error}")))
}

/// A clone of the proven image that is likely to have most in common with a snapshot's.
fn clone_proven(context: &Context, snapshot: &Snapshot) -> Result<Option<DatasetId>, Failure> {
    let core = context.app();
    let Some(image) = proven_image(core, snapshot)? else { return Ok(None) };
    match core.store.clone_snapshot(image) {
        Ok(dataset) => {
            context.set(PROVEN, &dataset)?;
            Ok(Some(dataset))
        }
        // Deleted meanwhile.
        Err(offshoot_dataset::Error::NoSnapshot(_)) => Ok(None),
        Err(error) => Err(error.failure()),
    }
}

/// Of the same timeflow the latest; else what that began from; else the owner's latest.
fn proven_image(core: &Core, snapshot: &Snapshot) -> Result<Option<SnapshotId>, Failure> {
    let mut all: Vec<Snapshot> = core.catalog.list_of(snapshot.owner)?;
    all.sort_by_key(|one| Reverse((one.taken_at, one.id)));
    let (same, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| one.timeflow == snapshot.timeflow);
    let timeflow: Option<Timeflow> = core.catalog.find(snapshot.timeflow)?;
    let origin = match timeflow.and_then(|timeflow| timeflow.origin) {
        Some(origin) => core.catalog.find::<Snapshot>(origin.snapshot)?,
        None => None,
    };
    let mut candidates = same.into_iter().chain(origin).chain(others);
    Ok(candidates.find_map(|one| one.proven_image()))
}
