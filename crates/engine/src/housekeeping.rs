//! What the engine does on its own: at its start, at its end, and in between.

pub mod checkpoints;
pub mod gateways;
pub mod leftovers;
pub mod lifetimes;
pub mod loads;
pub mod logs;
pub mod profiles;
pub mod promises;
pub mod restart;
pub mod takeover;
pub mod traces;
pub mod warm;
pub mod watch;
pub mod ways;
pub mod webhooks;
