//! What differs between two states: both are opened in private servers, and compared by their kind of database.
//!
//! The store says which blocks differ, by the trees of both. A server that runs writes to its files, so each state has
//! two clones: one that a server runs on, and one that stays as it was when it was stopped cleanly.
//!
//! What was found is held in memory, as it holds rows. Nothing of it is in the job.

use crate::core::job_kind::JobKind;
use crate::core::keys::job_key;
use crate::core::kind::Kind;
use crate::history::ancestry::{Common, Way};
use crate::history::moments::{Resolved, check};
use crate::history::names;
use crate::images::opening::{self, DATASET, RECOVERY_DEADLINE, RESOLVED};
use crate::images::readiness::{IMAGE, drop_image};
use crate::jobs::provision::{is_present_of_vdb, resolve_from};
use crate::parts::{Comparison, Context, Parts};
use crate::serving::data_files::DataFiles;
use crate::serving::servers;
use offshoot_connector::{Ancestor, Compared, DiffSide, DiffWanted, Role, Server, StopMode};
use offshoot_domain::{Dsource, DsourceState, Moment, Owner};
use offshoot_types::{DatasetId, ErrorKind, Failure, JobId, SnapshotId};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The most of rows and statements that is held of one comparison.
const BYTES_MAX: usize = 32 << 20;
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

/// What to compare.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub left: State,
    pub right: State,
    /// Patterns for tables; none: all.
    pub tables: Vec<String>,
    /// So many rows of each table.
    pub rows: u32,
    /// Whether statements are wanted.
    pub sql: bool,
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::Diff)
        .step_without_undo("resolve", resolve)
        .step("open", open, discard)
        .step("compare", compare, discard)
}

/// Starts the job; refuses immediately what is known to fail.
pub fn submit(parts: &Arc<Parts>, input: &Input) -> Result<JobId, Failure> {
    let (left, right) = (Kind::of(parts, input.left.owner)?, Kind::of(parts, input.right.owner)?);
    if left.connector.kind() != right.connector.kind() {
        let (one, other) = (left.connector.kind(), right.connector.kind());
        let message =
            format!("a database of the kind '{one}' cannot be compared with one of '{other}'");
        return Err(Failure::new(ErrorKind::InvalidInput, message, "name two of one kind"));
    }
    if left.connector.differ().is_none() {
        let message =
            format!("databases of the kind '{}' cannot be compared", left.connector.kind());
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            message,
            "compare those of another kind",
        ));
    }
    for state in [&input.left, &input.right] {
        if !is_present_of_vdb(state.owner, &state.moment) {
            check(parts, state.owner, &state.moment)?;
        }
    }
    let name = names::of(parts, input.left.owner)?;
    let submission = Submission::new(JobKind::Diff, name, input);
    parts.submit(submission.shared(input.left.owner).shared(input.right.owner))
}

/// The two states of a job, each with what its steps store for it alone.
fn sides(context: &Context) -> Result<[(Context, State); 2], Failure> {
    let Input { left, right, .. } = context.input()?;
    Ok([(context.part("left", &left)?, left), (context.part("right", &right)?, right)])
}

/// One of the two states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Left,
    Right,
}

fn server_key(context: &Context, which: Which) -> String {
    let side = match which {
        Which::Left => "left",
        Which::Right => "right",
    };
    format!("{}-{side}", job_key(context.job_id()))
}

fn resolve(context: &Context) -> Result<(), Failure> {
    for (part, state) in sides(context)? {
        resolve_from(&part, state.owner, &state.moment)?;
    }
    Ok(())
}

/// Undo: ends the servers and removes all clones.
fn discard(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    for which in [Which::Left, Which::Right] {
        parts.servers.stop(&server_key(context, which), StopMode::Immediate)?;
    }
    for (part, _) in sides(context)? {
        opening::unmount_clone(&part)?;
        opening::delete_clone(&part)?;
        if let Some(still) = part.get(STILL)? {
            parts.delete_dataset(still)?;
        }
        drop_image(&part)?;
    }
    for dataset in context.get(BEFORE)?.unwrap_or_default() {
        parts.delete_dataset(dataset)?;
    }
    Ok(())
}

fn open(context: &Context) -> Result<(), Failure> {
    for (part, state) in sides(context)? {
        context.check_cancelled()?;
        open_one(&part, &state)?;
    }
    Ok(())
}

