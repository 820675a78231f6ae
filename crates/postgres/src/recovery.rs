//! One recovery of a clone: up to a position, then promotion.
//!
//! The WAL needed must be in the clone's `pg_wal` before. [`run`] leaves a promoted server that
//! only the engine can reach; then [`crate::settle::settle`], stop, [`finish`]: the directory then
//! opens without recovery (as a VDB: [`crate::config::write_vdb`]).

use std::time::Duration;

use crate::archive::WalFile;
use crate::lsn::Lsn;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};

use crate::config::{self, purpose};
use crate::control::Control;
use crate::files::{remove_file, write_file};
use crate::server::{self, Server, ServerSpec, StopMode};
use crate::standby::REPLAY_SQL;
use offshoot_connector::DataDir;

/// Where recovery ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// As soon as the files are consistent.
    Consistent,
    /// Exactly at this position: every record that ends at or before it is replayed, none that
    /// starts at or after it. Give the *end* of a commit record to have that commit.
    ///
    /// The server notices that it is there only when it reads a later record. If the WAL ends at
    /// the target, [`run`] therefore needs a second start; a caller that knows this uses
    /// [`Target::EndOfWal`] instead.
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

/// A recovered, promoted server.
#[derive(Debug)]
pub struct Recovered {
    /// It takes writes, on its private socket.
    pub server: Server,
    /// The end of the last record replayed.
    pub end_lsn: Lsn,
    /// Commit time of the last transaction replayed, µs since the Unix epoch (source's clock).
    pub last_commit_micros: Option<i64>,
    /// From the server's start until it had replayed that record.
    pub took: Duration,
}

/// How often the caller's `tick` is called.
const TICK: Duration = Duration::from_millis(25);

/// How often the server logs how far its replay is: half of it is old news to a waiting user.
const REPORT: (&str, &str) = ("log_startup_progress_interval", "200ms");
/// The first major version that does.
const REPORTS_SINCE: u32 = 15;
/// What comes before the position in such a line.
const REPORTED: &str = "current LSN: ";

/// What its log says when everything has been replayed; nothing if there was nothing.
const REPLAYED: &str = "redo done at ";

const ENDED_BEFORE_TARGET: &str = "recovery ended before configured recovery target was reached";
const TARGET_TOO_EARLY: &str = "requested recovery stop point is before consistent recovery point";
const NOT_CONSISTENT: &str = "WAL ends before";

/// Bytes of the header at the start of a WAL segment: a position right after a page's header and
/// the end of the page before are the same place.
const PAGE_HEADER_BYTES: u64 = 40;
const WAL_PAGE_BYTES: u64 = 8192;

/// Recovers a clone of a staging snapshot (or of an adopted base backup) to `target` and promotes
/// it. `spec.tcp_port` is ignored: the server is private, and none of the source's workers runs in
/// it. If `spec.superusers` is empty, they are looked up in `dir`. The server runs with
/// `fsync=off`: the caller makes the result durable as a whole (by a snapshot, or by syncing the
/// file system) before anyone depends on it.
///
/// `tick` is called every 10 to 100 ms with how far replay is, if known: exactly, by the server's log,
/// or at least up to the WAL file that is being replayed. It cancels by returning `false` (the server is stopped).
///
/// # Errors
/// `MomentUnavailable` when the WAL ends before the target, `Cancelled`, `DataDamaged` with the
/// log's last lines when recovery fails, `Internal` when `deadline` passes. The server is then
/// stopped.
pub fn run(
    dir: &dyn DataDir,
    mut spec: ServerSpec,
    control: &Control,
    target: Target,
    timeline: Timeline,
    deadline: Duration,
    tick: &mut dyn FnMut(Option<Lsn>) -> bool,
) -> Result<Recovered, Failure> {
    spec.tcp_port = None;
    if spec.superusers.is_empty() {
        spec.superusers = crate::superuser::candidates(dir);
    }
    let end = SystemClock.elapsed() + deadline;
    prepare(dir, control, target, timeline)?;
    let segment_bytes = control.wal_segment_bytes;
    let tick = &mut |server: &Server| tick(replaying(server, segment_bytes));
    let recovered = match attempt(spec.clone(), target, deadline, tick) {
        Err(Ended::BeforeTarget) => {
            // Perhaps there is just no record after the target to show where it is.
            prepare(dir, control, Target::EndOfWal, timeline)?;
            attempt(spec, Target::EndOfWal, end.saturating_sub(SystemClock.elapsed()), tick)
        }
        other => other,
    };
    let mut recovered = recovered.map_err(Ended::into_failure)?;
    if let Target::Lsn(wanted) = target
        && !reaches(recovered.end_lsn, wanted)
    {
        let _ = recovered.server.stop(StopMode::Immediate, Duration::from_secs(20));
        return Err(ends_early(Some((recovered.end_lsn, wanted))));
    }
    Ok(recovered)
}

fn prepare(
    dir: &dyn DataDir,
    control: &Control,
    target: Target,
    timeline: Timeline,
) -> Result<(), Failure> {
    config::remove_leftovers(dir)?;
    let mut settings = purpose::preparing(control, &config::inherited(dir)?);
    let mut set = |name: &str, value: String| settings.insert(name.to_owned(), value);
    if major_version(dir).is_some_and(|major| major >= REPORTS_SINCE) {
        set(REPORT.0, REPORT.1.to_owned());
    }
    set(
        "recovery_target_timeline",
        match timeline {
            Timeline::Latest => "latest".to_owned(),
            Timeline::Id(id) => id.to_string(),
        },
    );
    match target {
        Target::Consistent => drop(set("recovery_target", "immediate".to_owned())),
        Target::Lsn(lsn) => {
            set("recovery_target_lsn", lsn.to_string());
            // The server compares where records *start*: "not inclusive" stops before the first
            // record that starts at the target, "inclusive" would replay that one as well.
            set("recovery_target_inclusive", "off".to_owned());
        }
        Target::EndOfWal => {}
    }
    config::write_purpose(dir, "one recovery", &settings)?;
    crate::access::write_private(dir)?;
    write_file(dir, "recovery.signal", "")
}

