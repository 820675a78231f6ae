//! Which process a runtime directory's server is, for an engine that did not start it itself.

use offshoot_os::files::read_beneath;
use offshoot_os::process::{ProcessId, boot_id};
use offshoot_types::Failure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Frozen: an engine must find the servers that another release started.
const FILE: &str = "server.json";
/// Longest one that is read.
const BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pid: i32,
    start_ticks: u64,
    boot: String,
    pub(crate) data_dir: PathBuf,
    pub(crate) port: u16,
}

impl Record {
    pub(crate) fn new(process: ProcessId, data_dir: PathBuf, port: u16) -> Record {
        let ProcessId { pid, start_ticks } = process;
        Record { pid, start_ticks, boot: boot_id(), data_dir, port }
    }

    /// The process, unless this host has been rebooted since.
    pub(crate) fn process(&self) -> Option<ProcessId> {
        let process = ProcessId { pid: self.pid, start_ticks: self.start_ticks };
        (self.boot == boot_id() && process.alive()).then_some(process)
    }

    pub(crate) fn write(&self, runtime_dir: &Path) -> Result<(), Failure> {
        let path = runtime_dir.join(FILE);
        let temporary = runtime_dir.join("server.json.new");
        serde_json::to_vec(self)
            .map_err(std::io::Error::other)
            .and_then(|bytes| std::fs::write(&temporary, bytes))
            .and_then(|()| std::fs::rename(&temporary, &path))
            .map_err(|error| {
                let message = format!("cannot write {}: {error}", path.display());
                Failure::internal(message).or_pool_full(&error)
            })
    }

    pub(crate) fn read(runtime_dir: &Path) -> Option<Record> {
        serde_json::from_slice(&read_beneath(runtime_dir, FILE, BYTES_MAX).ok()?).ok()
    }
}

pub(crate) fn forget(runtime_dir: &Path) {
    let _ = std::fs::remove_file(runtime_dir.join(FILE));
}
