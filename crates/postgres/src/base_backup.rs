//! The base backup: a copy of a source's data directory, streamed by `pg_basebackup`.
//!
//! It comes as an archive that is [unpacked](unpack) here and compared with its [manifest] on the
//! way. The tool cannot send several tablespaces that way: it copies a source that has some into
//! the target itself, and [`verify_base_backup`] reads it again.
//!
//! The log is not copied with it, as the receiver brings it. If the source archives its log,
//! `pg_basebackup` without log would wait until the source has archived the last of it: for ever if
//! archiving fails there. So such a source also sends the log of the backup, which is then removed.

use crate::lsn::Lsn;
use offshoot_os::process::{Sink, describe, widen_pipe};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::installation::Tools;
use crate::source::{Source, SourceFacts};
use offshoot_connector::DataDir;

mod manifest;
mod tool;
mod unpack;

use manifest::Manifest;
pub use unpack::{Received, Stopped, unpack};

/// The directory, inside the target, that holds tablespaces, one subdirectory per OID. The links in
/// `pg_tblspc` are relative to it, so a clone of the target is complete, wherever it is mounted.
pub const TABLESPACES_DIR: &str = "offshoot.tablespaces";

/// How far a base backup is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupProgress {
    /// Bytes received.
    pub done_bytes: u64,
    /// Expected bytes; may still change a little; 0 if not known yet.
    pub total_bytes: u64,
}

/// What stays in `pg_wal` of a copy: what the server keeps there in addition to log.
const WAL_DIRECTORIES: [&str; 2] = ["archive_status", "summaries"];

/// How long a source may send next to nothing: longer than the checkpoint that it begins with takes.
pub const SILENCE: Duration = Duration::from_secs(30 * 60);

/// What the source sent, with checksums.
const MANIFEST: &str = "backup_manifest";
/// Longest manifest that is read: it has some 150 bytes for each file of the source.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;
const LABEL: &str = "backup_label";

/// What to copy and where to.
pub struct BaseBackupRequest<'a> {
    /// The programs of the source's major version.
    pub tools: &'a Tools,
    /// The source.
    pub source: &'a Source,
    /// The facts of the source, read just before.
    pub facts: &'a SourceFacts,
    /// Where the tool finds the directory that becomes the data directory: empty, mode 0700, of the
    /// user of the tools. It must exist only if [`BaseBackupRequest::needs_target`]. This process
    /// never uses it: it may be a mount that this process serves.
    pub target: &'a Path,
    /// The same directory, for this process.
    pub files: &'a dyn DataDir,
    /// How long the source may send next to nothing; [`SILENCE`].
    pub silence: Duration,
}

impl BaseBackupRequest<'_> {
    /// Whether the tool writes into the target itself.
    pub fn needs_target(&self) -> bool {
        !self.facts.tablespaces.is_empty()
    }
}

/// A finished base backup. Files are written but not synced: the caller syncs the dataset. If the
/// tool wrote them ([`BaseBackupRequest::needs_target`]), they belong to this process's user, and
/// the caller gives them to the servers' user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseBackup {
    /// Where replay must begin.
    pub start: Lsn,
    /// Replay must reach this before the copy is consistent.
    pub end: Lsn,
    /// The timeline of both.
    pub timeline: u32,
    /// Every file was compared with the manifest as it arrived, so there is no need to read them
    /// again.
    #[serde(default)]
    pub verified: bool,
    /// Bytes received.
    pub bytes: u64,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
}

/// Copies the source. `progress` is called about once a second and at the end; `cancelled` is
/// asked often.
///
/// The log (`pg_wal`) is not copied: it comes through the receiver, which must already be
/// streaming.
///
/// # Errors
/// `Cancelled`, `SourceUnreachable`, `SourceRefused`, `HostUnprepared`, `PoolFull`, `DataDamaged`;
/// then the target is left empty.
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
    let note = |now| {
        received.set(now);
        progress(now);
    };
    let files = if request.needs_target() {
        copy_to_target(request, cancelled, &note).map(|()| None)
    } else {
        receive(request, cancelled, &note).map(Some)
    };
    let verified = !request.needs_target();
    let finished = files.and_then(|files| finish(request, files.as_ref()));
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
    Ok(BaseBackup { start, end, timeline, verified, bytes, elapsed_ms: elapsed.as_millis() as u64 })
}

/// Lets the tool write into the target.
fn copy_to_target(
    request: &BaseBackupRequest<'_>,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(BackupProgress),
) -> Result<(), Failure> {
    let mut child = tool::to_target(request).spawn().map_err(|e| unprepared(e.to_string()))?;
    tool::wait(&mut child, request, cancelled, progress)
}

