//! Fresh clusters of PostgreSQL. The processes of one test run make each kind once, and copy it: `initdb` takes a second
//! of processor time, a copy a sixth of that.

use crate::running::run_to_success;
use anyhow::{Context, Result};
use offshoot_os::process::{Spec, User};
use offshoot_os::random_bytes;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Longest that `initdb` or a copy may take.
const SECONDS_MAX: u64 = 120;
/// Names the directory in which the clusters of a test run are kept. Without it each one is made by `initdb`.
const KEPT_IN: &str = "OFFSHOOT_TEST_CLUSTERS";

/// What a cluster is made with.
#[derive(Debug, Hash)]
pub struct Initdb<'a> {
    /// The directory with PostgreSQL's programs.
    pub bin_dir: &'a Path,
    /// The name of its superuser.
    pub superuser: &'a str,
    /// The password that it needs; without one everybody is let in.
    pub password: Option<&'a str>,
    /// More arguments of `initdb`.
    pub more: &'a [&'a str],
}

impl Initdb<'_> {
    /// Makes a cluster in a directory that does not exist, as `user` or as oneself.
    ///
    /// Within a process each is a cluster of its own, with its own system identifier; two processes may have copies of one.
    ///
    /// # Errors
    /// What `initdb` says.
    pub fn make(&self, user: Option<&User>, data_dir: &Path) -> Result<()> {
        static COPIED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let Some(kept_in) = std::env::var_os(KEPT_IN) else { return self.run(user, data_dir) };
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        let kept = Path::new(&kept_in).join(format!("{:016x}", hasher.finish()));
        if !COPIED.lock().unwrap_or_else(PoisonError::into_inner).insert(kept.clone()) {
            return self.run(user, data_dir);
        }
        if !kept.exists() {
            self.keep(user, &kept)?;
        }
        let copy =
            Spec::new("cp").args(["-a", "--reflink=auto"]).arg(kept.join("data")).arg(data_dir);
        run_to_success(&copy, SECONDS_MAX).map(drop)
    }

    /// Several processes may do this at a time: the first to finish counts.
    fn keep(&self, user: Option<&User>, kept: &Path) -> Result<()> {
        let own = kept.with_extension(std::process::id().to_string());
        std::fs::create_dir(&own)?;
        if let Some(user) = user {
            chown(&own, Some(user.uid), Some(user.gid))?;
        }
        self.run(user, &own.join("data"))?;
        match std::fs::rename(&own, kept) {
            Err(_) if kept.exists() => Ok(std::fs::remove_dir_all(&own)?),
            renamed => renamed.context("keeping a fresh cluster"),
        }
    }

    fn run(&self, user: Option<&User>, data_dir: &Path) -> Result<()> {
        let mut spec = Spec::new(self.bin_dir.join("initdb"))
            .args(["--data-checksums", "--encoding=UTF8", "--no-locale", "--no-sync"])
            .args(["--username", self.superuser])
            .args(self.more)
            .arg("--pgdata")
            .arg(data_dir)
            .user(user.cloned())
            .cwd("/")
            .env("LC_ALL", "C");
        let Some(password) = self.password else {
            return run_to_success(&spec, SECONDS_MAX).map(drop);
        };
        let file = data_dir.with_extension("password");
        write_secret(&file, password)?;
        if let Some(user) = user {
            chown(&file, Some(user.uid), Some(user.gid))?;
        }
        spec = spec.arg("--auth=scram-sha-256").arg(format!("--pwfile={}", file.display()));
        let ran = run_to_success(&spec, SECONDS_MAX);
        std::fs::remove_file(&file)?;
        ran.map(drop)
    }
}

/// A random password: one for all of a test run, whose clusters are copies, else a new one.
///
/// # Errors
/// When it cannot be kept.
pub(crate) fn password() -> Result<String> {
    let Some(kept_in) = std::env::var_os(KEPT_IN) else { return Ok(random_password()) };
    let kept = Path::new(&kept_in).join("password");
    let own = kept.with_extension(std::process::id().to_string());
    write_secret(&own, &random_password())?;
    // The first process's counts.
    match std::fs::hard_link(&own, &kept) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
        _ => std::fs::remove_file(&own)?,
    }
    Ok(std::fs::read_to_string(&kept)?)
}

/// Writes what nobody else may read.
fn write_secret(file: &Path, secret: &str) -> Result<()> {
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    Ok(file.write_all(secret.as_bytes())?)
}

pub(crate) fn random_password() -> String {
    random_bytes::<12>().iter().map(|byte| format!("{byte:02x}")).collect()
}
