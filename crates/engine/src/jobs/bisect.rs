//! Finds the commit at which the answer to a question changed.
//!
//! Both ends are opened and asked. If the answer is on different sides of the [`Condition`] there, the search narrows
//! down ([`search`]) until one commit is between the two moments that it holds open.
//!
//! # Invariants
//! 1. At `low` the condition is not met, at `high` it is; both were opened and asked. What is found is the commit
//!    between two such moments that has no other commit beside it, so it is a change, whatever else happened.
//! 2. Every moment is a clone of its own, with a server that only the engine reaches. Nothing of one is kept.
//! 3. A search that was cut off is undone: every place that can hold a copy is emptied.

mod opened;
mod search;

use crate::core::job_kind::JobKind;
use crate::core::kind::Kind;
use crate::history::moments::{Resolved, check, resolve};
use crate::jobs::snapshot::catch_up_with;
use crate::parts::{Context, Parts};
use crate::space::room;
use offshoot_connector::{Inquirer, Question};
use offshoot_domain::{
    Bisection, Condition, Dsource, DsourceState, Moment, Owner, Timeflow, Vdb, format_duration,
};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, LogPosition};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The longest query, in bytes: it is kept with the job.
const QUERY_BYTES_MAX: usize = 64 << 10;
/// How long an answer may take, at most.
const TIME_LIMIT_MAX: Duration = Duration::from_secs(600);

/// Key under which the job stores what it found.
pub const FOUND: Key<Bisection> = Key::new("bisection");
/// Keys under which it stores the ends.
const FROM: Key<Resolved> = Key::new("from");
const TO: Key<Resolved> = Key::new("to");

/// What to look for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    pub source: DsourceId,
    pub from: Moment,
    pub to: Moment,
    pub query: String,
    pub database: Option<String>,
    pub condition: Condition,
    /// Whether it is an answer that the database refuses.
    pub errors_are_answers: bool,
    pub time_limit_ms: u64,
}

impl Input {
    fn question(&self, kind: &Kind, source: &Dsource) -> Question {
        Question {
            query: self.query.clone(),
            database: self.database.clone(),
            preferred_database: kind.connector.database_of(&source.source),
            time_limit: Duration::from_millis(self.time_limit_ms),
        }
    }
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::Bisect).step_without_undo("resolve", resolve_ends).step(
        "search",
        search_and_clear,
        opened::discard_all,
    )
}

/// Starts the job; refuses immediately what is known to fail.
pub fn submit(parts: &Arc<Parts>, input: &Input) -> Result<JobId, Failure> {
    room::check_takes_on(parts, "private copies")?;
    let source: Dsource = parts.catalog.get(input.source)?;
    inquirer(&Kind::of_dsource(parts, &source)?)?;
    if source.state == DsourceState::Masked {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!(
                "'{}' is masked: it has images of single moments, and no log of commits",
                source.name
            ),
            "bisect the dSource that it is masked from, or open its snapshots: offshoot snapshot list",
        ));
    }
    check_query(input)?;
    check(parts, source.id.into(), &input.from)?;
    check(parts, source.id.into(), &input.to)?;
    parts.submit(Submission::new(JobKind::Bisect, &source.name, input).shared(source.id))
}

/// The dSource whose history is searched.
///
/// # Errors
/// `NotFound`; `WrongState` for a VDB.
pub fn searched(parts: &Parts, owner: Owner) -> Result<DsourceId, Failure> {
    match owner {
        Owner::Dsource(id) => Ok(id),
        Owner::Vdb(id) => {
            let vdb: Vdb = parts.catalog.get(id)?;
            Err(Failure::new(
                ErrorKind::WrongState,
                format!(
                    "'{}' is a VDB, which keeps no log: its history is its snapshots",
                    vdb.name
                ),
                "bisect the dSource that it comes from",
            ))
        }
    }
}

fn check_query(input: &Input) -> Result<(), Failure> {
    let refuse =
        |message: String, hint: &str| Err(Failure::new(ErrorKind::InvalidInput, message, hint));
    if input.query.trim().is_empty() {
        return refuse("the query is empty".to_owned(), "give one SELECT: --query 'SELECT …'");
    }
    if input.query.len() > QUERY_BYTES_MAX {
        let message = format!("the query is longer than {} KiB", QUERY_BYTES_MAX >> 10);
        return refuse(message, "shorten it");
    }
    let limit = Duration::from_millis(input.time_limit_ms);
    if limit.is_zero() || limit > TIME_LIMIT_MAX {
        let most = format_duration(TIME_LIMIT_MAX);
        return refuse(
            format!("an answer may take {most} at most, and some time"),
            "give another --time-limit",
        );
    }
    Ok(())
}

/// What asks databases of a kind.
fn inquirer(kind: &Kind) -> Result<&dyn Inquirer, Failure> {
    kind.connector.inquirer().ok_or_else(|| {
        let message = format!("databases of the kind '{}' cannot be asked", kind.connector.kind());
        Failure::new(ErrorKind::InvalidInput, message, "provision VDBs and ask them")
    })
}

/// Step: which positions the ends are.
fn resolve_ends(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let end = |moment: &Moment| {
        resolve(parts, input.source.into(), moment, &mut |follower| {
            catch_up_with(context, follower, moment).map(drop)
        })
    };
    let (from, to) = (end(&input.from)?, end(&input.to)?);
    let timeflow = check_range(parts, &input, &from, &to)?;
    context.set(FROM, &Resolved { timeflow, ..from })?;
    context.set(TO, &Resolved { timeflow, ..to })
}

/// Whether one log leads from one end to the other; the timeflow that it is of.
fn check_range(
    parts: &Parts,
    input: &Input,
    from: &Resolved,
    to: &Resolved,
) -> Result<Option<offshoot_types::TimeflowId>, Failure> {
    let source: Dsource = parts.catalog.get(input.source)?;
    let present = |resolved: &Resolved| resolved.timeflow.or(source.timeflow);
    let (earlier, later) = (from.position, to.position);
    if earlier.log > later.log && present(from) == present(to) {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!(
                "the later end ({:.0}) is before the earlier one ({:.0})",
                later.time, earlier.time
            ),
            "exchange --from and --to",
        ));
    }
    let timeflow = present(from);
    let within = match timeflow {
        Some(id) if timeflow == present(to) => {
            let log = parts.catalog.get::<Timeflow>(id)?.log;
            let range = |at: LogPosition| log.iter().rposition(|range| range.from.log <= at);
            range(earlier.log).or(Some(0)) == range(later.log).or(Some(0))
        }
        _ => false,
    };
    if within {
        return Ok(timeflow);
    }
    Err(Failure::new(
        ErrorKind::MomentUnavailable,
        format!(
            "the history of '{}' has a gap between {:.0} and {:.0}: no log leads from one to the other",
            source.name, earlier.time, later.time
        ),
        format!("choose both ends on one side of it: offshoot timeflow show {}", source.name),
    ))
}

/// Step: searches, and removes every copy that it opened.
fn search_and_clear(context: &Context) -> Result<(), Failure> {
    opened::discard_all(context)?;
    let found = search::run(context);
    let cleared = opened::discard_all(context);
    let found = found?;
    cleared?;
    context.set(FOUND, &found)
}
