//! Two states of databases, opened side by side to be compared.
//!
//! The store says which blocks differ, by the trees of both. A server that runs writes to its files, so each state has
//! two clones: one that a server runs on, and one that stays as it was when it was stopped cleanly.

use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::history::ancestry::{Common, Way};
use crate::history::moments::Resolved;
use crate::images::opening::{self, DATASET, RECOVERY_DEADLINE, RESOLVED};
use crate::images::readiness::{IMAGE, drop_image};
use crate::parts::{Context, Parts};
use crate::serving::data_files::DataFiles;
use crate::serving::servers;
use offshoot_connector::{Ancestor, Compared, DataDir, DiffSide, Role, Server, StopMode};
use offshoot_domain::{Dsource, DsourceState, Moment, Owner};
use offshoot_types::{DatasetId, Failure, SnapshotId};
use offshoot_workflow::Key;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// So many of the nearest snapshots may be needed; of those behind them, one at each doubling of the distance.
const NEAREST: usize = 8;

/// Key under which a job stores the clone of a state that no server writes to.
const STILL: Key<DatasetId> = Key::new("still_dataset");
/// Key under which it stores the clones of states before both.
const BEFORE: Key<Vec<DatasetId>> = Key::new("before_datasets");

/// A state to compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Whose.
    pub owner: Owner,
    /// Its moment.
    pub moment: Moment,
}

/// One of two states that a job compares. What it opens must have been resolved in its part of the job.
pub struct Side {
    /// What the job's steps store for it alone.
    pub part: Context,
    owner: Owner,
    /// What its server is kept under.
    key: String,
}

impl Side {
    /// That of an object, by a name of its own within the job.
    pub fn new(context: &Context, name: &str, owner: Owner) -> Result<Side, Failure> {
        let key = format!("{}-{name}", job_key(context.job_id()));
        Ok(Side { part: context.part(name, &owner)?, owner, key })
    }

    /// Makes both clones, recovered and stopped cleanly. What an attempt before this one left is removed.
    pub fn open(&self) -> Result<(), Failure> {
        self.discard()?;
        let (context, resolved): (_, Resolved) = (&self.part, self.part.need(RESOLVED)?);
        let parts = context.app();
        let clone = |image| parts.store.clone_snapshot(image).map_err(|e| e.failure());
        let dataset = clone(resolved.image)?;
        context.set(DATASET, &dataset)?;
        parts.volumes.mount_gathering(dataset)?;
        // An image of its own was stopped cleanly when it was made.
        let is_clean = resolved.recover_to.is_none() && resolved.image != resolved.snapshot;
        let mut still = resolved.image;
        if !is_clean {
            let (kind, key) = (Kind::of(parts, self.owner)?, job_key(context.job_id()));
            match resolved.recover_to {
                Some(_) => opening::replay_resolved(context)?,
                None => {
                    opening::start_private(parts, &key, &kind, dataset, RECOVERY_DEADLINE)?;
                    opening::stop_clean(parts, &key, dataset)?;
                }
            }
            still = parts.store.snapshot(dataset).map_err(|e| e.failure())?;
            context.set(IMAGE, &still)?;
        }
        context.set(STILL, &clone(still)?)
    }

    /// Starts its server.
    fn serve(&self) -> Result<Opened, Failure> {
        let parts = self.part.app();
        let kind = Kind::of(parts, self.owner)?;
        let (key, dataset) = (&self.key, self.part.need(DATASET)?);
        let spec = servers::spec_of_copy(parts, key, format!("diff {key}"), &kind, dataset)?;
        let server = kind.connector.start(spec, Role::Private)?;
        parts.servers.add(key, server.clone());
        let still = servers::files(parts, &kind, self.part.need(STILL)?)?;
        Ok(Opened { owner: self.owner, resolved: self.part.need(RESOLVED)?, kind, still, server })
    }

    fn discard(&self) -> Result<(), Failure> {
        let parts = self.part.app();
        parts.servers.stop(&self.key, StopMode::Immediate)?;
        opening::unmount_clone(&self.part)?;
        opening::delete_clone(&self.part)?;
        if let Some(still) = self.part.get(STILL)? {
            parts.delete_dataset(still)?;
        }
        drop_image(&self.part)
    }
}

/// Ends the servers and removes all clones.
pub fn discard(context: &Context, sides: &[Side; 2]) -> Result<(), Failure> {
    sides.iter().try_for_each(Side::discard)?;
    for dataset in context.get(BEFORE)?.unwrap_or_default() {
        context.app().delete_dataset(dataset)?;
    }
    Ok(())
}

