//! Everything that makes changes: workflows, by what they work on.

pub mod bookmark;
pub mod dsource;
pub mod group;
pub mod link;
pub mod mask;
pub mod point;
pub mod pool;
pub mod provision;
pub mod reparent;
pub mod replica;
pub mod resync;
pub mod retention;
pub mod scrub;
pub mod secrets;
pub mod snapshot;
pub mod vdb;
pub mod warm;
