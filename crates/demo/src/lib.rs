//! The demonstration behind `offshoot demo`: a tour of the main job on a sample database, with checks.

mod report;
mod tour;

pub use report::{Check, Report, StepTime};
pub use tour::{DemoOptions, run};
