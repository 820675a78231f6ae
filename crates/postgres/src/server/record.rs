//! Which process a runtime directory's server is, for an engine that did not start it itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_os::process::{ProcessId, Signal, boot_id};
use offshoot_os::{Clock, SystemClock};
use offshoot_types::Failure;
use serde::{Deserialize, Serialize};

use super::ServerSpec;

const FILE: &str = "server.json";

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    pid: i32,
    start_ticks: u64,
    boot: String,
    data_dir: PathBuf,
    port: u16,
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) process: ProcessId,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) port: Option<u16>,
}

pub(super) fn write(spec: &ServerSpec, process: ProcessId) -> Result<(), Failure> {
    let record = Record {
        pid: process.pid,
        start_ticks: process.start_ticks,
        boot: boot_id(),
        data_dir: spec.data_dir.clone(),
        port: spec.socket_port(),
    };
    let path = spec.runtime_dir.join(FILE);
    let temporary = spec.runtime_dir.join("server.json.new");
    serde_json::to_vec(&record)
        .map_err(std::io::Error::other)
        .and_then(|bytes| std::fs::write(&temporary, bytes))
        .and_then(|()| std::fs::rename(&temporary, &path))
        .map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::internal(message).or_pool_full(&error)
        })
}

pub(super) fn forget(runtime_dir: &Path) {
    let _ = std::fs::remove_file(runtime_dir.join(FILE));
}

/// The server of a runtime directory, when it runs. A record may be missing (the engine was killed
/// right after it started the server): then the processes of this host are looked through.
pub(super) fn find(runtime_dir: &Path) -> Option<Found> {
    let record = std::fs::read(runtime_dir.join(FILE))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Record>(&bytes).ok());
    if let Some(record) = record {
        let process = ProcessId { pid: record.pid, start_ticks: record.start_ticks };
        if record.boot == boot_id() && process.alive() && is_server_of(&process, runtime_dir) {
            return Some(Found {
                process,
                data_dir: Some(record.data_dir),
                port: Some(record.port),
            });
        }
    } else if !runtime_dir.is_dir() {
        return None;
    }
    ProcessId::all().find(|process| is_server_of(process, runtime_dir)).map(|process| Found {
        process,
        data_dir: None,
        port: None,
    })
}

/// Whether a process is a postmaster with its socket in this runtime directory. Its children carry
/// titles instead of arguments, so they never match.
fn is_server_of(process: &ProcessId, runtime_dir: &Path) -> bool {
    let socket_dir = runtime_dir.join("s");
    let wanted = format!("unix_socket_directories=\"{}\"", socket_dir.display());
    let arguments = process.arguments();
    let program = arguments.first().map(|program| program.rsplit('/').next().unwrap_or(program));
    program == Some("postgres") && arguments.contains(&wanted)
}

/// Stops what an earlier engine process left running with this runtime directory, by force after
/// two thirds of `deadline`; its data directory need not be reachable. Its child processes go with
/// it. Whether there was anything. Never touches a process that is not surely that server.
///
/// # Errors
/// `Internal` when it does not end (a process stuck in a dead file system) within `deadline`.
pub fn stop_leftover(runtime_dir: &Path, deadline: Duration) -> Result<bool, Failure> {
    let Some(found) = find(runtime_dir) else {
        forget(runtime_dir);
        return Ok(false);
    };
    // A fast stop would write a checkpoint into a file system that may be gone, and recovery will
    // bring back everything that was committed.
    stop_process(found.process, Signal::Quit, deadline).ok_or_else(|| {
        Failure::internal(format!(
            "the server left running in {} (pid {}) does not end",
            runtime_dir.display(),
            found.process.pid
        ))
    })?;
    forget(runtime_dir);
    Ok(true)
}

/// Stops a postmaster and its children: by the given signal, after two thirds of the time by an
/// immediate stop, then by SIGKILL. Whether the first signal was enough; `None` when it still runs.
pub(super) fn stop_process(process: ProcessId, signal: Signal, deadline: Duration) -> Option<bool> {
    let end = SystemClock.elapsed() + deadline;
    let children = process.children();
    let _ = process.signal(signal);
    let gently = process.wait_end(deadline * 2 / 3);
    if !gently {
        let _ = process.signal(Signal::Quit);
        if !process.wait_end(deadline / 6) {
            let _ = process.signal(Signal::Kill);
        }
    }
    let left = || end.saturating_sub(SystemClock.elapsed()).max(Duration::from_millis(500));
    let mut ended = process.wait_end(left());
    // Children notice that the postmaster is gone, except those stuck in a system call.
    for child in children {
        if child.alive() && !child.wait_end(Duration::from_millis(200)) {
            let _ = child.signal(Signal::Kill);
            ended &= child.wait_end(left());
        }
    }
    ended.then_some(gently)
}
