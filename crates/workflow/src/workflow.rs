//! Definitions of workflows.

use crate::context::StepContext;
use offshoot_catalog::{StepRecord, StepState};
use offshoot_types::Failure;

/// What a step does or undoes. A plain function: it can capture nothing that a restart would lose.
pub type StepFn<C> = fn(&StepContext<C>) -> Result<(), Failure>;

/// One step.
pub struct Step<C> {
    /// Unique within the workflow; stored with the job.
    pub name: &'static str,
    /// Does it; idempotent.
    pub run: StepFn<C>,
    /// Undoes it, even if it was done in part or not at all; idempotent.
    pub undo: StepFn<C>,
}

impl<C> Step<C> {
    /// Its record in a job.
    pub(crate) fn record(&self, state: StepState) -> StepRecord {
        StepRecord { name: self.name.to_owned(), state, started_at: None, ended_at: None }
    }
}

/// A list of steps under a name.
pub struct Workflow<C> {
    kind: &'static str,
    steps: Vec<Step<C>>,
    no_return: Option<usize>,
    ending: Option<usize>,
    goes_on: bool,
}

impl<C> Workflow<C> {
    /// A workflow without steps; `kind` is stored with its jobs, e.g. `vdb.provision`.
    pub fn new(kind: impl Into<&'static str>) -> Self {
        Workflow {
            kind: kind.into(),
            steps: Vec::new(),
            no_return: None,
            ending: None,
            goes_on: false,
        }
    }

    /// Adds a step.
    ///
    /// # Panics
    /// Panics if the workflow has a step of this name.
    pub fn step(mut self, name: &'static str, run: StepFn<C>, undo: StepFn<C>) -> Self {
        assert!(self.steps.iter().all(|step| step.name != name), "two steps '{name}'");
        self.steps.push(Step { name, run, undo });
        self
    }

    /// Adds a step that has no undo: one that changes nothing, one whose traces an earlier step's undo removes,
    /// one past the point of no return.
    pub fn step_without_undo(self, name: &'static str, run: StepFn<C>) -> Self {
        self.step(name, run, |_| Ok(()))
    }

    /// Once all steps so far are done, the job is only ever finished: it cannot be cancelled, and a
    /// step that fails is retried, now and after a restart.
    pub fn point_of_no_return(mut self) -> Self {
        assert!(self.no_return.is_none(), "two points of no return");
        self.no_return = Some(self.steps.len());
        self
    }

    /// Adds a last step that may fail or be cancelled although the others cannot be undone any more: the job has failed
    /// then, but what it made stays. Past it there are only such steps. The end of an engine leaves it to the next one,
    /// which repeats it beside everything else.
    ///
    /// # Panics
    /// Panics before the point of no return.
    pub fn ending(mut self, name: &'static str, run: StepFn<C>) -> Self {
        assert!(self.no_return.is_some(), "an ending '{name}' before the point of no return");
        self.ending.get_or_insert(self.steps.len());
        self.step_without_undo(name, run)
    }

    /// The end of an engine does not undo a job of it: the next engine continues with the step it was
    /// at, alongside everything else. For long work that changes nothing others wait for; its steps
    /// store their progress.
    pub fn goes_on(mut self) -> Self {
        self.goes_on = true;
        self
    }

    /// Whether its jobs continue in the next engine.
    pub(crate) fn is_going_on(&self) -> bool {
        self.goes_on
    }

    /// Whether the step at `index` is an [ending](Workflow::ending).
    pub(crate) fn is_ending(&self, index: usize) -> bool {
        self.ending.is_some_and(|first| index >= first && index < self.steps.len())
    }

    /// The name.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step<C>] {
        &self.steps
    }

    /// The records of all steps for a job that was begun when there were fewer: none of them may be missing here, or
    /// have another place. New ones that the job is past already are done: their undo copes with that (rule 2).
    pub(crate) fn extended(&self, known: &[StepRecord]) -> Option<Vec<StepRecord>> {
        let mut left = known;
        let all = self.steps.iter().map(|step| match left.split_first() {
            Some((record, rest)) if record.name == step.name => {
                left = rest;
                record.clone()
            }
            _ if left.iter().any(|record| record.state != StepState::Pending) => {
                step.record(StepState::Done)
            }
            _ => step.record(StepState::Pending),
        });
        let all = all.collect();
        left.is_empty().then_some(all)
    }

    /// Whether the step at `index` is past the point of no return.
    pub fn only_forward(&self, index: usize) -> bool {
        self.no_return.is_some_and(|first| index >= first)
    }
}
