//! The thread that keeps `pg_receivewal` running.

use crate::lsn::Lsn;
use offshoot_os::process::{Child, Line, Signal, Sink, describe, run as run_tool};
use offshoot_types::{ErrorKind, Failure};
use std::time::Duration;

use super::{ReceiverState, Shared, gap};
use crate::archive::TimelineHistory;
use crate::slot::{SlotState, create_slot, slot_state};
use crate::source::Session;
use crate::source::facts::read_identity;
use crate::source::refusal::of_tool;

/// The first pause before another try.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// The longest pause before another try.
const BACK_OFF_MAX: Duration = Duration::from_secs(5);
/// A stream that lasted this long was not a failed attempt.
const STABLE: Duration = Duration::from_secs(10);
/// How often the thread checks whether it must end.
const POLL: Duration = Duration::from_millis(50);
/// How long `pg_receivewal` may take to end after it was asked to.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// How long the source may take to send a history file.
const HISTORY_TIMEOUT: Duration = Duration::from_secs(10);
/// How many lines of messages are kept for an error.
const MESSAGES_MAX: usize = 20;

/// Restarts `pg_receivewal` until the receiver is stopped or there is a gap.
pub(super) fn run(shared: &Shared) {
    let mut back_off = BACK_OFF_MIN;
    while !shared.must_end() {
        let began = shared.clock.elapsed();
        let asked = shared.facts.lock().asked;
        match prepare(shared).and_then(|()| receive(shared)) {
            Ok(()) => return,
            Err(Ended::Gap(failure)) => {
                shared.set_state(ReceiverState::Gap(failure));
                return;
            }
            Err(Ended::Broken(failure)) => shared.set_broken(failure),
        }
        if shared.clock.elapsed().saturating_sub(began) >= STABLE {
            back_off = BACK_OFF_MIN;
        }
        shared.rest(BACK_OFF_MIN);
        // Callers that asked since get the result of the next attempt.
        shared.rest_while(back_off - BACK_OFF_MIN, |facts| facts.asked == asked);
        back_off = (back_off * 2).min(BACK_OFF_MAX);
    }
}

/// Why a stream ended.
enum Ended {
    /// It may be tried again.
    Broken(Failure),
    /// It may not.
    Gap(Failure),
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Broken(failure)
    }
}

/// Makes sure that the archive belongs to this source, and that the source has our slot.
fn prepare(shared: &Shared) -> Result<(), Ended> {
    let spec = &shared.spec;
    heal_archive(shared)?;
    let session = spec.source.connect()?;
    let (system_identifier, timeline) = read_identity(&session)?;
    if system_identifier != spec.system_identifier {
        return Err(Ended::Gap(Failure::new(
            ErrorKind::SourceRefused,
            format!(
                "{} is now another cluster (system identifier {} instead of {})",
                spec.source.address, system_identifier, spec.system_identifier
            ),
            "link the new cluster as a dSource of its own, or bring the old one back",
        )));
    }
    check_history(shared, timeline)?;
    let state = match slot_state(&session, &spec.slot)? {
        // A promoted standby has no slot of ours. It may still have all we need: if not, the
        // stream says so.
        SlotState::Missing => create_slot(&session, &spec.slot)?,
        state => state,
    };
    let SlotState::Reserved { restart_lsn, .. } = state else {
        return Err(Ended::Gap(gap(&format!("the slot {} is lost", spec.slot))));
    };
    let held = is_held(shared, restart_lsn)?;
    let mut known = shared.facts.lock();
    if known.timeline.replace(timeline).is_some_and(|before| before != timeline) {
        // We may have received log on the old timeline that the new one never had.
        known.received = None;
    }
    known.unconfirmed = (!held).then_some(restart_lsn);
    Ok(())
}

/// After a failover, makes sure that the source's timeline did not branch off before the end of
/// what we have: log that the new primary never had has been replayed and cannot be undone.
fn check_history(shared: &Shared, timeline: u32) -> Result<(), Ended> {
    let archive = &shared.spec.archive;
    let Some(last) = archive.files()?.last().copied() else { return Ok(()) };
    if timeline == last.timeline {
        return Ok(());
    }
    let gap = |why: String| Err(Ended::Gap(gap(&why)));
    if timeline < last.timeline {
        return gap(format!("it went back from timeline {} to {timeline}", last.timeline));
    }
    let history = read_history(shared, timeline)?;
    let Some(switch) = history.find(last.timeline).and_then(|ours| ours.end) else {
        return gap(format!("its timeline {timeline} does not come from {}", last.timeline));
    };
    let end = archive.valid_end(archive.start(&last))?;
    if end > switch {
        return gap(format!(
            "it was replaced by a server that had its log up to {switch} only, and {end} was \
             received already"
        ));
    }
    Ok(())
}

