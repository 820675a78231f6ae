//! Operations as jobs of do/undo steps that survive the engine.
//!
//! # Model
//! A [`Workflow`] is a list of [`Step`]s: each has a *run* and an *undo*, plain functions without
//! captured state. All they know comes from the job's durable input and bag ([`StepContext`]) and
//! from the application `C`, so a new process can resume a job at any point.
//!
//! ```text
//!            submit                    last step done
//!   (none) ─────────▶ running ─────────────────────────────▶ done
//!                        │ step failed, cancelled,
//!                        │ engine stopped before the point of no return
//!                        ▼
//!                     undoing ──all undone──▶ failed | cancelled      (settled)
//!                        │ an undo fails
//!                        ▼
//!                     failed, not settled, a fault ──resume()──▶ undoing
//! ```
//!
//! # Rules
//! 1. That a step begins is durable before it runs; that it is done is durable before the next one
//!    begins (one commit says both). So after a crash at most one step is half done, and it is known
//!    which.
//! 2. A run and an undo MUST be idempotent: either may be called again after having done all or part
//!    of its work. An undo MUST cope with a run that never happened.
//! 3. What a step makes outside the catalog, it records with [`StepContext::set`] *before* (an id
//!    allocated first) or immediately after, in a form that its undo finds.
//! 4. Undo goes backwards and stops at the first step that cannot be undone, as later steps build
//!    on earlier ones.
//! 5. Past the [point of no return](Workflow::point_of_no_return) a job is only ever finished. One
//!    that [continues](Workflow::goes_on) is neither undone nor cancelled when the engine ends: the
//!    next engine repeats the step that it was at. Its [endings](Workflow::ending) may fail or be cancelled
//!    for all that: then it has failed, is settled, and nothing is undone.
//! 6. A job holds its locks from submission until it has ended; a second job is refused with an
//!    error that names the first. A job that could not be undone gives up its locks: its object must
//!    not be stuck until the next start, and rule 2 makes the later undo harmless.
//!
//! The form follows sagas (Garcia-Molina and Salem, 1987).

mod context;
mod crash_point;
mod execution;
mod jobs;
mod key;
mod live;
mod lock;
mod runner;
mod table;
mod workflow;

pub use context::StepContext;
pub use crash_point::{AbortAt, CrashPoint, CrashPoints, FailAt};
pub use key::Key;
pub use lock::Lock;
pub use runner::{Runner, Submission};
pub use workflow::{Step, StepFn, Workflow};
