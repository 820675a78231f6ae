//! Reads a server's log for meaningful errors.

use std::path::Path;

use offshoot_os::bounded_log::{self, LogPlace};
use offshoot_types::{ErrorKind, Failure};

use super::ServerSpec;

/// Most bytes of a log to read.
const TAIL_BYTES_MAX: u64 = 64 << 10;

/// The last lines behind a place.
pub(super) fn tail(path: &Path, start: &LogPlace, count: usize) -> Vec<String> {
    let text = read(path, start);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(count);
    lines.iter().skip(first).map(|line| (*line).to_owned()).collect()
}

fn read(path: &Path, start: &LogPlace) -> String {
    bounded_log::tail(path, start.offset(path), TAIL_BYTES_MAX)
}

/// Whether the log after a place contains a text.
pub(crate) fn says(path: &Path, start: &LogPlace, text: &str) -> bool {
    read(path, start).contains(text)
}

/// The last line after a place that contains a text.
pub(super) fn last(path: &Path, start: &LogPlace, text: &str) -> Option<String> {
    read(path, start).lines().rev().find(|line| line.contains(text)).map(str::to_owned)
}

pub(super) fn port_taken(port: u16) -> Failure {
    Failure::new(
        ErrorKind::AlreadyExists,
        format!("the port {port} is taken by another program"),
        "choose another one with --port, or stop that program",
    )
}

fn port_of_root(port: u16) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("the port {port} is not for users of this host to listen on"),
        "choose one from 1024 on with --port",
    )
}

/// Why a server ended while it started.
pub(super) fn start_failure(spec: &ServerSpec, start: &LogPlace) -> Failure {
    let text = read(&spec.log_file, start);
    let has = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    if let Some(port) = spec.tcp_port
        && has(&["Address already in use", "could not bind IPv4 address"])
    {
        return if has(&["Permission denied"]) { port_of_root(port) } else { port_taken(port) };
    }
    let (kind, hint) = if has(&[
        "unrecognized configuration parameter",
        "invalid value for parameter",
        "is outside the valid range for parameter",
        "contains errors",
        "requires a numeric value",
        "requires a Boolean value",
    ]) {
        (ErrorKind::InvalidInput, "correct the settings of the VDB")
    } else if has(&["could not map anonymous shared memory", "Cannot allocate memory"]) {
        (ErrorKind::HostUnprepared, "give it less memory (shared_buffers, --memory)")
    } else if has(&["Create this directory for the tablespace"]) {
        (
            ErrorKind::SourceRefused,
            "the source has made a tablespace since it was linked, which only a new copy can take in: \
             unlink the dSource and link it again",
        )
    } else if has(&["could not access file", "could not load library"]) {
        (ErrorKind::HostUnprepared, "install the missing library for this version of PostgreSQL")
    } else if has(&["incompatible with server", "not compatible with this version"]) {
        (ErrorKind::HostUnprepared, "install the server programs of the source's version")
    } else if has(&["No space left on device", "Disk quota exceeded"]) {
        (ErrorKind::PoolFull, "delete VDBs or snapshots, or enlarge the pool's disk")
    } else if has(&[
        "PANIC:",
        "could not locate a valid checkpoint record",
        "invalid page in block",
        "Input/output error",
    ]) {
        (ErrorKind::DataDamaged, "use another snapshot; check the pool with: offshoot pool check")
    } else {
        (ErrorKind::Internal, "the lines above are the server's own words")
    };
    let mut lines = tail(&spec.log_file, start, 8).join("\n");
    if lines.is_empty() {
        lines = "(nothing)".to_owned();
    }
    Failure::new(
        kind,
        format!("the server {} ended while it started; its log says:\n{lines}", spec.name),
        hint,
    )
}
