//! What a child can reach, by Landlock (`landlock(7)`): files to read and to write, TCP ports; no other process. An older
//! kernel takes away what it knows.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, Scope,
};

/// The first version that knows truncation (Linux 6.2), TCP ports (6.7), and signals and abstract sockets (6.12).
const VERSION: ABI = ABI::V6;

/// Where programs and libraries are.
pub const SYSTEM_DIRS: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// What programs read of a host that talk to another one: nothing of it is secret.
const CONFIGURATION: [&str; 16] = [
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/passwd",
    "/etc/group",
    "/etc/ssl",
    "/etc/pki",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
];

/// Capabilities that a child of root keeps, to write files of others: CHOWN, DAC_OVERRIDE, FOWNER.
pub(super) const KEPT_CAPABILITIES: [i32; 3] = [0, 1, 3];

/// What a child can reach beside the system's programs and libraries. Its streams are excepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Files and directories that it may read, and run programs of.
    pub reads: Vec<PathBuf>,
    /// Directories below which it may do everything.
    pub writes: Vec<PathBuf>,
    /// TCP ports that it may connect to, on whatever host.
    pub ports: Vec<u16>,
}

/// The rules for the kernel; none if it knows no such rules. Directories are found without asking their file systems
/// for anything but their names.
pub(super) fn rules(reach: &Reach) -> io::Result<Option<OwnedFd>> {
    let (reading, all) = (AccessFs::from_read(VERSION), AccessFs::from_all(VERSION));
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|rules| rules.handle_access(AccessNet::from_all(VERSION)))
        .and_then(|rules| rules.scope(Scope::from_all(VERSION)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let system = SYSTEM_DIRS.iter().chain(&CONFIGURATION).map(Path::new);
    // What is not there cannot be read either.
    let reads = system.chain(reach.reads.iter().map(PathBuf::as_path)).filter(|path| path.exists());
    let rules = reads.into_iter().try_fold(made, |rules, path| {
        let is_dir = path.is_dir();
        below(rules, path, if is_dir { reading } else { AccessFs::ReadFile | AccessFs::Execute })
    })?;
    let rules = reach.writes.iter().try_fold(rules, |rules, path| below(rules, path, all))?;
    let rules = reach.ports.iter().try_fold(rules, |rules, port| {
        rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(io::Error::other)
    })?;
    Ok(rules.into())
}

fn below(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> io::Result<RulesetCreated> {
    let opened = PathFd::new(path).map_err(io::Error::other)?;
    rules.add_rule(PathBeneath::new(opened, access)).map_err(io::Error::other)
}
