//! What the engine shows, and what can be asked of it: one file for each kind of object.

pub mod bisections;
pub mod bookmarks;
pub mod calls;
pub mod diffs;
pub mod dsources;
pub mod engine;
pub mod failover;
pub mod groups;
pub mod jobs;
pub mod latencies;
pub mod masks;
pub mod opening;
pub mod peers;
pub mod policies;
pub mod pool;
pub mod profiles;
pub mod replication;
pub mod secrets;
pub mod snapshots;
pub mod templates;
pub mod timeflows;
pub mod users;
pub mod vdbs;
pub mod wanted;
pub mod webhooks;
