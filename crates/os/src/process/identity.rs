//! Processes by pid and start time.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use super::Signal;
use crate::{Clock, SystemClock};

/// A process of this host: its pid together with its start time, so that a later process with the
/// same pid is never mistaken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// The pid.
    pub pid: i32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
}

impl ProcessId {
    /// The process that has this pid now; `None` when there is none or it has ended (zombie).
    pub fn of(pid: i32) -> Option<Self> {
        let stat = Stat::of(pid)?;
        let start_ticks = stat.field(START_TIME)?;
        let runs = !stat.has_ended() || has_threads_left(pid);
        runs.then_some(ProcessId { pid, start_ticks })
    }

    /// As [`of`](ProcessId::of), also of a child that has ended and that nobody has waited for.
    pub(super) fn of_child(pid: i32) -> Option<Self> {
        Some(ProcessId { pid, start_ticks: Stat::of(pid)?.field(START_TIME)? })
    }

    /// All processes that this one can see.
    pub fn all() -> impl Iterator<Item = Self> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(ProcessId::of)
    }

    /// This process.
    pub fn own() -> Option<Self> {
        ProcessId::of(std::process::id() as i32)
    }

    /// Whether it still runs.
    pub fn alive(&self) -> bool {
        ProcessId::of(self.pid) == Some(*self)
    }

    /// Whether it was told to end at once and cannot do anything else: killed, ended by a signal, or exiting. It keeps
    /// its locks and ports until it has ended.
    pub fn is_dying(&self) -> bool {
        let Some(stat) = Stat::of(self.pid) else { return false };
        let exits = stat.field::<u32>(FLAGS).is_some_and(|flags| flags & ENDING != 0);
        (exits || stat.has_ended() || is_killed(self.pid)) && self.alive()
    }

    /// Sends a signal if it still runs; returns whether it was sent.
    ///
    /// # Errors
    /// When the signal is not permitted.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let Some(pidfd) = self.open()? else { return Ok(false) };
        signal_pidfd(&pidfd, signal)?;
        Ok(true)
    }

    /// Kills (SIGKILL) every process whose group it leads, if it still runs; returns whether it
    /// did.
    ///
    /// # Errors
    /// When the signal is not permitted.
    pub fn kill_group(&self) -> io::Result<bool> {
        let Some(pidfd) = self.open()? else { return Ok(false) };
        // SAFETY: plain system calls.
        unsafe {
            if libc::getpgid(self.pid) == self.pid {
                libc::kill(-self.pid, libc::SIGKILL);
            }
        }
        signal_pidfd(&pidfd, Signal::Kill)?;
        Ok(true)
    }

    /// Waits until it has ended, at most `timeout`; returns whether it has.
    pub fn wait_end(&self, timeout: Duration) -> bool {
        let deadline = SystemClock.elapsed() + timeout;
        loop {
            let left = deadline.saturating_sub(SystemClock.elapsed());
            match self.open() {
                Ok(None) => return true,
                Ok(Some(pidfd)) => {
                    let _ = wait_pidfd(&pidfd, left);
                }
                Err(_) => SystemClock.sleep(left.min(Duration::from_millis(5))),
            }
            if !self.alive() {
                return true;
            }
            if SystemClock.elapsed() >= deadline {
                return false;
            }
        }
    }

    /// Its arguments; empty when it has ended.
    pub fn arguments(&self) -> Vec<String> {
        let bytes = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
        parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    /// The name of its first thread: of its program, cut to 15 bytes, unless it took another. Unlike
    /// everything else it can still be read while the process ends.
    pub fn name(&self) -> Option<String> {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", self.pid)).ok()?;
        Some(name.trim_end().to_owned())
    }

    /// The path of its program, when it may be read.
    pub fn program(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/exe", self.pid)).ok()
    }

    /// The directory it works in, when it may be read.
    pub fn cwd(&self) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/cwd", self.pid)).ok()
    }

    /// The processes it started, with any of its threads, that still run.
    pub fn children(&self) -> Vec<ProcessId> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).into_iter().flatten();
        let of_task = |task: std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("children")).unwrap_or_default()
        };
        let children: String = tasks.flatten().map(of_task).collect();
        let pids = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
        pids.filter_map(ProcessId::of).collect()
    }

    /// A handle for exactly this process; `None` when it has ended.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = rustix::process::Pid::from_raw(self.pid) else { return Ok(None) };
        match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            // The handle was opened first, so a match now means that it is for this process.
            Ok(pidfd) => Ok(self.alive().then_some(pidfd)),
            Err(rustix::io::Errno::SRCH) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Fields of `/proc/PID/stat`, counted from the state (proc_pid_stat(5), where the state is field 3).
