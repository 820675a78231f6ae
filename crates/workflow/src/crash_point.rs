//! Places where a test lets the engine die.

use offshoot_types::{ErrorKind, Failure};

/// When, in the course of a step.
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

/// Told of every crash point a job passes.
pub trait CrashPoints: Send + Sync {
    /// The job of workflow `kind` is at `point` of `step`. Does not return to simulate a crash.
    fn reached(&self, kind: &str, step: &str, point: CrashPoint);
}

/// Aborts the process at one crash point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbortAt {
    kind: String,
    step: String,
    point: CrashPoint,
}

impl AbortAt {
    /// Reads `KIND/STEP[:before|:after|:before-undo|:after-undo]`; without a point: before.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] for any other text.
    pub fn parse(text: &str) -> Result<AbortAt, Failure> {
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
        Ok(AbortAt { kind: kind.to_owned(), step: step.to_owned(), point })
    }

    /// Whether this is the crash point.
    pub fn is_at(&self, kind: &str, step: &str, point: CrashPoint) -> bool {
        self.kind == kind && self.step == step && self.point == point
    }
}

impl CrashPoints for AbortAt {
    fn reached(&self, kind: &str, step: &str, point: CrashPoint) {
        if self.is_at(kind, step, point) {
            tracing::error!(kind, step, ?point, "aborting, as asked for");
            std::process::abort();
        }
    }
}

/// No crash points.
pub(crate) struct Never;

impl CrashPoints for Never {
    fn reached(&self, _: &str, _: &str, _: CrashPoint) {}
}

#[cfg(test)]
mod tests;