/// A state as it is compared.
pub struct Opened {
    owner: Owner,
    /// The kind of database that it is of.
    pub kind: Kind,
    /// What it is.
    pub resolved: Resolved,
    still: Arc<DataFiles>,
    server: Arc<dyn Server>,
}

/// Starts the servers of both states.
pub fn serve([left, right]: &[Side; 2]) -> Result<[Opened; 2], Failure> {
    let (left, right) = (left.serve()?, right.serve()?);
    left.server.wait_ready(RECOVERY_DEADLINE)?;
    right.server.wait_ready(RECOVERY_DEADLINE)?;
    Ok([left, right])
}

/// Gives `work` both states and all that the store knows of them.
pub fn compared<T>(
    context: &Context,
    [left, right]: &[Opened; 2],
    work: impl FnOnce(&mut Compared<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut candidates = candidates(context.app(), left, right)?.into_iter();
    work(&mut Compared {
        left: side(left),
        right: side(right),
        differing: &|path| differing(path, &left.still, &right.still),
        ancestors: &mut || {
            // A snapshot may have been deleted meanwhile.
            let mut found = candidates
                .by_ref()
                .map(|one| ancestor(context, &one, left, right))
                .flat_map(Result::transpose);
            found.next().transpose()
        },
    })
}

fn side(opened: &Opened) -> DiffSide<'_> {
    DiffSide { server: &*opened.server, files: opened.still.clone() }
}

/// Whether states of an object are what a source had.
fn is_of_source(parts: &Parts, owner: Owner) -> Result<bool, Failure> {
    let Owner::Dsource(id) = owner else { return Ok(false) };
    let dsource: Option<Dsource> = parts.catalog.find(id)?;
    Ok(dsource.is_some_and(|one| one.state != DsourceState::Masked))
}

/// The blocks of a file that are not the same in two states; none where one of them has no such file.
fn differing(
    path: &str,
    one: &DataFiles,
    other: &DataFiles,
) -> io::Result<Option<Vec<Range<u64>>>> {
    if one.exists(path)? { one.differing(path, other) } else { Ok(None) }
}

/// A state that both may come from.
enum Candidate {
    Left,
    Right,
    /// A snapshot's image, and whether its ties were cut as those of what a source had.
    Image(SnapshotId, bool),
}

fn candidates(parts: &Parts, left: &Opened, right: &Opened) -> Result<Vec<Candidate>, Failure> {
    let way = |opened: &Opened| Way::to(parts, opened.owner, &opened.resolved);
    let Common { left, right, snapshots } = way(left)?.common(parts, &way(right)?)?;
    let mut candidates = Vec::new();
    candidates.extend(left.then_some(Candidate::Left));
    candidates.extend(right.then_some(Candidate::Right));
    let doubled = |at: usize| at.is_multiple_of(NEAREST) && (at / NEAREST).is_power_of_two();
    let wanted = snapshots.iter().enumerate().filter(|(at, _)| *at < NEAREST || doubled(*at));
    for (_, one) in wanted {
        let image = one.ready_image().unwrap_or(one.id);
        let of_source = image != one.id && is_of_source(parts, one.owner)?;
        candidates.push(Candidate::Image(image, of_source));
    }
    Ok(candidates)
}

/// A candidate with its files; none if it is a snapshot that was deleted.
fn ancestor(
    context: &Context,
    candidate: &Candidate,
    left: &Opened,
    right: &Opened,
) -> Result<Option<Ancestor>, Failure> {
    let parts = context.app();
    let (files, of_source) = match candidate {
        Candidate::Left => (left.still.clone(), is_of_source(parts, left.owner)?),
        Candidate::Right => (right.still.clone(), is_of_source(parts, right.owner)?),
        Candidate::Image(image, of_source) => {
            let dataset = match parts.store.clone_snapshot(*image) {
                Ok(dataset) => dataset,
                Err(offshoot_dataset::Error::NoSnapshot(_)) => return Ok(None),
                Err(error) => return Err(error.failure()),
            };
            let mut all = context.get(BEFORE)?.unwrap_or_default();
            all.push(dataset);
            context.set(BEFORE, &all)?;
            (servers::files(parts, &left.kind, dataset)?, *of_source)
        }
    };
    let (of_left, of_this) = (left.still.clone(), files.clone());
    let differs = move |path: &str| match Arc::ptr_eq(&of_left, &of_this) {
        true => Ok(Some(Vec::new())),
        false => differing(path, &of_left, &of_this),
    };
    Ok(Some(Ancestor { files, differing: Box::new(differs), of_source }))
}
