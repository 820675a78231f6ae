//! Who is in a cell.

use offshoot_launcher::forbid_children;
use offshoot_os::process::{ProcessId, Signal};
use offshoot_os::{Clock, SystemClock};
use std::path::Path;
use std::time::Duration;

/// How long all of them may take to end. One that starts others is found again in the next round.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends every process in the cell with this data directory; whether none is left.
pub(crate) fn end(data_dir: &Path) -> bool {
    let deadline = SystemClock.elapsed() + PATIENCE;
    loop {
        let residents = of(data_dir);
        if residents.is_empty() {
            return true;
        }
        if SystemClock.elapsed() >= deadline {
            return false;
        }
        for resident in &residents {
            forbid_children(*resident);
            let _ = resident.signal(Signal::Kill);
        }
        for resident in &residents {
            resident.wait_end(deadline.saturating_sub(SystemClock.elapsed()));
        }
    }
}

/// Only in its cell is a data directory a mount of its own. Asking for the list of mounts touches none
/// of them: their file system may be gone.
fn of(data_dir: &Path) -> Vec<ProcessId> {
    let outside = namespace("self");
    let place = format!(" {} ", escaped(data_dir));
    let is_in_cell = |process: &ProcessId| {
        let pid = process.pid.to_string();
        namespace(&pid) != outside
            && std::fs::read_to_string(format!("/proc/{pid}/mountinfo"))
                .is_ok_and(|mounts| mounts.contains(&place))
    };
    ProcessId::all().filter(is_in_cell).collect()
}

fn namespace(process: &str) -> Option<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok()
}

/// As `/proc/PID/mountinfo` writes paths.
fn escaped(path: &Path) -> String {
    let path = path.to_string_lossy();
    let pairs = [("\\", "\\134"), (" ", "\\040"), ("\t", "\\011"), ("\n", "\\012")];
    pairs.iter().fold(path.into_owned(), |path, (plain, octal)| path.replace(plain, octal))
}
