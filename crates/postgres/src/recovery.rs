//! One recovery of a clone: up to a position, then promotion.
//!
//! The WAL needed must be in the clone's `pg_wal` before. [`run`] leaves a promoted server that
//! only the engine can reach; then [`crate::settle::settle`], stop, [`finish`]: the directory then
//! opens without recovery (as a VDB: [`crate::config::write_vdb`]).

use std::time::Duration;

use offshoot_types::{Failure, Lsn};

use crate::control::Control;
use crate::data_dir::DataDir;
use crate::server::{Server, ServerSpec};

/// Where recovery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// As soon as the files are consistent.
    Consistent,
    /// Exactly at this position: every record that ends at or before it is replayed, none that
    /// starts at or after it. Give the *end* of a commit record to have that commit.
    ///
    /// The server only notices that it is there when it reads a record behind it. Where the WAL
    /// ends at the target, [`run`] therefore needs a second start: a caller that knows better says
    /// [`Target::EndOfWal`] at once.
    Lsn(Lsn),
    /// All WAL there is.
    EndOfWal,
}

/// A timeline to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeline {
    /// The newest whose history file is in `pg_wal`.
    Latest,
    /// This one.
    Id(u32),
}

/// How a recovery goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What the server says it does, e.g. `recovering 000000010000000000000003`.
    pub activity: String,
}

/// A recovered, promoted server.
#[derive(Debug)]
pub struct Recovered {
    /// It takes writes, on its private socket.
    pub server: Server,
    /// The end of the last record replayed.
    pub end_lsn: Lsn,
    /// Commit time of the last transaction replayed, µs since the Unix epoch (source's clock).
    pub last_commit_micros: Option<i64>,
}

/// Recovers a clone of a staging snapshot (or of an adopted base backup) to `target` and promotes
/// it. `spec.tcp_port` is ignored: the server is private, and no worker of the source's runs in it.
/// It runs with `fsync=off`: the caller makes the result durable as a whole (by a snapshot, or by
/// syncing the file system) before anyone depends on it.
///
/// `tick` is called every few ten ms and cancels by returning `false` (the server is stopped).
///
/// # Errors
/// `MomentUnavailable` when the WAL ends before the target, `Cancelled`, `DataDamaged` with the
/// log's last lines when recovery fails, `Internal` when `deadline` passes. The server is then
/// stopped.
pub fn run(
    dir: &dyn DataDir,
    spec: ServerSpec,
    control: &Control,
    target: Target,
    timeline: Timeline,
    deadline: Duration,
    tick: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Recovered, Failure> {
    let _ = (dir, spec, control, target, timeline, deadline, tick);
    todo!()
}

/// Removes what [`run`] wrote, after the recovered server has been stopped cleanly.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn finish(dir: &dyn DataDir) -> Result<(), Failure> {
    let _ = dir;
    todo!()
}
