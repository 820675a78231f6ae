//! Namespaces, users and capabilities.

use crate::spec::CellUser;
use rustix::process::{Gid, Uid, getgid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets};
use std::io;

/// Gives this process views of mounts and of System V IPC of its own. Without root it gets a user
/// namespace first, in which its own user is the only one.
pub(crate) fn separate() -> io::Result<()> {
    let (uid, gid) = (getuid(), getgid());
    let mut flags = libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
    if !uid.is_root() {
        flags |= libc::CLONE_NEWUSER;
    }
    // SAFETY: plain system call; this process has one thread.
    check(unsafe { libc::unshare(flags) })?;
    if !uid.is_root() {
        let (uid, gid) = (uid.as_raw(), gid.as_raw());
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    Ok(())
}

/// Becomes the server's user, for good: no capability is left, and no program can bring one back.
pub(crate) fn give_up(user: Option<&CellUser>) -> io::Result<()> {
    // SAFETY: plain system call with constant arguments.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    for capability in 0..=63 {
        // SAFETY: plain system call; numbers beyond the last capability are refused.
        if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) } != 0 {
            break;
        }
    }
    become_user(user)?;
    // Of the user namespace, where there is one: an ordinary user loses them with `execve` anyway.
    keep(CapabilitySet::empty())
}

/// Becomes the server's user, who may trace the others of the cell besides: a doorman's rights.
pub(crate) fn keep_tracing(user: Option<&CellUser>) -> io::Result<()> {
    // SAFETY: plain system calls with constant arguments.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::prctl(libc::PR_SET_KEEPCAPS, 1, 0, 0, 0))?;
    }
    become_user(user)?;
    keep(CapabilitySet::SYS_PTRACE)?;
    // Nobody of the same user traces it in turn.
    // SAFETY: as above.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })
}

fn become_user(user: Option<&CellUser>) -> io::Result<()> {
    let Some(user) = user else { return Ok(()) };
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    rustix::thread::set_thread_groups(&[gid])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    Ok(rustix::thread::set_thread_res_uid(uid, uid, uid)?)
}

fn keep(capabilities: CapabilitySet) -> io::Result<()> {
    let sets = CapabilitySets {
        effective: capabilities,
        permitted: capabilities,
        inheritable: CapabilitySet::empty(),
    };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// How many processes the cell may have. From Linux 5.14 on the kernel counts them in the user namespace.
pub(crate) fn limit_processes(most: Option<u64>) -> io::Result<()> {
    let Some(most) = most else { return Ok(()) };
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: plain system call with a valid structure.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &limit) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
