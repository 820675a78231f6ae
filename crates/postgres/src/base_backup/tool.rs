//! Runs `pg_basebackup`: its arguments and its messages.

use offshoot_os::process::{Child, Line, Sink, Spec, describe};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use std::cell::Cell;
use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use super::{BackupProgress, BaseBackupRequest, TABLESPACES_DIR, unprepared};
use crate::source::refusal::{of_tool, unreachable};

/// How often to check for a cancellation.
const POLL: Duration = Duration::from_millis(50);

/// How long a tool may take to end after it was asked to.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Less than this in all the time that a source may be silent counts as nothing.
const WORTH_BYTES: u64 = 1 << 20;

/// How many lines of a tool's messages are kept for an error.
const MESSAGES_MAX: usize = 40;

/// What both ways to receive have in common.
fn command(request: &BaseBackupRequest<'_>, writes: &[&Path]) -> Spec {
    let log = if request.facts.archiving { "fetch" } else { "none" };
    request
        .source
        .tool(request.tools, "pg_basebackup", writes)
        .args(["--no-password", "--dbname"])
        .arg(request.source.address.conninfo("offshoot_backup"))
        .args(["--checkpoint=fast", "--progress", "--verbose", "--no-sync"])
        .args(["--manifest-checksums=CRC32C", "--label=offshoot"])
        .arg(format!("--wal-method={log}"))
        .stderr(Sink::Pipe)
}

/// The tool as it writes an archive to its stdout, which it can do only without tablespaces.
pub(super) fn to_stdout(request: &BaseBackupRequest<'_>) -> Spec {
    command(request, &[]).args(["--format=tar", "--pgdata=-"]).stdout(Sink::Pipe)
}

/// The tool as it writes files into the target, under the names that the source gives them.
pub(super) fn to_target(request: &BaseBackupRequest<'_>) -> Spec {
    let mut spec = command(request, &[request.target])
        .arg("--format=plain")
        .arg("--pgdata")
        .arg(request.target);
    for tablespace in &request.facts.tablespaces {
        let new = request.target.join(TABLESPACES_DIR).join(tablespace.oid.to_string());
        spec = spec.arg(format!(
            "--tablespace-mapping={}={}",
            escape_mapping(&tablespace.location),
            escape_mapping(&new.to_string_lossy())
        ));
    }
    spec
}

/// Waits for the tool to end; stops it on request, and when the source sends next to nothing.
pub(super) fn wait(
    child: &mut Child,
    request: &BaseBackupRequest<'_>,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(BackupProgress),
) -> Result<(), Failure> {
    let mut messages = Messages::default();
    let (done, seen) = (Cell::new(0), Cell::new((0, SystemClock.elapsed())));
    let silent = || {
        let (bytes, since) = seen.get();
        if done.get() >= bytes + WORTH_BYTES {
            seen.set((done.get(), SystemClock.elapsed()));
            return false;
        }
        SystemClock.elapsed().saturating_sub(since) > request.silence
    };
    let ended =
        follow(child, &|| cancelled() || silent(), &mut |line| match parse_progress(line) {
            Some(now) => {
                done.set(now.done_bytes);
                progress(now);
            }
            None => messages.add(line),
        });
    if ended.is_err() && silent() && !cancelled() {
        let (address, seconds) = (&request.source.address, request.silence.as_secs());
        return Err(unreachable(address, &format!("no data to speak of for {seconds} s")));
    }
    match ended? {
        status if status.success() => Ok(()),
        status if messages.lines.is_empty() => {
            Err(unprepared(format!("pg_basebackup ended with {} and no message", describe(status))))
        }
        _ => Err(of_tool(&messages.text(), &request.source.address)),
    }
}

/// Passes a child's messages on until it ends; stops it on request.
pub(super) fn follow(
    child: &mut Child,
    cancelled: &dyn Fn() -> bool,
    line: &mut dyn FnMut(&str),
) -> Result<ExitStatus, Failure> {
    let lines = child.take_stderr_lines();
    let lost = |error: offshoot_os::process::ProcessError| unprepared(error.to_string());
    loop {
        if cancelled() {
            child.terminate(STOP_GRACE).map_err(lost)?;
            child.kill_group();
            return Err(Failure::new(ErrorKind::Cancelled, "cancelled on request", ""));
        }
        match lines.as_ref().map(|lines| lines.next_within(POLL)) {
            Some(Line::Text(text)) => line(&text),
            Some(Line::Nothing) => {}
            Some(Line::End) | None => {
                if let Some(status) = child.wait_timeout(POLL).map_err(lost)? {
                    return Ok(status);
                }
            }
        }
    }
}

/// Parses `  12345/67890 kB (18%), 0/1 tablespace (…)`.
fn parse_progress(line: &str) -> Option<BackupProgress> {
    let (done, rest) = line.trim_start().split_once('/')?;
    let (total, rest) = rest.split_once(' ')?;
    if !rest.starts_with("kB") {
        return None;
    }
    let bytes = |text: &str| text.parse::<u64>().ok()?.checked_mul(1024);
    Some(BackupProgress { done_bytes: bytes(done)?, total_bytes: bytes(total)? })
}

/// `=` separates the two sides of a mapping.
fn escape_mapping(path: &str) -> String {
    path.replace('\\', "\\\\").replace('=', "\\=")
}

/// The last messages of a tool.
#[derive(Debug, Default)]
struct Messages {
    lines: VecDeque<String>,
}

impl Messages {
    fn add(&mut self, line: &str) {
        if self.lines.len() == MESSAGES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(line.to_owned());
    }

    fn text(&self) -> String {
        Vec::from(self.lines.clone()).join("\n")
    }
}

#[cfg(test)]
mod tests;
