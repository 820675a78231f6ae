//! What can be asked of searches for the commit that changed an answer.

use crate::core::job_kind::JobKind;
use crate::core::kind::{PositionWriter, ShownPosition};
use crate::history::names;
use crate::jobs::bisect::{self, FOUND, Input};
use crate::parts::Parts;
use offshoot_domain::{Bisection, Condition, Moment, Position};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::sync::Arc;
use std::time::Duration;

/// What to look for.
#[derive(Debug, Clone)]
pub struct BisectRequest {
    /// The name of the dSource.
    pub object: String,
    /// The earlier end.
    pub from: Moment,
    /// The later end.
    pub to: Moment,
    /// The question.
    pub query: String,
    /// The database to ask; none: the one that users connect to first.
    pub database: Option<String>,
    /// Which change.
    pub condition: Condition,
    /// Whether it is an answer that the database refuses.
    pub errors_are_answers: bool,
    /// How long an answer may take.
    pub time_limit: Duration,
}

/// What a search came to.
#[derive(Debug, Clone)]
pub struct BisectionView {
    /// The name of the dSource, as it was.
    pub object: String,
    /// The question.
    pub query: String,
    /// Which change was looked for.
    pub condition: Condition,
    /// What was found.
    pub bisection: Bisection,
    /// The earlier end.
    pub from: ShownPosition,
    /// The later end.
    pub to: ShownPosition,
    /// The commit.
    pub commit: Option<ShownPosition>,
}

/// Searches, as a user works with them.
pub struct Bisections<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Bisections<'_> {
    /// Looks for the commit at which an answer changed.
    ///
    /// # Errors
    /// `NotFound`, `WrongState` for what has no log, `MomentUnavailable`, `InvalidInput`.
    pub fn start(&self, request: BisectRequest) -> Result<JobId, Failure> {
        let owner = names::find(self.parts, &request.object)?;
        let input = Input {
            source: bisect::searched(self.parts, owner)?,
            from: request.from,
            to: request.to,
            query: request.query,
            database: request.database,
            condition: request.condition,
            errors_are_answers: request.errors_are_answers,
            time_limit_ms: u64::try_from(request.time_limit.as_millis()).unwrap_or(u64::MAX),
        };
        bisect::submit(self.parts, &input)
    }

    /// What such a job found.
    ///
    /// # Errors
    /// `NotFound` if it is none, or not done.
    pub fn show(&self, id: JobId) -> Result<BisectionView, Failure> {
        let job = self.parts.runner()?.job(id)?;
        let found = FOUND.find(&job.bag).filter(|_| JobKind::Bisect.is_of(&job));
        let bisection = found.ok_or_else(|| {
            let message = format!("{id} has found nothing so far, or looks for nothing");
            Failure::new(ErrorKind::NotFound, message, "run: offshoot bisect DSOURCE")
        })?;
        let input: Input = serde_json::from_value(job.input.clone())
            .map_err(|error| Failure::internal(format!("the input of {id}: {error}")))?;
        let writer = PositionWriter::of(self.parts, input.source.into())?;
        let commit = bisection.found.as_ref().map(|found| &found.commit);
        Ok(BisectionView {
            object: job.object.to_string(),
            query: input.query,
            condition: input.condition,
            from: writer.show(bisection.from.at),
            to: writer.show(bisection.to.at),
            commit: commit.map(|one| writer.show(Position { log: one.end, time: one.time })),
            bisection,
        })
    }
}
