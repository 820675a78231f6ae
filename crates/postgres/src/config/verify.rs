//! Asks the server program itself whether it accepts settings.
//!
//! `postgres -C NAME -D DIR` reads the configuration in DIR, says what is wrong with it and ends
//! before it touches anything else: no cluster is needed in DIR.

use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_os::process::{Spec, User, run};
use offshoot_types::{ErrorKind, Failure};

use super::{Adopted, Settings, parse};

const TIMEOUT: Duration = Duration::from_secs(20);
/// All complaints come together; more rounds are for those that hide others.
const ROUNDS_MAX: usize = 8;

/// Drops inherited settings that this host's server does not accept.
pub(super) fn drop_refused(
    bin_dir: &Path,
    user: Option<&User>,
    adopted: &mut Adopted,
) -> Result<(), Failure> {
    for _ in 0..ROUNDS_MAX {
        let Some(complaints) = complaints(bin_dir, user, &adopted.inherited)? else {
            return Ok(());
        };
        let refused: Vec<String> =
            adopted.inherited.keys().filter(|name| names(&complaints, name)).cloned().collect();
        if refused.is_empty() {
            break;
        }
        for name in refused {
            adopted.inherited.remove(&name);
            adopted.dropped.push((name, "this server does not accept it".to_owned()));
        }
    }
    // Better a copy without the source's settings than none at all.
    for name in std::mem::take(&mut adopted.inherited).into_keys() {
        adopted.dropped.push((name, "the settings are not accepted together".to_owned()));
    }
    Ok(())
}

/// Refuses a user's settings that this host's server does not accept.
pub(super) fn refuse_invalid(
    bin_dir: &Path,
    user: Option<&User>,
    settings: &Settings,
) -> Result<(), Failure> {
    if settings.is_empty() {
        return Ok(());
    }
    match complaints(bin_dir, user, settings)? {
        None => Ok(()),
        Some(complaints) => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("the server does not accept the settings: {}", complaints.join("; ")),
            "correct the --set options; SHOW ALL in psql lists the settings of this version",
        )),
    }
}

/// Whether this host's server accepts settings.
pub(super) fn accepts(
    bin_dir: &Path,
    user: Option<&User>,
    settings: &Settings,
) -> Result<bool, Failure> {
    Ok(complaints(bin_dir, user, settings)?.is_none())
}

fn names(complaints: &[String], name: &str) -> bool {
    let quoted = format!("\"{name}\"");
    complaints.iter().any(|line| line.to_lowercase().contains(&quoted))
}

/// What the server says about the settings; `None` when it accepts them.
fn complaints(
    bin_dir: &Path,
    user: Option<&User>,
    settings: &Settings,
) -> Result<Option<Vec<String>>, Failure> {
    let dir = ScratchDir::create(user).map_err(|error| {
        Failure::internal(format!("cannot make a temporary directory: {error}"))
    })?;
    let mut text = String::new();
    for (name, value) in settings {
        text += &format!("{name} = {}\n", parse::quote(value));
    }
    std::fs::write(dir.0.join("postgresql.conf"), text)
        .and_then(|()| dir.give("postgresql.conf", user))
        .map_err(|error| Failure::internal(format!("cannot write a temporary file: {error}")))?;
    let spec = Spec::new(bin_dir.join("postgres"))
        .args(["-C", "listen_addresses", "-D"])
        .arg(&dir.0)
        .clear_env()
        .env("LC_ALL", "C")
        .cwd("/")
        .user(user.cloned());
    let output = run(&spec, TIMEOUT).map_err(|error| {
        Failure::new(
            ErrorKind::HostUnprepared,
            error.to_string(),
            "install the server programs of this version of PostgreSQL",
        )
    })?;
    if output.success() {
        return Ok(None);
    }
    let place = format!("\"{}", dir.0.display());
    let lines = output.stderr_text();
    let lines = lines
        .lines()
        .filter(|line| !line.contains("configuration file"))
        .map(|line| {
            let text = line.split_once("LOG:").or_else(|| line.split_once("FATAL:"));
            let text = text.map_or(line, |(_, text)| text).trim();
            text.split(&format!(" in file {place}")).next().unwrap_or(text).to_owned()
        })
        .filter(|line| !line.is_empty());
    let mut lines: Vec<String> = lines.collect();
    lines.dedup();
    Ok(Some(lines))
}

/// A private directory that the server's user owns, removed when dropped.
struct ScratchDir(PathBuf);

impl ScratchDir {
    fn create(user: Option<&User>) -> std::io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        let number = u64::from_ne_bytes(offshoot_os::random_bytes());
        let path = std::env::temp_dir().join(format!("offshoot-settings-{number:016x}"));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        let dir = ScratchDir(path);
        dir.give("", user)?;
        Ok(dir)
    }

    fn give(&self, name: &str, user: Option<&User>) -> std::io::Result<()> {
        match user {
            Some(user) => {
                let path = if name.is_empty() { self.0.clone() } else { self.0.join(name) };
                std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid))
            }
            None => Ok(()),
        }
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
