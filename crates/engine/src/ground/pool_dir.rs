//! Which directory may be a pool's: a missing one, an empty one, and one that is a pool already. In any other are
//! somebody's files: nothing of it is changed, not even its mode.

use offshoot_os::process::User;
use offshoot_types::{ErrorKind, Failure};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a file system has in its uppermost directory when it is made.
const FILE_SYSTEM: &str = "lost+found";
/// What the engine makes in a pool before the label makes it one.
const UNFINISHED: [&str; 9] =
    ["run", "lock", "encryption", "root.0", "root.1", "label.new", "table", "segments", "log"];
/// What a file that is being replaced is called until it is whole.
const REPLACEMENT: &str = ".offshoot-new-";
/// What the engine makes in `run`.
const RUN: [&str; 3] = ["mnt", "log", "pg"];
/// Names that an error shows.
const SHOWN: usize = 3;

/// Whether a directory may be opened as a pool, or made one. Changes nothing.
///
/// # Errors
/// `InvalidInput` for one with other files in it, `HostUnprepared` for one that cannot be read, or that root would have
/// to share with another user.
pub fn check(dir: &Path) -> Result<(), Failure> {
    let metadata = match std::fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|error| unreadable(dir, &error))?,
    };
    if !metadata.is_dir() {
        let message = format!("{} is not a directory", dir.display());
        return Err(Failure::new(ErrorKind::InvalidInput, message, ANOTHER));
    }
    let names = names(dir).map_err(|error| unreadable(dir, &error))?;
    if !is_pool(dir) && !may_become_pool(dir, &names) {
        return Err(foreign(dir, &names));
    }
    check_owner(dir, metadata.uid())
}

const ANOTHER: &str =
    "give --pool a directory that is missing or empty: the engine makes the pool there";

/// Whether a directory holds a pool: a label, and at least one of the roots.
fn is_pool(dir: &Path) -> bool {
    is_file(&dir.join("label")) && ["root.0", "root.1"].iter().any(|root| is_file(&dir.join(root)))
}

fn is_file(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Whether a directory is empty, or holds nothing but what a cut-off creation of a pool left. Creating one removes
/// files, so this MUST be sure that they are the engine's.
fn may_become_pool(dir: &Path, found: &[String]) -> bool {
    let mut left = found.iter().filter(|name| *name != FILE_SYSTEM).peekable();
    if left.peek().is_none() {
        return true;
    }
    let begun = std::fs::symlink_metadata(dir.join("lock"))
        .is_ok_and(|lock| lock.is_file() && lock.len() == 0);
    left.all(|name| match name.as_str() {
        "run" => holds_only(&dir.join(name), |name| RUN.contains(&name)),
        "table" => begun && holds_only(&dir.join(name), is_table_file),
        "segments" | "log" => begun && holds_only(&dir.join(name), |_| false),
        name => {
            let known = UNFINISHED.contains(&name) || name.starts_with(REPLACEMENT);
            begun && known && is_file(&dir.join(name))
        }
    })
}

fn holds_only(dir: &Path, known: impl Fn(&str) -> bool) -> bool {
    let is_dir = std::fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir());
    is_dir && names(dir).is_ok_and(|names| names.iter().all(|name| known(name)))
}

/// `NNNNNNNN.log`
fn is_table_file(name: &str) -> bool {
    name.split_once('.').is_some_and(|(number, kind)| {
        kind == "log" && number.len() == 8 && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(dir)?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}

fn foreign(dir: &Path, names: &[String]) -> Failure {
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = match names.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "{} is not a pool and is not empty: it holds {}{more}; nothing in it was changed",
        dir.display(),
        shown.join(", ")
    );
    Failure::new(ErrorKind::InvalidInput, message, ANOTHER)
}

/// Root MUST NOT write where another user can replace what was written by a link.
fn check_owner(dir: &Path, owner: u32) -> Result<(), Failure> {
    if User::own_uid() != 0 || owner == 0 {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::HostUnprepared,
        format!("{} belongs to the user with id {owner}, but this is root", dir.display()),
        "run the engine as that user, or give --pool a directory that belongs to root",
    ))
}

fn unreadable(dir: &Path, error: &io::Error) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!("the directory {} cannot be read: {error}", dir.display()),
        "give --pool a directory that this user can read and write",
    )
}

#[cfg(test)]
mod tests;
