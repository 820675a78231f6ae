//! System calls that no database server makes, and that widen a hole.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

/// Refused with EPERM.
const REFUSED: [i64; 38] = [
    // Another root, other mounts, other namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // The kernel and the host.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    // It does what the filters for sockets refuse, out of their sight.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Takes them away from this process and all that it starts.
pub(crate) fn restrict(udp: bool) -> io::Result<()> {
    // Its flags lie in memory, where no filter sees them: the C library falls back to `clone`.
    install(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)?;
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    refused.insert(libc::SYS_clone, namespaces().map_err(io::Error::other)?);
    refused.insert(libc::SYS_socket, sockets(udp).map_err(io::Error::other)?);
    // The number of the argument with the flags.
    for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        refused.insert(call, connecting(flags).map_err(io::Error::other)?);
    }
    install(refused, libc::EPERM)?;
    refuse_x32()
}

/// The kernel may have each system call a second time, for programs of the x32 ABI, with this bit in its number.
#[cfg(target_arch = "x86_64")]
fn refuse_x32() -> io::Result<()> {
    const X32_BIT: u32 = 1 << 30;
    const NUMBER_AT: u32 = 0;
    let refused = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let program = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, NUMBER_AT),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32_BIT),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, refused),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    apply_filter(&program).map_err(io::Error::other)
}

#[cfg(not(target_arch = "x86_64"))]
fn refuse_x32() -> io::Result<()> {
    Ok(())
}

fn install(refused: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> io::Result<()> {
    let arch = std::env::consts::ARCH.try_into().map_err(io::Error::other)?;
    let answer = SeccompAction::Errno(error as u32);
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, answer, arch);
    let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(io::Error::other)?;
    apply_filter(&program).map_err(io::Error::other)
}

type Rules = Result<Vec<SeccompRule>, seccompiler::BackendError>;

fn condition(
    argument: u8,
    operator: SeccompCmpOp,
    value: i32,
) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value as u32 as u64)
}

/// A `clone` with any of the flags for a namespace.
fn namespaces() -> Rules {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    let has = |flag: i32| {
        let set = SeccompCmpOp::MaskedEq(flag as u32 as u64);
        SeccompRule::new(vec![condition(0, set, flag)?])
    };
    flags.into_iter().map(has).collect()
}

/// Sending that connects first (TCP Fast Open, `tcp(7)`): Landlock does not see it.
fn connecting(flags: u8) -> Rules {
    let set = SeccompCmpOp::MaskedEq(libc::MSG_FASTOPEN as u32 as u64);
    Ok(vec![SeccompRule::new(vec![condition(flags, set, libc::MSG_FASTOPEN)?])?])
}

/// Every socket but Unix and TCP. Of other protocols of streams (MPTCP, SCTP) newer kernels' Landlock knows no ports.
fn sockets(udp: bool) -> Rules {
    let known = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    let others: Result<Vec<_>, _> =
        known.into_iter().map(|family| condition(0, SeccompCmpOp::Ne, family)).collect();
    let mut rules = vec![SeccompRule::new(others?)?];
    for family in [libc::AF_INET, libc::AF_INET6] {
        // The type shares its argument with flags.
        let kind = |kind: i32| {
            SeccompRule::new(vec![
                condition(0, SeccompCmpOp::Eq, family)?,
                condition(1, SeccompCmpOp::MaskedEq(0xf), kind)?,
            ])
        };
        for refused in [libc::SOCK_RAW, libc::SOCK_SEQPACKET, libc::SOCK_RDM, libc::SOCK_DCCP] {
            rules.push(kind(refused)?);
        }
        rules.push(SeccompRule::new(vec![
            condition(0, SeccompCmpOp::Eq, family)?,
            condition(1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_STREAM)?,
            condition(2, SeccompCmpOp::Ne, 0)?,
            condition(2, SeccompCmpOp::Ne, libc::IPPROTO_TCP)?,
        ])?);
        if !udp {
            rules.push(kind(libc::SOCK_DGRAM)?);
        }
    }
    Ok(rules)
}
