//! Starts a child without copying this process.
//!
//! `fork` copies the page tables: 20–40 ms for each GiB of the block cache, and every page written
//! afterwards is copied again. So children start like with `posix_spawn`: the child shares the
//! memory and the calling thread waits until it has called `execve` (`CLONE_VM | CLONE_VFORK`).
//! `posix_spawn` itself can change neither user nor groups, hence this module.
//!
//! What the child may do before `execve` (it runs on memory that this process still uses):
//! 1. It MUST NOT allocate, lock or panic: everything it needs is prepared by [`Prepared::new`].
//! 2. It MUST change its user by raw system calls: the C library's functions would change the user
//!    of all threads they find in the shared memory, which are this process's.
//! 3. No signal handler of this process may run in it: all signals are blocked around the start,
//!    and the child sets handlers to the default before it unblocks them.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use parking_lot::Mutex;

use super::{Sink, Spec, Stdin, User, reach};

/// Room for the child's few calls before `execve`.
const STACK_BYTES: usize = 128 << 10;
/// Signals are numbered from 1 to this.
const SIGNALS: c_int = 64;

/// A change of user marks the memory, which the child shares until `execve`, as not dumpable: until
/// then only root can look into it through the child. The mark is removed afterwards, and two
/// starts must not overlap in between.
static ONE_USER_CHANGE: Mutex<()> = Mutex::new(());

/// Everything a start needs, prepared where allocation is still allowed.
pub(super) struct Prepared {
    program: CString,
    args: Vec<CString>,
    env: Vec<CString>,
    cwd: Option<CString>,
    streams: [OwnedFd; 3],
    user: Option<User>,
    new_session: bool,
    die_with_parent: bool,
    memory_bytes_max: Option<u64>,
    /// The rules of what it can reach.
    rules: Option<OwnedFd>,
    /// Descriptors that stay open, under their numbers.
    inherited: Vec<Arc<OwnedFd>>,
}

/// A started child.
pub(super) struct Started {
    pub(super) pid: i32,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// The ends of pipes that stay here.
pub(super) struct Ends {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl Prepared {
    pub(super) fn new(spec: &Spec) -> io::Result<(Self, Ends)> {
        let program = find_program(&spec.program)?;
        let mut args = vec![c_string(spec.program.as_os_str())?];
        for arg in &spec.args {
            args.push(c_string(arg)?);
        }
        let stdin: OwnedFd = match &spec.stdin {
            Stdin::File(file) => File::open(file)?.into(),
            Stdin::Open(fd) => fd.try_clone()?,
            Stdin::Nothing => OpenOptions::new().read(true).write(true).open("/dev/null")?.into(),
        };
        let (stdout, stdout_end) = stream(&spec.stdout)?;
        let (stderr, stderr_end) = stream(&spec.stderr)?;
        let prepared = Prepared {
            program: c_string(program.as_os_str())?,
            args,
            env: environment(spec)?,
            cwd: spec.cwd.as_ref().map(|dir| c_string(dir.as_os_str())).transpose()?,
            streams: [above_standard(stdin)?, stdout, stderr],
            user: spec.user.clone(),
            new_session: spec.new_session,
            die_with_parent: spec.die_with_parent,
            memory_bytes_max: spec.memory_bytes_max,
            inherited: spec.preload.iter().flat_map(|it| it.descriptors.clone()).collect(),
            rules: spec.reach.as_ref().map_or(Ok(None), reach::rules)?,
        };
        Ok((prepared, Ends { stdout: stdout_end, stderr: stderr_end }))
    }

