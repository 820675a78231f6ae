//! Processes of a server whose postmaster was killed.
//!
//! They end as soon as they notice, but until then they hold the server's shared memory, and a
//! postmaster that finds it in use refuses to start. One that is stuck in a system call or stopped
//! does not notice at all.

use offshoot_os::process::{ProcessId, Signal};
use offshoot_types::Failure;
use std::path::Path;
use std::time::Duration;

/// How long they may take to notice by themselves.
const NOTICE: Duration = Duration::from_millis(200);
/// How long a killed one may take to end.
const KILLED: Duration = Duration::from_secs(10);

/// Ends what an earlier postmaster of this data directory left running. Only for a directory on which no
/// postmaster runs.
///
/// # Errors
/// `Internal` when one does not even end when killed.
pub(super) fn end(data_dir: &Path) -> Result<(), Failure> {
    // Written before the shared memory is made, so without it there is nothing to look for.
    if data_dir.join("postmaster.pid").symlink_metadata().is_err() {
        return Ok(());
    }
    for orphan in of(data_dir) {
        if orphan.wait_end(NOTICE) {
            continue;
        }
        let _ = orphan.signal(Signal::Kill);
        if !orphan.wait_end(KILLED) {
            return Err(Failure::internal(format!(
                "a process (pid {}) of an earlier server on {} does not end, not even when killed",
                orphan.pid,
                data_dir.display()
            )));
        }
    }
    Ok(())
}

/// All processes of a server work in its data directory.
fn of(data_dir: &Path) -> Vec<ProcessId> {
    let is_server = |process: &ProcessId| {
        process.cwd().is_some_and(|dir| dir == data_dir)
            && process
                .program()
                .is_some_and(|program| program.file_name().is_some_and(|name| name == "postgres"))
    };
    ProcessId::all().filter(is_server).collect()
}
