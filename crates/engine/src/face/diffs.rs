//! What can be asked of two states.

use crate::core::kind::{PositionWriter, ShownPosition};
use crate::history::names;
use crate::images::pair::State;
use crate::jobs::diff::{self, Input};
use crate::parts::{Comparison, Parts};
use offshoot_connector::Differences;
use offshoot_domain::{Moment, Position};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::sync::Arc;

/// A state to compare.
#[derive(Debug, Clone, Default)]
pub struct StateRequest {
    /// The name of a dSource or VDB.
    pub object: String,
    /// Its moment.
    pub moment: Moment,
}

/// What to compare.
#[derive(Debug, Clone, Default)]
pub struct DiffRequest {
    /// The state to begin with.
    pub left: StateRequest,
    /// The state to end with.
    pub right: StateRequest,
    /// Patterns for tables; none: all.
    pub tables: Vec<String>,
    /// So many rows of each table.
    pub rows: u32,
    /// Statements that make the tables of the first what they are in the second.
    pub sql: bool,
}

/// A state that was compared.
#[derive(Debug, Clone)]
pub struct StateView {
    /// The name of the dSource or VDB.
    pub object: String,
    /// Its moment.
    pub position: ShownPosition,
}

/// What was found.
#[derive(Debug, Clone)]
pub struct DiffView {
    /// The first.
    pub left: StateView,
    /// The second.
    pub right: StateView,
    /// What differs.
    pub found: Differences,
    /// How long the comparison took once both were open, in milliseconds.
    pub took_ms: u64,
}

/// Comparisons, as a user works with them.
pub struct Diffs<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Diffs<'_> {
    /// Compares two states.
    ///
    /// # Errors
    /// `NotFound`, `MomentUnavailable`, `InvalidInput` for databases that cannot be compared.
    pub fn create(&self, request: DiffRequest) -> Result<JobId, Failure> {
        let state = |one: StateRequest| -> Result<State, Failure> {
            Ok(State { owner: names::find(self.parts, &one.object)?, moment: one.moment })
        };
        let DiffRequest { left, right, tables, rows, sql } = request;
        let input = Input { left: state(left)?, right: state(right)?, tables, rows, sql };
        diff::submit(self.parts, &input)
    }

    /// What such a job found.
    ///
    /// # Errors
    /// `NotFound` if it is none, is not done, or was done long ago.
    pub fn show(&self, job: JobId) -> Result<DiffView, Failure> {
        let found = self.parts.differences.show(job).ok_or_else(|| {
            let message = format!("{job} has found no differences, or they are not kept any more");
            Failure::new(ErrorKind::NotFound, message, "compare again: offshoot diff NAME NAME")
        })?;
        let asked = self.parts.runner()?.job(job)?;
        let input: Input = serde_json::from_value(asked.input)
            .map_err(|error| Failure::internal(format!("the input of {job}: {error}")))?;
        let Comparison { of: [left, right], found, took_ms } = &*found;
        Ok(DiffView {
            left: self.state(&input.left, *left)?,
            right: self.state(&input.right, *right)?,
            found: found.clone(),
            took_ms: *took_ms,
        })
    }

    fn state(&self, state: &State, position: Position) -> Result<StateView, Failure> {
        let position = PositionWriter::of(self.parts, state.owner)?.show(position);
        Ok(StateView { object: names::of(self.parts, state.owner)?, position })
    }
}
