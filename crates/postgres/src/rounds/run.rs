//! One round.

use super::control_file::ControlFile;
use super::{End, MANAGER_XLOG, POINT_VERSION, Point, not_possible};
use crate::archive::reader::{Found, LogReader, Step};
use crate::archive::{Archive, TimelineHistory};
use crate::config::{self, purpose};
use crate::lsn::Lsn;
use crate::server::{self, Server, ServerSpec, StopMode};
use crate::{access, recovery};
use offshoot_connector::DataDir;
use offshoot_types::{ErrorKind, Failure};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// The major versions with which rounds were compared with one recovery over the same log, block by block.
const TRIED: RangeInclusive<u32> = 13..=18;
/// How long it may take to write its last checkpoint and stop.
const STOP_DEADLINE: Duration = Duration::from_secs(600);

/// Whether a copy is fit to begin rounds from: a snapshot of a standby whose files are consistent. Says why not.
fn check_begin(files: &dyn DataDir, control: &ControlFile, end: &End) -> Result<(), Failure> {
    if !recovery::major_version(files).is_some_and(|major| TRIED.contains(&major)) {
        return Err(not_possible("it was not tried with this version"));
    }
    if !control.is_of_standby() {
        return Err(not_possible("the copy was opened before"));
    }
    let labelled = files.exists("backup_label").unwrap_or(true);
    if labelled || control.is_unfinished_backup() {
        return Err(not_possible("the end of the base backup was not replayed yet"));
    }
    if control.timeline() != end.timeline() {
        return Err(not_possible("the source's timeline changed"));
    }
    if end.position() < control.least_recovery_point() {
        return Err(not_possible("the copy's files are newer"));
    }
    Ok(())
}

/// Recovers a private copy to where the log in it ends, which is `end`, stops it cleanly and makes it a [`Point`]. The
/// copy is a snapshot of a standby, or a point that [`super::resume`] made go on. `spec.tcp_port` is ignored. The
/// server does not sync: the caller makes the result durable as a whole.
///
/// `flush` is called when the server has stopped: it puts what it wrote into `files`.
///
/// `tick` is called every 2 to 20 ms; `false` cancels. After an error the copy must be thrown away.
///
/// # Errors
/// `WrongState` where no point can be made: the caller does without; `Cancelled`, and as
/// [`recovery::run`](crate::recovery::run).
pub fn run(
    files: &Arc<dyn DataDir>,
    mut spec: ServerSpec,
    end: &End,
    deadline: Duration,
    flush: &dyn Fn() -> Result<(), Failure>,
    tick: &mut dyn FnMut() -> bool,
) -> Result<Point, Failure> {
    let control = ControlFile::read(&**files)?;
    check_begin(&**files, &control, end)?;
    let settings = control.settings().ok_or_else(|| not_possible("of the source's wal_level"))?;
    config::remove_leftovers(&**files)?;
    let settings = purpose::round(settings, control.segment_bytes());
    config::write_purpose(&**files, "a round", &settings)?;
    access::write_private(&**files)?;
    spec.tcp_port = None;
    let mut server = server::start(spec)?;
    server.wait_logged(&[server::READY], deadline, &mut |_| tick())?;
    stop(&mut server)?;
    flush()?;
    let control = ControlFile::read(&**files)?;
    check_written(files, &control, end)?;
    let point = Point {
        version: POINT_VERSION,
        system_identifier: control.system_identifier(),
        end: *end,
        stopped_at: control.checkpoint_at(),
    };
    point.write(&**files)?;
    Ok(point)
}

fn stop(server: &mut Server) -> Result<(), Failure> {
    match server.stop(StopMode::Fast, STOP_DEADLINE)? {
        true => Ok(()),
        false => Err(Failure::internal("the server of a round did not stop cleanly")),
    }
}

/// Checks that recovery ended exactly at `end`, and that the server wrote nothing but its end and the clean stop: the
/// files are then those of a standby at that position.
fn check_written(
    files: &Arc<dyn DataDir>,
    control: &ControlFile,
    end: &End,
) -> Result<(), Failure> {
    if !control.is_shut_down() {
        return Err(Failure::internal("the server of a round left no clean state"));
    }
    let archive = Archive::of_server(files.clone(), control.segment_bytes())?;
    let mut reader = LogReader::new(&archive, TimelineHistory::single(end.timeline()));
    let (mut position, mut previous) = (end.position(), end.last);
    loop {
        let Step::Record(found) = reader.next_record(position)? else {
            return Err(unexpected(position, "nothing"));
        };
        if found.previous != previous {
            return Err(unexpected(found.start, "a record with another predecessor"));
        }
        if !is_expected(&found) {
            let what = format!("a record {:#04x} of manager {}", found.info, found.manager);
            return Err(unexpected(found.start, &what));
        }
        if found.start == control.checkpoint_at() {
            return Ok(());
        }
        (position, previous) = (found.end, found.start);
    }
}

fn is_expected(found: &Found) -> bool {
    const CHECKPOINT_SHUTDOWN: u8 = 0x00;
    const FULL_PAGE_WRITES_CHANGED: u8 = 0x80;
    let own = [CHECKPOINT_SHUTDOWN, FULL_PAGE_WRITES_CHANGED].contains(&(found.info & 0xF0));
    found.manager == MANAGER_XLOG && own || found.is_running_transactions()
}

/// E.g. changed settings of the source, or a page that was pruned.
fn unexpected(at: Lsn, what: &str) -> Failure {
    Failure::new(
        ErrorKind::WrongState,
        format!("after a round the copy's log has {what} at {at}: it is no recovery point"),
        "recover it from a snapshot of staging",
    )
}
