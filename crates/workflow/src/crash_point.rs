//! Places where a test makes the engine die, or a step fail.

use offshoot_types::{ErrorKind, Failure};
use parking_lot::Mutex;

/// When, during a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CrashPoint {
    /// It is recorded as begun and has not run.
    Before,
    /// It has run and is not recorded as done.
    After,
    /// It is about to be undone.
    BeforeUndo,
    /// It was undone and that is not recorded.
    AfterUndo,
}

/// Is called at every crash point a job passes.
pub trait CrashPoints: Send + Sync {
    /// The job of workflow `kind` is at `point` of `step`. Does not return to simulate a crash.
    ///
    /// # Errors
    /// The error with which the step, or its undo, should fail.
    fn reached(&self, kind: &str, step: &str, point: CrashPoint) -> Result<(), Failure>;
}

/// A crash point of one step of one workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    kind: String,
    step: String,
    point: CrashPoint,
}

impl Place {
    fn parse(text: &str) -> Result<Place, Failure> {
        let bad = || {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("'{text}' is not a crash point"),
                "write KIND/STEP, KIND/STEP:after, KIND/STEP:before-undo or KIND/STEP:after-undo",
            )
        };
        let (place, point) = text.split_once(':').unwrap_or((text, "before"));
        let (kind, step) = place.split_once('/').ok_or_else(bad)?;
        let point = match point {
            "before" => CrashPoint::Before,
            "after" => CrashPoint::After,
            "before-undo" => CrashPoint::BeforeUndo,
            "after-undo" => CrashPoint::AfterUndo,
            _ => return Err(bad()),
        };
        Ok(Place { kind: kind.to_owned(), step: step.to_owned(), point })
    }

    fn is_at(&self, kind: &str, step: &str, point: CrashPoint) -> bool {
        self.kind == kind && self.step == step && self.point == point
    }
}

/// Aborts the process at one crash point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbortAt(Place);

impl AbortAt {
    /// Reads `KIND/STEP[:before|:after|:before-undo|:after-undo]`; without a point: before.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for any other text.
    pub fn parse(text: &str) -> Result<AbortAt, Failure> {
        Place::parse(text).map(AbortAt)
    }
}

impl CrashPoints for AbortAt {
    fn reached(&self, kind: &str, step: &str, point: CrashPoint) -> Result<(), Failure> {
        if self.0.is_at(kind, step, point) {
            tracing::error!(kind, step, ?point, "aborting, as asked for");
            std::process::abort();
        }
        Ok(())
    }
}

/// Makes one step after the other fail in an engine that keeps running, to show that their undo works: each time
/// it is armed, the first job that passes the place gets an error there, once.
#[derive(Debug, Default)]
pub struct FailAt(Mutex<Option<Place>>);

impl FailAt {
    /// Names the next place, in the form of [`AbortAt::parse`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for any other text.
    pub fn arm(&self, text: &str) -> Result<(), Failure> {
        *self.0.lock() = Some(Place::parse(text)?);
        Ok(())
    }

    /// Withdraws a place that no job has passed; returns whether there was one.
    pub fn disarm(&self) -> bool {
        self.0.lock().take().is_some()
    }
}

impl CrashPoints for FailAt {
    fn reached(&self, kind: &str, step: &str, point: CrashPoint) -> Result<(), Failure> {
        let here = |place: &mut Place| place.is_at(kind, step, point);
        match self.0.lock().take_if(here) {
            Some(_) => Err(Failure::internal(format!("{kind}/{step} fails, as asked for"))),
            None => Ok(()),
        }
    }
}

/// No crash points.
pub(crate) struct Never;

impl CrashPoints for Never {
    fn reached(&self, _: &str, _: &str, _: CrashPoint) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
