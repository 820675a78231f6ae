//! Where the programs of PostgreSQL are.

use anyhow::{Context, Result};
use offshoot_os::process::{self, Spec};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directories of programs of every server on this host, by major version, newest last.
pub fn find_installations() -> Vec<(u32, PathBuf)> {
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter_map(|bin| Some((major_version(&bin).ok()?, bin)))
        .collect();
    found.sort();
    found
}

/// The newest server of this host.
///
/// # Errors
/// When there is none; the message says how to get one.
pub fn find_newest() -> Result<PathBuf> {
    let newest = find_installations().pop().map(|(_, bin)| bin);
    newest.context(
        "no PostgreSQL server under /usr/lib/postgresql: apt-get install postgresql (or make demo)",
    )
}

/// The major version of the server in a directory of programs.
///
/// # Errors
/// When it cannot be run or says something else than a version.
pub fn major_version(bin_dir: &Path) -> Result<u32> {
    let spec = Spec::new(bin_dir.join("postgres")).arg("--version");
    let output = process::run(&spec, Duration::from_secs(10))?;
    let text = output.stdout_text();
    let version = text.split_whitespace().nth(2).unwrap_or_default();
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().with_context(|| format!("'{}' names no version", text.trim()))
}