const FLAGS: usize = 6;
const START_TIME: usize = 19;
/// Of the flags: it exits, writes a core dump, or was ended by a signal (`PF_EXITING`, `PF_DUMPCORE`, `PF_SIGNALED`).
const ENDING: u32 = 0x4 | 0x200 | 0x400;

/// What the kernel says about a process's first thread.
struct Stat(Vec<String>);

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may contain anything: fields are counted after the last bracket.
        let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        Some(Stat(fields.map(str::to_owned).collect()))
    }

    fn field<T: std::str::FromStr>(&self, index: usize) -> Option<T> {
        self.0.get(index)?.parse().ok()
    }

    fn is_in(&self, states: &[&str]) -> bool {
        self.0.first().is_some_and(|state| states.contains(&state.as_str()))
    }

    fn has_ended(&self) -> bool {
        self.is_in(&["Z", "X"])
    }
}

/// Whether a process's first thread runs, or waits for a processor, a disk or a lock. One that waits for a client is not at work.
pub fn is_at_work(pid: i32) -> bool {
    // PostgreSQL's processes wait for locks in shared memory by futex(2). Where the kernel does not say, none does.
    let of_lock = || {
        std::fs::read_to_string(format!("/proc/{pid}/wchan"))
            .is_ok_and(|function| function.starts_with("futex"))
    };
    Stat::of(pid).is_some_and(|stat| stat.is_in(&["R", "D"]) || stat.is_in(&["S"]) && of_lock())
}

/// Whether a SIGKILL waits for its first thread.
fn is_killed(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pending = status.lines().filter_map(|line| {
        let mask = line.strip_prefix("SigPnd:").or_else(|| line.strip_prefix("ShdPnd:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    });
    pending.fold(0, |all, mask| all | mask) & (1 << (libc::SIGKILL - 1)) != 0
}

/// Whether threads of a process still run whose first thread has ended: when it is killed they end in any order,
/// and it may write until the last one has.
fn has_threads_left(pid: i32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    tasks.is_ok_and(|tasks| tasks.flatten().count() > 1)
}

/// Names this boot of the host: a [`ProcessId`] stored before a reboot is meaningless afterwards.
/// Empty if the kernel does not say.
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// Waits until the process ends, at most `timeout`; ends early on an interrupted call.
pub(super) fn wait_pidfd(pidfd: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    let deadline = SystemClock.elapsed() + timeout;
    loop {
        let left = deadline.saturating_sub(SystemClock.elapsed());
        let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let millis = left.as_micros().div_ceil(1000).min(i32::MAX as u128) as i32;
        // SAFETY: one valid pollfd.
        let result = unsafe { libc::poll(&mut poll, 1, millis) };
        if result > 0 {
            return Ok(true);
        }
        if result < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        if SystemClock.elapsed() >= deadline {
            return Ok(false);
        }
    }
}

pub(super) fn signal_pidfd(pidfd: &OwnedFd, signal: Signal) -> io::Result<()> {
    // SAFETY: plain system call on a valid descriptor.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_fd().as_raw_fd(),
            signal.raw(),
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    match result {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            error => Err(error),
        },
    }
}
