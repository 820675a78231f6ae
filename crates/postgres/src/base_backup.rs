//! The base backup: a copy of a source's data directory, streamed by `pg_basebackup`.
//!
//! The log is not copied with it, as the one receiver brings it. Where the source archives its log,
//! `pg_basebackup` without log would wait until the source has archived the last of it — for ever
//! when archiving fails there. So such a source sends the log of the backup along, and it is
//! removed again.

use offshoot_os::process::{Child, Line, Sink, Spec, describe};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure, Lsn};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use crate::data_dir::{DataDir, read_full};
use crate::installation::Tools;
use crate::source::refusal::of_tool;
use crate::source::{Source, SourceFacts};

/// The directory, inside the target, that holds tablespaces, one subdirectory per OID. The links in
/// `pg_tblspc` are relative to it, so a clone of the target is complete wherever it is mounted.
pub const TABLESPACES_DIR: &str = "offshoot.tablespaces";

/// How often a cancellation is looked for.
const POLL: Duration = Duration::from_millis(50);

/// How long a tool may take to end after it was asked to.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// How many lines of a tool's messages are kept for an error.
const MESSAGES_MAX: usize = 40;

/// How far a base backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupProgress {
    /// Bytes received.
    pub done_bytes: u64,
    /// Bytes expected; may still change a little; 0 when not known yet.
    pub total_bytes: u64,
}

/// What stays in `pg_wal` of a copy: what the server keeps there beside log.
const WAL_DIRECTORIES: [&str; 2] = ["archive_status", "summaries"];

/// What to copy and where to.
pub struct BaseBackupRequest<'a> {
    /// The programs of the source's major version.
    pub tools: &'a Tools,
    /// The source.
    pub source: &'a Source,
    /// The facts of the source, read just before.
    pub facts: &'a SourceFacts,
    /// Where the tool finds the directory that becomes the data directory: empty, mode 0700, of the
    /// user of the tools. This process never uses it: it may be a mount that this process serves.
    pub target: &'a Path,
    /// The same directory, for this process.
    pub files: &'a dyn DataDir,
}

/// A finished base backup. Files are written but not synced, and belong to this process's user: the
/// caller syncs the dataset and hands the files on to the servers' user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseBackup {
    /// Where replay must begin.
    pub start: Lsn,
    /// Replay must reach this before the copy is consistent.
    pub end: Lsn,
    /// The timeline of both.
    pub timeline: u32,
    /// Bytes received.
    pub bytes: u64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

/// Copies the source. `progress` is called about once a second and at the end; `cancelled` is
/// asked often.
///
/// The log (`pg_wal`) is not copied: it comes by the receiver, which must be streaming before.
///
/// # Errors
/// `Cancelled`, `SourceUnreachable`, `SourceRefused`, `HostUnprepared`, `PoolFull`; the target is
/// left empty then.
pub fn take_base_backup(
    request: &BaseBackupRequest<'_>,
    progress: &dyn Fn(BackupProgress),
    cancelled: &dyn Fn() -> bool,
) -> Result<BaseBackup, Failure> {
    let began = SystemClock.elapsed();
    if !is_empty(request.files)? {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("{} is not empty", request.target.display()),
            "start the link again; what an interrupted one left is removed then",
        ));
    }
    let received = std::cell::Cell::new(BackupProgress::default());
    let stream = || {
        stream(request, cancelled, &|now| {
            received.set(now);
            progress(now);
        })
    };
    let finished = stream().and_then(|()| finish(request));
    let (start, end, timeline) = match finished {
        Ok(positions) => positions,
        Err(failure) => {
            empty_directory(request.files)?;
            return Err(failure);
        }
    };
    let bytes = received.get().done_bytes;
    progress(BackupProgress { done_bytes: bytes, total_bytes: bytes });
    let elapsed = SystemClock.elapsed().saturating_sub(began);
    Ok(BaseBackup { start, end, timeline, bytes, elapsed_ms: elapsed.as_millis() as u64 })
}

/// Runs `pg_basebackup` to its end.
fn stream(
    request: &BaseBackupRequest<'_>,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(BackupProgress),
) -> Result<(), Failure> {
    let mut child = command(request).spawn().map_err(|error| unprepared(error.to_string()))?;
    let mut messages = Messages::default();
    let ended = follow(&mut child, cancelled, &mut |line| match parse_progress(line) {
        Some(now) => progress(now),
        None => messages.add(line),
    });
    match ended? {
        status if status.success() => Ok(()),
        status if messages.lines.is_empty() => {
            Err(unprepared(format!("pg_basebackup ended with {} and no message", describe(status))))
        }
        _ => Err(of_tool(&messages.text(), &request.source.address)),
    }
}

fn command(request: &BaseBackupRequest<'_>) -> Spec {
    let log = if request.facts.archiving { "fetch" } else { "none" };
    let mut spec = request
        .tools
        .source_spec("pg_basebackup")
        .args(["--no-password", "--dbname"])
        .arg(request.source.address.conninfo("offshoot_backup"))
        .arg("--pgdata")
        .arg(request.target)
        .args(["--format=plain", "--checkpoint=fast", "--progress", "--verbose", "--no-sync"])
        .args(["--manifest-checksums=CRC32C", "--label=offshoot"])
        .arg(format!("--wal-method={log}"))
        .stderr(Sink::Pipe)
        .die_with_parent(true);
    for tablespace in &request.facts.tablespaces {
        let new = request.target.join(TABLESPACES_DIR).join(tablespace.oid.to_string());
        spec = spec.arg(format!(
            "--tablespace-mapping={}={}",
            escape_mapping(&tablespace.location),
            escape_mapping(&new.to_string_lossy())
        ));
    }
    if let Some(password) = &request.source.password {
        spec = spec.env("PGPASSWORD", password.expose());
    }
    spec
}

