//! Where a child may write, by Landlock (`landlock(7)`).

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr,
};

/// The first version that also knows truncation (Linux 6.2). An older kernel takes away what it knows.
const VERSION: ABI = ABI::V3;

/// The rules that let a process write only below `dirs`; none if the kernel knows no such rules. The
/// directories are found without asking their file systems for anything but their names.
pub(super) fn rules(dirs: &[PathBuf]) -> io::Result<Option<OwnedFd>> {
    let writing = AccessFs::from_write(VERSION);
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writing)
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    let rules = dirs.iter().try_fold(made, |rules, path| {
        let opened = PathFd::new(path).map_err(io::Error::other)?;
        rules.add_rule(PathBeneath::new(opened, writing)).map_err(io::Error::other)
    })?;
    Ok(rules.into())
}
