//! Everything that makes changes: workflows, by what they work on.

pub mod bisect;
pub mod bookmark;
pub mod diff;
pub mod dsource;
pub mod failover;
pub mod group;
pub mod hooks;
pub mod keepsakes;
pub mod link;
pub mod mask;
pub mod point;
pub mod pool;
pub mod provision;
pub mod reparent;
pub mod replica;
pub mod replicate;
pub mod resync;
pub mod retention;
pub mod scrub;
pub mod secrets;
pub mod set_vdb;
pub mod sleep;
pub mod snapshot;
pub mod vdb;
pub mod warm;
pub mod way;