/// Passes a child's messages on until it ends; stops it when that is asked for.
fn follow(
    child: &mut Child,
    cancelled: &dyn Fn() -> bool,
    line: &mut dyn FnMut(&str),
) -> Result<std::process::ExitStatus, Failure> {
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

/// Makes the copy independent of where it lies and reads which log it needs.
fn finish(request: &BaseBackupRequest<'_>) -> Result<(Lsn, Lsn, u32), Failure> {
    let files = request.files;
    for tablespace in &request.facts.tablespaces {
        relink(files, tablespace.oid)
            .map_err(|error| unprepared(format!("cannot move a tablespace's link: {error}")))?;
    }
    remove_log(files)
        .map_err(|error| unprepared(format!("cannot clear pg_wal of the copy: {error}")))?;
    let label = files
        .read("backup_label")
        .map_err(|error| incomplete(&format!("backup_label: {error}")))?;
    let (start, timeline) = parse_label(&String::from_utf8_lossy(&label))
        .ok_or_else(|| incomplete("backup_label names no position"))?;
    let manifest = read_tail(files, "backup_manifest", 64 << 10)
        .map_err(|error| incomplete(&format!("backup_manifest: {error}")))?;
    let end =
        parse_end(&manifest).ok_or_else(|| incomplete("backup_manifest names no position"))?;
    Ok((start, end, timeline))
}

/// Replaces the absolute link of a tablespace by a relative one.
fn relink(files: &dyn DataDir, oid: u32) -> std::io::Result<()> {
    let link = format!("pg_tblspc/{oid}");
    if !files.exists(&link)? {
        return Ok(()); // dropped since
    }
    files.remove(&link)?;
    files.link(&link, &format!("../{TABLESPACES_DIR}/{oid}"))
}

/// Removes log files that came along, so that every copy looks alike.
fn remove_log(files: &dyn DataDir) -> std::io::Result<()> {
    for name in files.list("pg_wal")? {
        if !WAL_DIRECTORIES.contains(&name.as_str()) {
            files.remove(&format!("pg_wal/{name}"))?;
        }
    }
    Ok(())
}

/// Checks every file of a fresh, never started base backup against its manifest
/// (`pg_verifybackup`).
///
/// # Errors
/// `DataDamaged` that names the first differences, `Cancelled`, `HostUnprepared`.
pub fn verify_base_backup(
    tools: &Tools,
    target: &Path,
    cancelled: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let spec = tools
        .spec("pg_verifybackup")
        .args(["--no-parse-wal", "--quiet"])
        // Its files are checked by way of pg_tblspc.
        .arg(format!("--ignore={TABLESPACES_DIR}"))
        .arg(target)
        .stderr(Sink::Pipe)
        .die_with_parent(true);
    let mut child = spec.spawn().map_err(|error| unprepared(error.to_string()))?;
    let mut differences = Vec::new();
    let status = follow(&mut child, cancelled, &mut |line| {
        if differences.len() < 5 {
            differences.push(line.replace("pg_verifybackup: error: ", ""));
        }
    })?;
    if status.success() {
        return Ok(());
    }
    if differences.is_empty() {
        // It died before it compared anything; that says nothing about the copy.
        return Err(unprepared(format!("pg_verifybackup failed: {}", describe(status))));
    }
    Err(Failure::new(
        ErrorKind::DataDamaged,
        format!("the copy of the source is not what the source sent: {}", differences.join("; ")),
        "link again; if it happens again, check this host's memory and disks",
    ))
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

/// The start position and timeline of a `backup_label`.
fn parse_label(text: &str) -> Option<(Lsn, u32)> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let start = value("START WAL LOCATION:")?.split_whitespace().next()?.parse().ok()?;
    Some((start, value("START TIMELINE:")?.parse().ok()?))
}

/// The last end position in the tail of a `backup_manifest`.
fn parse_end(tail: &str) -> Option<Lsn> {
    let (_, ranges) = tail.rsplit_once("\"WAL-Ranges\"")?;
    let (_, after) = ranges.rsplit_once("\"End-LSN\":")?;
    after.split('"').nth(1)?.parse().ok()
}

fn read_tail(files: &dyn DataDir, path: &str, bytes_max: u64) -> std::io::Result<String> {
    let file = files.open(path)?;
    let length = file.size()?;
    let start = length.saturating_sub(bytes_max);
    let mut bytes = vec![0; (length - start) as usize];
    let read = read_full(&*file, start, &mut bytes)?;
    bytes.truncate(read);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_empty(files: &dyn DataDir) -> Result<bool, Failure> {
    let names = files.list("");
    let names = names.map_err(|error| unprepared(format!("cannot read the target: {error}")))?;
    Ok(names.is_empty())
}

/// Removes everything inside the target, which may be a mount point itself.
fn empty_directory(files: &dyn DataDir) -> Result<(), Failure> {
    let empty = || files.list("")?.iter().try_for_each(|name| files.remove_all(name));
    empty().map_err(|error: std::io::Error| {
        unprepared(format!("cannot empty the target of the copy: {error}"))
    })
}

/// `=` separates the two sides of a mapping.
fn escape_mapping(path: &str) -> String {
    path.replace('\\', "\\\\").replace('=', "\\=")
}

fn unprepared(message: String) -> Failure {
    Failure::new(ErrorKind::HostUnprepared, message, "check the engine's host: disk, permissions")
}

fn incomplete(what: &str) -> Failure {
    Failure::new(ErrorKind::SourceRefused, format!("the copy is incomplete: {what}"), "link again")
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