/// Makes both clones of a state, recovered and stopped cleanly.
fn open_one(context: &Context, state: &State) -> Result<(), Failure> {
    let (parts, resolved): (_, Resolved) = (context.app(), context.need(RESOLVED)?);
    let dataset = opening::clone_image(context, resolved.image)?;
    parts.volumes.mount_gathering(dataset)?;
    // An image of its own was stopped cleanly when it was made.
    let is_clean = resolved.recover_to.is_none() && resolved.image != resolved.snapshot;
    if !is_clean {
        let (kind, key) = (Kind::of(parts, state.owner)?, job_key(context.job_id()));
        match resolved.recover_to {
            Some(_) => opening::replay_resolved(context)?,
            None => {
                opening::start_private(parts, &key, &kind, dataset, RECOVERY_DEADLINE)?;
                opening::stop_clean(parts, &key, dataset)?;
            }
        }
        let image = parts.store.snapshot(dataset).map_err(|e| e.failure())?;
        context.set(IMAGE, &image)?;
    }
    let image = context.get(IMAGE)?.unwrap_or(resolved.image);
    let still = parts.store.clone_snapshot(image).map_err(|e| e.failure())?;
    context.set(STILL, &still)
}

/// A state as it is compared.
struct Opened {
    owner: Owner,
    kind: Kind,
    resolved: Resolved,
    still: Arc<DataFiles>,
    server: Arc<dyn Server>,
}

/// Starts the server of a state.
fn serve(part: &Context, state: &State, key: &str) -> Result<Opened, Failure> {
    let parts = part.app();
    let kind = Kind::of(parts, state.owner)?;
    let spec = servers::spec(parts, key, format!("diff {key}"), &kind, part.need(DATASET)?, None)?;
    let server = kind.connector.start(spec, Role::Private)?;
    parts.servers.add(key, server.clone());
    let still = servers::files(parts, &kind, part.need(STILL)?)?;
    Ok(Opened { owner: state.owner, kind, resolved: part.need(RESOLVED)?, still, server })
}

fn compare(context: &Context) -> Result<(), Failure> {
    let [(left, of_left), (right, of_right)] = sides(context)?;
    let left = serve(&left, &of_left, &server_key(context, Which::Left))?;
    let right = serve(&right, &of_right, &server_key(context, Which::Right))?;
    left.server.wait_ready(RECOVERY_DEADLINE)?;
    right.server.wait_ready(RECOVERY_DEADLINE)?;
    let found = compare_opened(context, &left, &right);
    drop((left, right));
    discard(context)?;
    context.app().differences.put(context.job_id(), Arc::new(found?));
    Ok(())
}

fn compare_opened(context: &Context, left: &Opened, right: &Opened) -> Result<Comparison, Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let started = parts.elapsed_ms();
    context.progress(0, 0, "pages");
    let missing = || Failure::internal("what compares databases of this kind is gone");
    let differ = left.kind.connector.differ().ok_or_else(missing)?;
    let mut candidates = candidates(parts, left, right)?.into_iter();
    let wanted = DiffWanted {
        tables: input.tables,
        rows: input.rows as usize,
        sql: input.sql,
        bytes_max: BYTES_MAX,
    };
    let found = differ.diff(
        &mut Compared {
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
        },
        &wanted,
        &mut |done, total| {
            context.progress(done, total, "pages");
            context.check_cancelled()
        },
    )?;
    let of = [left.resolved.position, right.resolved.position];
    Ok(Comparison { of, found, took_ms: parts.elapsed_ms() - started })
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
    use offshoot_connector::DataDir;
    if one.exists(path)? { one.differing(path, other) } else { Ok(None) }
}

/// A state that both may come from.
enum Candidate {
    Is(Which),
    /// A snapshot's image, and whether its ties were cut as those of what a source had.
    Image(SnapshotId, bool),
}

fn candidates(parts: &Parts, left: &Opened, right: &Opened) -> Result<Vec<Candidate>, Failure> {
    let way = |opened: &Opened| Way::to(parts, opened.owner, &opened.resolved);
    let Common { left, right, snapshots } = way(left)?.common(parts, &way(right)?)?;
    let mut candidates = Vec::new();
    candidates.extend(left.then_some(Candidate::Is(Which::Left)));
    candidates.extend(right.then_some(Candidate::Is(Which::Right)));
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
        Candidate::Is(Which::Left) => (left.still.clone(), is_of_source(parts, left.owner)?),
        Candidate::Is(Which::Right) => (right.still.clone(), is_of_source(parts, right.owner)?),
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
