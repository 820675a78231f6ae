//! What the engine shows, and what can be asked of it.

pub mod engine;
pub mod policies;
pub mod timeflows;
pub mod views;