/// How an attempt failed.
enum Ended {
    BeforeTarget,
    Failed(Failure),
}

impl Ended {
    fn into_failure(self) -> Failure {
        match self {
            Ended::BeforeTarget => ends_early(None),
            Ended::Failed(failure) => failure,
        }
    }
}

fn attempt(
    spec: ServerSpec,
    target: Target,
    deadline: Duration,
    tick: &mut dyn FnMut(&Server) -> bool,
) -> Result<Recovered, Ended> {
    let started = SystemClock.elapsed();
    let mut server = server::start(spec).map_err(Ended::Failed)?;
    let mut last_tick = started;
    let mut tick = |server: &Server| {
        let now = SystemClock.elapsed();
        if now.saturating_sub(last_tick) < TICK {
            return true;
        }
        last_tick = now;
        tick(server)
    };
    let replayed = server.wait_logged(&[REPLAYED, server::READY], deadline, &mut tick);
    let took = SystemClock.elapsed() - started;
    // Each attempt to connect before that is one process more beside the one that replays.
    let ready = replayed.and_then(|()| server.wait_logged(&[server::READY], deadline, &mut tick));
    let mut session = match ready.and_then(|()| server.wait_session(deadline, &mut tick)) {
        Ok(session) => session,
        Err(failure) if failure.code == ErrorKind::Cancelled => {
            return Err(Ended::Failed(Failure::new(
                ErrorKind::Cancelled,
                "the recovery was cancelled",
                "",
            )));
        }
        Err(failure) => return Err(explain(&server, target, failure)),
    };
    let rows = session
        .query(&format!("{REPLAY_SQL}, pg_is_in_recovery()"), Duration::from_secs(30))
        .map_err(Ended::Failed)?;
    let row = rows.into_iter().next().unwrap_or_default();
    let field = |column: usize| row.get(column).cloned().flatten();
    if field(2).as_deref() != Some("f") {
        let _ = server.stop(StopMode::Immediate, Duration::from_secs(20));
        return Err(Ended::Failed(Failure::internal("the recovered server was not promoted")));
    }
    Ok(Recovered {
        end_lsn: field(0).and_then(|text| text.parse().ok()).unwrap_or_default(),
        last_commit_micros: field(1).and_then(|text| text.parse().ok()),
        took,
        server,
    })
}

pub(crate) fn major_version(dir: &dyn DataDir) -> Option<u32> {
    let text = dir.read("PG_VERSION").ok()?;
    String::from_utf8(text).ok()?.trim().parse().ok()
}

/// How far replay is: at least at the start of the WAL file that it reads.
fn replaying(server: &Server, segment_bytes: u64) -> Option<Lsn> {
    let start = |name: String| {
        let file = WalFile::parse(&name, segment_bytes)?;
        Some(Lsn(file.number.saturating_mul(segment_bytes)))
    };
    let reported = server.log_last(REPORTED).and_then(|line| reported(&line));
    server.recovering().and_then(start).max(reported)
}

/// The position in a line of the server's log that reports its progress.
fn reported(line: &str) -> Option<Lsn> {
    line.rsplit_once(REPORTED)?.1.trim().parse().ok()
}

fn explain(server: &Server, target: Target, failure: Failure) -> Ended {
    if matches!(target, Target::Lsn(_)) && server.log_says(ENDED_BEFORE_TARGET) {
        return Ended::BeforeTarget;
    }
    if server.log_says(TARGET_TOO_EARLY) {
        return Ended::Failed(Failure::new(
            ErrorKind::MomentUnavailable,
            "the moment is before the one at which the snapshot's files are consistent",
            "start from an earlier snapshot, or choose a later moment",
        ));
    }
    if server.log_says(NOT_CONSISTENT) {
        return Ended::Failed(Failure::new(
            ErrorKind::MomentUnavailable,
            format!("the log kept ends before the snapshot is consistent: {}", failure.message),
            "start from another snapshot",
        ));
    }
    Ended::Failed(failure)
}

/// Whether replay that ended at `end` has reached `wanted`.
fn reaches(end: Lsn, wanted: Lsn) -> bool {
    end >= wanted || (end.0.is_multiple_of(WAL_PAGE_BYTES) && wanted.0 - end.0 <= PAGE_HEADER_BYTES)
}

fn ends_early(positions: Option<(Lsn, Lsn)>) -> Failure {
    let detail = positions.map_or(String::new(), |(end, wanted)| {
        format!(": it ends at {end}, the moment is {wanted}")
    });
    Failure::new(
        ErrorKind::MomentUnavailable,
        format!("the log kept ends before the moment asked for{detail}"),
        "choose an earlier moment, or sync the dSource first",
    )
}

/// Removes what [`run`] wrote, after the recovered server has been stopped cleanly.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn finish(dir: &dyn DataDir) -> Result<(), Failure> {
    config::remove_leftovers(dir)?;
    for name in ["backup_label.old", "tablespace_map.old", "backup_manifest"] {
        remove_file(dir, name)?;
    }
    config::write_purpose(dir, "an image that no purpose has been given", &config::Settings::new())
}

#[cfg(test)]
mod tests;