/// Asks the source for the history of its timeline; only a replication connection can.
fn read_history(shared: &Shared, timeline: u32) -> Result<TimelineHistory, Failure> {
    let address = &shared.spec.source.address;
    let spec = shared
        .spec
        .source
        .tool(&shared.spec.tools, "psql", &[])
        .args(["-X", "-A", "-t", "-q", "-w", "-d"])
        .arg(format!("{} replication=true", address.conninfo("offshoot_history")))
        .arg("-c")
        .arg(format!("TIMELINE_HISTORY {timeline}"));
    let output = run_tool(&spec, HISTORY_TIMEOUT).map_err(|error| {
        Failure::new(
            ErrorKind::SourceUnreachable,
            format!("cannot read the timelines of {address}: {error}"),
            "",
        )
    })?;
    let text = output.stdout_text();
    match text.split_once('|') {
        // The file's name comes first, then its content.
        Some((_, content)) if output.success() => TimelineHistory::parse(timeline, content),
        _ => Err(of_tool(&output.stderr_text(), address)),
    }
}

/// Whether the archive holds the log up to a position that the slot had before we connected. The
/// slot alone does not show this: a new one begins at a checkpoint of the source.
fn is_held(shared: &Shared, position: Lsn) -> Result<bool, Failure> {
    let archive = &shared.spec.archive;
    let size = archive.segment_bytes();
    let start = Lsn(position.0.saturating_sub(1) / size * size);
    Ok(archive.valid_end(start).is_ok_and(|end| end >= position))
}

/// Removes a partial file whose size is not that of a WAL file: its creation was interrupted, so it
/// holds nothing yet, but `pg_receivewal` would refuse to continue.
fn heal_archive(shared: &Shared) -> Result<(), Failure> {
    let archive = &shared.spec.archive;
    for file in archive.files()?.into_iter().filter(|file| file.partial) {
        let size = archive.open(&file)?.and_then(|open| open.size().ok()).unwrap_or(0);
        if size != 0 && size != archive.segment_bytes() {
            archive.remove(&file)?;
        }
    }
    Ok(())
}

/// Runs `pg_receivewal` once; `Ok` when the receiver is being stopped.
fn receive(shared: &Shared) -> Result<(), Ended> {
    let spec = &shared.spec;
    let command = spec
        .source
        .tool(&spec.tools, "pg_receivewal", &[&spec.directory])
        .args(["--no-password", "--no-loop", "--synchronous", "--verbose", "--status-interval=1"])
        .arg("--dbname")
        .arg(spec.source.address.conninfo("offshoot_log"))
        .arg("--directory")
        .arg(&spec.directory)
        .arg("--slot")
        .arg(&spec.slot)
        .stderr(Sink::Pipe);
    let mut child = command.spawn().map_err(|error| {
        Failure::new(
            ErrorKind::HostUnprepared,
            error.to_string(),
            "check the engine's host: is PostgreSQL installed completely?",
        )
    })?;
    shared.facts.lock().child_runs = true;
    let ended = follow(shared, &mut child);
    child.kill_group();
    shared.facts.lock().child_runs = false;
    match ended? {
        None => Ok(()),
        Some(messages) => Err(explain(shared, &messages)),
    }
}

/// Waits for the end of the child and returns its last messages; `None` when it was stopped.
fn follow(shared: &Shared, child: &mut Child) -> Result<Option<String>, Failure> {
    let lost = |error: offshoot_os::process::ProcessError| {
        Failure::new(ErrorKind::HostUnprepared, error.to_string(), "")
    };
    let lines = child.take_stderr_lines();
    let mut messages: Vec<String> = Vec::new();
    loop {
        if shared.must_end() {
            // An interrupt makes it close its file in order.
            child.signal(Signal::Interrupt).map_err(lost)?;
            child.wait_timeout(STOP_GRACE).map_err(lost)?;
            return Ok(None);
        }
        match lines.as_ref().map(|lines| lines.next_within(POLL)) {
            Some(Line::Text(text)) => {
                tracing::debug!("{text}");
                if messages.len() == MESSAGES_MAX {
                    messages.remove(0);
                }
                messages.push(text);
            }
            Some(Line::Nothing) => {}
            Some(Line::End) | None => {
                if let Some(status) = child.wait_timeout(POLL).map_err(lost)? {
                    if !messages.iter().any(|line| line.contains("error:")) {
                        messages.push(format!("pg_receivewal ended with {}", describe(status)));
                    }
                    return Ok(Some(messages.join("\n")));
                }
            }
        }
    }
}

/// Finds out whether the stream can be taken up again.
fn explain(shared: &Shared, messages: &str) -> Ended {
    let spec = &shared.spec;
    let failure = of_tool(messages, &spec.source.address);
    // The server's messages may be in another language; its answer about the slot is not.
    let lost = |session: &Session| matches!(slot_state(session, &spec.slot), Ok(SlotState::Lost));
    if messages.contains("has already been removed") {
        let line = messages.lines().find(|line| line.contains("has already been removed"));
        return Ended::Gap(gap(line.unwrap_or_default()));
    }
    match spec.source.connect() {
        Ok(session) if lost(&session) => {
            Ended::Gap(gap(&format!("the slot {} is lost", spec.slot)))
        }
        _ => Ended::Broken(failure),
    }
}
