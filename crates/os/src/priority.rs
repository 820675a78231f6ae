//! How urgent a thread is to the system, and what this process has of the processors.

use crate::cgroup::Group;
use parking_lot::Mutex;
use std::io;
use std::time::Duration;

/// How far back in line, of 19.
const NICE: i32 = 10;
/// The last of the levels of the class "best effort", as `ioprio_set(2)` takes it.
const IO_PRIORITY: libc::c_int = 2 << 13 | 7;
/// The number that follows is a thread's; 0 is the calling one.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

/// How far forward a process goes that others wait for.
const AHEAD: i32 = -10;
/// Where every process is that nobody has chosen a priority for.
const USUAL: i32 = 0;

/// How the control groups of processes begin that have a share of their own; what follows is the process.
pub const OWN_GROUP: &str = "offshoot.";
/// What it has of the processors: as much as so many percent of another group.
const SHARE_PERCENT: u64 = 400;
/// The same while somebody waits.
const SHARE_AHEAD_PERCENT: u64 = 1600;

/// Says and takes the priority of this process's session.
const SESSION: &str = "/proc/self/autogroup";

/// How many [`Hurry`] there are.
static HURRIES: Mutex<u32> = Mutex::new(0);

/// While there is one, this process has priority over those of the host that have no other: somebody waits for it. Where
/// somebody has chosen a priority for it, or the system refuses, nothing changes. Programs that it starts have the usual
/// one, and so have threads that do background work.
#[derive(Debug)]
pub struct Hurry(());

/// Hurries until what is returned is dropped.
pub fn hurry() -> Hurry {
    let mut hurries = HURRIES.lock();
    if *hurries == 0 {
        change_pace(true);
    }
    *hurries += 1;
    Hurry(())
}

/// In a group of its own a thread is ahead of others of the group alone: there it is the group that goes ahead.
fn change_pace(ahead: bool) {
    match &*SHARE.lock() {
        Some(group) => {
            let _ = group.weigh_processors(if ahead { SHARE_AHEAD_PERCENT } else { SHARE_PERCENT });
        }
        None if ahead => move_threads(USUAL, AHEAD),
        None => move_threads(AHEAD, USUAL),
    }
}

/// The group of this process alone.
static SHARE: Mutex<Option<Group>> = Mutex::new(None);

/// As long as there is one, this process is in a control group of its own. Without it, it is in that of
/// whoever started it, or of its session; and Linux 6.18 keeps such groups waiting for seconds while others do little but wake each other.
#[derive(Debug)]
pub struct OwnShare(());

/// Gives this process a share of the processors of its own. To be taken before it hurries.
///
/// # Errors
/// As [`Group::enter`]: for an ordinary user, and in most places below control groups of version 2.
pub fn own_share() -> io::Result<OwnShare> {
    let group = Group::enter(&format!("{OWN_GROUP}{}", std::process::id()))?;
    let _ = group.weigh_processors(SHARE_PERCENT);
    *SHARE.lock() = Some(group);
    Ok(OwnShare(()))
}

impl Drop for OwnShare {
    fn drop(&mut self) {
        if let Some(group) = SHARE.lock().take() {
            let _ = group.leave().and_then(|()| group.remove());
        }
    }
}

/// For a process that outlives the one that started it: takes it out of that one's share.
pub fn leave_share() {
    if let Some(group) = Group::entered(OWN_GROUP) {
        let _ = group.leave();
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        let mut hurries = HURRIES.lock();
        *hurries -= 1;
        if *hurries == 0 {
            change_pace(false);
        }
    }
}

/// Moves all threads of this process from one priority to another. A new one has that of the thread that started it, so
/// this looks again until there is none left.
fn move_threads(from: i32, to: i32) {
    let mut moved = false;
    while let Ok(threads) = std::fs::read_dir("/proc/self/task") {
        let of_name = |name: std::ffi::OsString| name.to_str()?.parse::<libc::id_t>().ok();
        let numbers = threads.flatten().filter_map(|thread| of_name(thread.file_name()));
        let all = numbers.filter(|thread| {
            // SAFETY: plain system calls about threads of this process; they read no memory of ours.
            unsafe {
                libc::getpriority(libc::PRIO_PROCESS, *thread) == from
                    && libc::setpriority(libc::PRIO_PROCESS, *thread, to) == 0
            }
        });
        if all.count() == 0 {
            break;
        }
        moved = true;
    }
    // Where sessions share the processors, it is theirs that counts: sched(7), "The autogroup feature".
    let session = std::fs::read_to_string(SESSION).unwrap_or_default();
    if moved && session.trim_end().ends_with(&format!(" nice {from}")) {
        let _ = std::fs::write(SESSION, to.to_string());
    }
}

/// Gives all other threads priority over the calling one, for processor and disk. It cannot be undone: for
/// threads that do one piece of background work. If the system refuses, nothing changes.
pub fn lower_thread_priority() {
    // SAFETY: plain system calls about the calling thread; they read no memory of ours.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IO_PRIORITY);
    }
}

/// How long the calling thread has waited for a processor since it began: what it took without that is what its work
/// costs. Nothing where the system does not tell.
pub fn processor_wait() -> Duration {
    // Time on a processor, time in line for one, and turns; the first two in nanoseconds.
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let waited = told.split_ascii_whitespace().nth(1).and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(waited.unwrap_or_default())
}

#[cfg(test)]
mod tests;