    /// Starts the child; the kernel's "parent died" signal is tied to the calling thread.
    pub(super) fn start(self, ends: Ends) -> io::Result<Started> {
        let pointers = |list: &[CString]| -> Vec<*const c_char> {
            list.iter().map(|item| item.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let launch = Launch {
            args: pointers(&self.args),
            env: pointers(&self.env),
            parent: std::process::id() as i32,
            error: AtomicI32::new(0),
            prepared: &self,
        };
        let mut stack = vec![0_u8; STACK_BYTES];
        // SAFETY: the stack is valid, the pointer to its end is aligned to 16 bytes; it and
        // `launch` outlive the child's use of them, as this thread waits until the child has
        // called execve or has ended (CLONE_VFORK).
        let pid = unsafe {
            let _alone = ONE_USER_CHANGE.lock();
            let end = stack.as_mut_ptr().add(STACK_BYTES);
            let top = end.sub(end as usize % 16).cast::<c_void>();
            let dumpable = libc::prctl(libc::PR_GET_DUMPABLE);
            let old_mask = block_signals();
            let pid = libc::clone(
                child_main,
                top,
                libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
                (&raw const launch).cast_mut().cast(),
            );
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, &old_mask, std::ptr::null_mut());
            if self.user.is_some() && dumpable == 1 {
                libc::prctl(libc::PR_SET_DUMPABLE, 1);
            }
            if pid < 0 {
                return Err(error);
            }
            pid
        };
        match launch.error.load(Ordering::SeqCst) {
            0 => Ok(Started { pid, stdout: ends.stdout, stderr: ends.stderr }),
            code => {
                let mut status = 0;
                // SAFETY: reaps the child that failed.
                unsafe { libc::waitpid(pid, &mut status, 0) };
                Err(io::Error::from_raw_os_error(code))
            }
        }
    }
}

/// What the child reads; it writes only `error`.
struct Launch<'a> {
    prepared: &'a Prepared,
    args: Vec<*const c_char>,
    env: Vec<*const c_char>,
    parent: i32,
    error: AtomicI32,
}

/// Blocks all signals for this thread; returns the previous mask.
unsafe fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are valid.
    unsafe {
        let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    }
}

extern "C" fn child_main(argument: *mut c_void) -> c_int {
    // SAFETY: the parent passes a `Launch` that it keeps until this process has left its memory.
    let launch = unsafe { &*argument.cast::<Launch<'_>>() };
    // SAFETY: this is the child of `Prepared::start`.
    let code = unsafe { become_program(launch) };
    launch.error.store(code, Ordering::SeqCst);
    127
}

/// Runs in the child; returns only on failure, with the error's number.
unsafe fn become_program(launch: &Launch<'_>) -> c_int {
    let prepared = launch.prepared;
    // SAFETY: plain system calls on prepared data.
    unsafe {
        let errno = || *libc::__errno_location();
        default_signals();
        for (target, stream) in prepared.streams.iter().enumerate() {
            if libc::dup2(stream.as_raw_fd(), target as c_int) < 0 {
                return errno();
            }
        }
        for fd in &prepared.inherited {
            if libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) < 0 {
                return errno();
            }
        }
        if prepared.new_session && libc::setsid() < 0 {
            return errno();
        }
        // The priority of this process is its own: `hurry`.
        if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
        if let Some(user) = &prepared.user {
            let (count, groups) = (user.groups.len(), user.groups.as_ptr());
            if libc::syscall(libc::SYS_setgroups, count, groups) < 0
                || libc::syscall(libc::SYS_setgid, user.gid) < 0
                || libc::syscall(libc::SYS_setuid, user.uid) < 0
            {
                return errno();
            }
        }
        if let Some(dir) = &prepared.cwd
            && libc::chdir(dir.as_ptr()) < 0
        {
            return errno();
        }
        if let Some(bytes) = prepared.memory_bytes_max {
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            if libc::setrlimit(libc::RLIMIT_AS, &limit) < 0 {
                return errno();
            }
        }
        if prepared.rules.is_some() {
            give_up_capabilities();
        }
        if let Some(rules) = &prepared.rules
            && (libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
                || libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) < 0)
        {
            return errno();
        }
        if prepared.die_with_parent {
            // After the user change, which would clear it.
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
                return errno();
            }
            if libc::getppid() != launch.parent {
                return libc::ESRCH;
            }
        }
        libc::execve(prepared.program.as_ptr(), launch.args.as_ptr(), launch.env.as_ptr());
        errno()
    }
}

/// A program that root runs gets none of the others. Who is not root has none to give up.
unsafe fn give_up_capabilities() {
    for capability in (0..64).filter(|one| !reach::KEPT_CAPABILITIES.contains(one)) {
        // SAFETY: plain system call; numbers beyond the last capability are refused.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

/// Sets every handled signal (and SIGPIPE, which this runtime ignores) to its default, then
/// unblocks all.
unsafe fn default_signals() {
    // SAFETY: all structures are valid; numbers that are no signals are refused by the kernel.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        for signal in 1..=SIGNALS {
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && (action.sa_sigaction != libc::SIG_IGN || signal == libc::SIGPIPE)
            {
                action = std::mem::zeroed();
                action.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// The stream for the child, and the end that stays here.
fn stream(sink: &Sink) -> io::Result<(OwnedFd, Option<OwnedFd>)> {
    let (child, own): (OwnedFd, Option<OwnedFd>) = match sink {
        Sink::Null => (OpenOptions::new().write(true).open("/dev/null")?.into(), None),
        Sink::Pipe => {
            let (reader, writer) = io::pipe()?;
            (writer.into(), Some(reader.into()))
        }
        Sink::File(path) => {
            let file: File = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
            (file.into(), None)
        }
        Sink::Open(fd) => (fd.try_clone()?, None),
    };
    Ok((above_standard(child)?, own))
}

/// The descriptor, moved out of the way of others that will be put at 0, 1 and 2.
fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 {
        return Ok(fd);
    }
    // SAFETY: duplicates a valid descriptor; the result is owned by nobody else.
    unsafe {
        let moved = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3);
        if moved < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(moved)) }
    }
}

fn environment(spec: &Spec) -> io::Result<Vec<CString>> {
    let mut variables: Vec<(OsString, OsString)> = match spec.clear_env {
        true => std::env::var_os("PATH").map(|path| ("PATH".into(), path)).into_iter().collect(),
        false => std::env::vars_os().collect(),
    };
    for (name, value) in &spec.env {
        variables.retain(|(known, _)| known != name);
        if let Some(value) = value {
            variables.push((name.clone(), value.clone()));
        }
    }
    let text = |(name, value): &(OsString, OsString)| {
        let mut text = name.clone();
        text.push("=");
        text.push(value);
        c_string(&text)
    };
    variables.iter().map(text).collect()
}

/// The program's path; a bare name is looked up in `PATH`.
fn find_program(program: &Path) -> io::Result<PathBuf> {
    if program.as_os_str().as_bytes().contains(&b'/') {
        return Ok(program.to_owned());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let executable = |file: &PathBuf| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(executable)
        .ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a text contains a zero byte"))
}
