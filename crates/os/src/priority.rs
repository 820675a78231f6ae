//! How urgent a thread is to the system.

/// How far back in line, of 19.
const NICE: i32 = 10;
/// The last of the levels of the class "best effort", as `ioprio_set(2)` takes it.
const IO_PRIORITY: libc::c_int = 2 << 13 | 7;
/// The number that follows is a thread's; 0 is the calling one.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

/// How far forward a process goes that others wait for.
const AHEAD: i32 = -10;

/// Gives this process priority over those of the host that have no other: for one whose answers many wait for. Where
/// somebody has chosen a priority for it, or the system refuses, nothing changes. Programs that it starts have the usual one.
pub fn raise_process_priority() {
    // SAFETY: plain system calls about this process; they read no memory of ours.
    let usual = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) == 0 };
    if usual {
        // SAFETY: as above.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, AHEAD) };
        // Where sessions share the processors, it is theirs that counts: sched(7), "The autogroup feature".
        let _ = std::fs::write("/proc/self/autogroup", AHEAD.to_string());
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
