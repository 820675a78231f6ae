//! What came is made durable beside the connection.

use crate::Result;
use offshoot_dataset::Intake;
use std::panic::resume_unwind;
use std::thread::{Scope, ScopedJoinHandle};

/// Checkpoints of an intake, one at a time.
pub(crate) struct Checkpoints<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    intake: &'env Intake,
    running: Option<ScopedJoinHandle<'scope, offshoot_dataset::Result<()>>>,
}

impl<'scope, 'env> Checkpoints<'scope, 'env> {
    pub(crate) fn new(
        scope: &'scope Scope<'scope, 'env>,
        intake: &'env Intake,
    ) -> Checkpoints<'scope, 'env> {
        Checkpoints { scope, intake, running: None }
    }

    /// Begins one, after the one before.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.end()?;
        let intake = self.intake;
        self.running = Some(self.scope.spawn(|| intake.checkpoint()));
        Ok(())
    }

    /// Waits for the one that was begun.
    pub(crate) fn end(&mut self) -> Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        Ok(running.join().unwrap_or_else(|panic| resume_unwind(panic))?)
    }
}
