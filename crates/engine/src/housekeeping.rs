//! What the engine does by itself: at its start, at its end, and in between.

pub mod checkpoints;
pub mod leftovers;
pub mod restart;
pub mod takeover;
pub mod watch;
