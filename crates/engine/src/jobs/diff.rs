//! What differs between two states: both are opened in private servers, and compared by their kind of database.
//!
//! What was found is held in memory, as it holds rows. Nothing of it is in the job.

use crate::core::job_kind::JobKind;
use crate::core::kind::Kind;
use crate::history::moments::check;
use crate::history::names;
use crate::images::pair::{self, Opened, Side, State};
use crate::jobs::provision::{is_present_of_vdb, resolve_from};
use crate::parts::{Comparison, Context, Parts};
use offshoot_connector::DiffWanted;
use offshoot_types::{ErrorKind, Failure, JobId};
use offshoot_workflow::{Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most of rows and statements that is held of one comparison.
const BYTES_MAX: usize = 32 << 20;

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

/// The two states of a job.
fn sides(context: &Context) -> Result<[Side; 2], Failure> {
    let Input { left, right, .. } = context.input()?;
    Ok([Side::new(context, "left", left.owner)?, Side::new(context, "right", right.owner)?])
}

fn resolve(context: &Context) -> Result<(), Failure> {
    let Input { left, right, .. } = context.input()?;
    for (side, state) in sides(context)?.iter().zip([left, right]) {
        resolve_from(&side.part, state.owner, &state.moment)?;
    }
    Ok(())
}

/// Undo: ends the servers and removes all clones.
fn discard(context: &Context) -> Result<(), Failure> {
    pair::discard(context, &sides(context)?)
}

fn open(context: &Context) -> Result<(), Failure> {
    for side in sides(context)? {
        context.check_cancelled()?;
        side.open()?;
    }
    Ok(())
}

fn compare(context: &Context) -> Result<(), Failure> {
    let opened = pair::serve(&sides(context)?)?;
    let found = compare_opened(context, &opened);
    drop(opened);
    discard(context)?;
    context.app().differences.put(context.job_id(), Arc::new(found?));
    Ok(())
}

fn compare_opened(context: &Context, opened: &[Opened; 2]) -> Result<Comparison, Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let started = parts.elapsed_ms();
    context.progress(0, 0, "pages");
    let missing = || Failure::internal("what compares databases of this kind is gone");
    let [left, right] = opened;
    let differ = left.kind.connector.differ().ok_or_else(missing)?;
    let wanted = DiffWanted {
        tables: input.tables,
        rows: input.rows as usize,
        sql: input.sql,
        bytes_max: BYTES_MAX,
    };
    let mut tick = |done, total| {
        context.progress(done, total, "pages");
        context.check_cancelled()
    };
    let found =
        pair::compared(context, opened, |compared| differ.diff(compared, &wanted, &mut tick))?;
    let of = [left.resolved.position, right.resolved.position];
    Ok(Comparison { of, found, took_ms: parts.elapsed_ms() - started })
}