/// Unpacks what the tool sends.
fn receive(
    request: &BaseBackupRequest<'_>,
    cancelled: &dyn Fn() -> bool,
    progress: &dyn Fn(BackupProgress),
) -> Result<Received, Failure> {
    let mut child = tool::to_stdout(request).spawn().map_err(|e| unprepared(e.to_string()))?;
    let stream = child.take_stdout().ok_or_else(|| unprepared("it has no stdout".into()))?;
    widen_pipe(&stream);
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let unpacking = std::thread::Builder::new().spawn_scoped(scope, || {
            let unpacked = unpack(stream, request.files);
            // If the stream ended early, the tool ends on its own and can say why.
            let here = !matches!(unpacked, Ok(_) | Err(Stopped::Stream(_)));
            stopped.store(here, Ordering::Relaxed);
            unpacked
        });
        let unpacking = unpacking.map_err(|error| {
            child.kill_group();
            unprepared(format!("no thread to unpack with: {error}"))
        })?;
        let stop = || cancelled() || stopped.load(Ordering::Relaxed);
        let ended = tool::wait(&mut child, request, &stop, progress);
        let unpacked = unpacking.join();
        let unpacked = unpacked.unwrap_or_else(|_| Err(Stopped::Content("unpacking broke".into())));
        match (unpacked, ended) {
            (Ok(received), Ok(())) => Ok(received),
            // The tool knows why the stream ended early, but not what went wrong here.
            (Ok(_) | Err(Stopped::Stream(_)), Err(failure)) => Err(failure),
            (Err(stopped), _) => Err(stopped.failure()),
        }
    })
}

/// Makes the copy independent of its location, compares what was received with the manifest, and
/// reads which log it needs.
fn finish(
    request: &BaseBackupRequest<'_>,
    received: Option<&Received>,
) -> Result<(Lsn, Lsn, u32), Failure> {
    let files = request.files;
    for tablespace in &request.facts.tablespaces {
        relink(files, tablespace.oid)
            .map_err(|error| unprepared(format!("cannot move a tablespace's link: {error}")))?;
    }
    remove_log(files).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => incomplete("it has no pg_wal"),
        _ => unprepared(format!("cannot clear pg_wal of the copy: {error}")),
    })?;
    log_needed(files, received)
}

/// Which log a fresh base backup needs to become consistent, by its `backup_label` and
/// `backup_manifest`: from where, to where, and on which timeline it begins. Compares with the
/// manifest what was received.
///
/// # Errors
/// `SourceRefused` if one of the two is missing or incomplete, `DataDamaged` for differences.
pub fn log_needed(
    files: &dyn DataDir,
    received: Option<&Received>,
) -> Result<(Lsn, Lsn, u32), Failure> {
    let (start, timeline) = read_label(files)?;
    let of_manifest = |what: String| incomplete(&format!("{MANIFEST}: {what}"));
    let manifest = files
        .read_up_to(MANIFEST, MANIFEST_BYTES_MAX)
        .map_err(|error| of_manifest(error.to_string()))?;
    let manifest = Manifest::parse(&manifest).map_err(of_manifest)?;
    if let Some(received) = received {
        manifest.verify(received)?;
    }
    let end = manifest.end().ok_or_else(|| of_manifest("it names no position".into()))?;
    Ok((start, end, timeline))
}

/// Where recovery of a base backup that was never started begins, by its `backup_label`; `None` without one. The
/// control file may be newer: it is copied last, and the source keeps making checkpoints.
///
/// # Errors
/// `SourceRefused` when there is one that cannot be read or names no position.
pub fn recovery_start(files: &dyn DataDir) -> Result<Option<Lsn>, Failure> {
    match files.exists(LABEL) {
        Ok(false) => Ok(None),
        _ => read_label(files).map(|(start, _)| Some(start)),
    }
}

/// The start position and timeline that the `backup_label` names.
fn read_label(files: &dyn DataDir) -> Result<(Lsn, u32), Failure> {
    let label = files.read(LABEL).map_err(|error| incomplete(&format!("{LABEL}: {error}")))?;
    parse_label(&String::from_utf8_lossy(&label))
        .ok_or_else(|| incomplete(&format!("{LABEL} names no position")))
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

/// Removes log files that came with it, so that every copy looks alike.
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
        // Its files are checked through pg_tblspc.
        .arg(format!("--ignore={TABLESPACES_DIR}"))
        .arg(target)
        .stderr(Sink::Pipe)
        .die_with_parent(true);
    let mut child = spec.spawn().map_err(|error| unprepared(error.to_string()))?;
    let mut differences = Vec::new();
    let status = tool::follow(&mut child, cancelled, &mut |line| {
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
    Err(differs(&differences))
}

fn differs(differences: &[String]) -> Failure {
    Failure::new(
        ErrorKind::DataDamaged,
        format!("the copy of the source is not what the source sent: {}", differences.join("; ")),
        "link again; if it happens again, check this host's memory and disks",
    )
}

/// The start position and timeline of a `backup_label`.
fn parse_label(text: &str) -> Option<(Lsn, u32)> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let start = value("START WAL LOCATION:")?.split_whitespace().next()?.parse().ok()?;
    Some((start, value("START TIMELINE:")?.parse().ok()?))
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

fn unprepared(message: String) -> Failure {
    Failure::new(ErrorKind::HostUnprepared, message, "check the engine's host: disk, permissions")
}

fn incomplete(what: &str) -> Failure {
    Failure::new(ErrorKind::SourceRefused, format!("the copy is incomplete: {what}"), "link again")
}

#[cfg(test)]
mod tests;
