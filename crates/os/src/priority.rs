//! How urgent a thread is to the system.

/// How far back in line, of 19.
const NICE: i32 = 10;
/// The last of the levels of the class "best effort", as `ioprio_set(2)` takes it.
const IO_PRIORITY: libc::c_int = 2 << 13 | 7;
/// The number that follows is a thread's; 0 is the calling one.
const IOPRIO_WHO_PROCESS: libc::c_int = 1;

/// Gives all other threads priority over the calling one, for processor and disk. It cannot be undone: for
/// threads that do one piece of background work. If the system refuses, nothing changes.
pub fn lower_thread_priority() {
    // SAFETY: plain system calls about the calling thread; they read no memory of ours.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, NICE);
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IO_PRIORITY);
    }
}
