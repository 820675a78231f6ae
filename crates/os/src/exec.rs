//! Replaces this process with another program.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replaces this process with a program (a path, or a name looked up in `PATH`) that keeps its terminal,
/// its files and, with additions, its environment. Returns only if that fails, with the reason.
#[allow(clippy::disallowed_methods)] // nothing of this process is left that could be simulated
pub fn replace_process(
    program: &OsStr,
    args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    env: &[(&str, &str)],
) -> io::Error {
    Command::new(program).args(args).envs(env.iter().copied()).exec()
}
