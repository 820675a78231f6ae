//! The PostgreSQL installations of this host: which majors can be linked and run here.

use offshoot_launcher::{Launcher, ThisHost};
use offshoot_os::process::{Spec, User, run};
use offshoot_types::{ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The user of a host that servers run as.
pub const USER: &str = "postgres";

/// The oldest major version that is supported.
pub const MAJOR_MIN: u32 = 13;
/// The newest major version that is supported.
pub const MAJOR_MAX: u32 = 18;

/// The programs that links and VDBs need.
const PROGRAMS: [&str; 5] =
    ["postgres", "pg_basebackup", "pg_receivewal", "pg_controldata", "psql"];

/// How long a program may take to report its version.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// One directory of PostgreSQL server programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Where `postgres`, `pg_basebackup` and the other programs are.
    pub bin_dir: PathBuf,
    /// The major version, as `15`.
    pub major: u32,
    /// The version as the server prints it, as `15.14` or `18beta1`.
    pub version: String,
}

impl Installation {
    /// Looks at one directory of programs.
    ///
    /// # Errors
    /// `HostUnprepared` when a program is missing, cannot be run or is of an unsupported version.
    pub fn probe(bin_dir: &Path) -> Result<Self, Failure> {
        for program in PROGRAMS {
            let path = bin_dir.join(program);
            if !path.is_file() {
                return Err(unprepared(
                    format!("{} does not exist", path.display()),
                    "install the server and client packages of PostgreSQL completely",
                ));
            }
        }
        let (major, version) = version_of(&bin_dir.join("postgres"))?;
        if !(MAJOR_MIN..=MAJOR_MAX).contains(&major) {
            return Err(unprepared(
                format!("PostgreSQL {version} in {} is not supported", bin_dir.display()),
                format!("use one of the versions {MAJOR_MIN} to {MAJOR_MAX}"),
            ));
        }
        Ok(Installation { bin_dir: bin_dir.to_owned(), major, version })
    }

    /// The path of one of its programs, as `pg_basebackup`.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin_dir.join(name)
    }
}

/// What a file is: another one at its path differs in this.
type Identity = (u64, u64, i64, i64, u64);

/// Major version, and the version as it is printed.
type Version = (u32, String);

/// Versions by program: asking one takes a child process, and every start of a server wants to know.
static VERSIONS: Mutex<BTreeMap<PathBuf, (Identity, Version)>> = Mutex::new(BTreeMap::new());

/// The version that a server's program prints.
fn version_of(program: &Path) -> Result<Version, Failure> {
    let identity = std::fs::metadata(program)
        .map(|file| (file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.size()))
        .map_err(|error| unprepared(error.to_string(), "reinstall PostgreSQL"))?;
    if let Some((known, version)) = VERSIONS.lock().get(program)
        && *known == identity
    {
        return Ok(version.clone());
    }
    let spec = Spec::new(program).arg("--version").env("LC_ALL", "C");
    let output = run(&spec, PROBE_TIMEOUT)
        .map_err(|error| unprepared(error.to_string(), "reinstall PostgreSQL"))?;
    let text = output.stdout_text();
    let version = parse_version(&text).ok_or_else(|| {
        let printed = text.trim();
        let program = spec.name();
        unprepared(
            format!("{program} does not print a version: '{printed}'"),
            "reinstall PostgreSQL",
        )
    })?;
    VERSIONS.lock().insert(program.to_owned(), (identity, version.clone()));
    Ok(version)
}

/// The programs of an installation together with the user that they run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// Where the programs are.
    pub installation: Installation,
    /// The user of child processes; `None` runs them as this process.
    pub user: Option<User>,
}

impl Tools {
    /// Tools that run as `postgres` when this process is root, otherwise as this process.
    ///
    /// # Errors
    /// `HostUnprepared` when this process is root and the host has no user `postgres`.
    pub fn new(installation: Installation) -> Result<Self, Failure> {
        Ok(Tools { installation, user: ThisHost::with_user(USER)?.user().cloned() })
    }

    /// A child process of one of the programs: the right user, English messages, and nothing
    /// inherited but `PATH`, so that no `PG…` variable of the engine changes what it does.
    pub fn spec(&self, program: &str) -> Spec {
        Spec::new(self.installation.program(program))
            .clear_env()
            .env("LC_ALL", "C")
            .env("HOME", "/nonexistent")
            .cwd("/")
            .user(self.user.clone())
    }

    /// As [`Tools::spec`], for a program that logs in to the source. It runs as this process's own user:
    /// a superuser of a VDB can read the environment of every process of the servers' user, and MUST NOT
    /// find production's password there.
    pub fn source_spec(&self, program: &str) -> Spec {
        self.spec(program).user(None)
    }

    /// Creates a directory (mode 0700) that the user of the tools owns, or takes over an existing
    /// one. Its parent must exist.
    ///
    /// # Errors
    /// `HostUnprepared` when it cannot be created or given to the user.
    pub fn own_directory(&self, path: &Path) -> Result<(), Failure> {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let failed = |error: std::io::Error| {
            let message = format!("cannot prepare {}: {error}", path.display());
            unprepared(message, "").or_pool_full(&error)
        };
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            result => result.map_err(failed)?,
        }
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if let Some(user) = &self.user
            && (metadata.uid(), metadata.gid()) != (user.uid, user.gid)
        {
            std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid)).map_err(failed)?;
        }
        if metadata.permissions().mode() & 0o777 != 0o700 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
                .map_err(failed)?;
        }
        Ok(())
    }
}

/// Libraries and shared files are beside the directory of programs; a Python wheel has more libraries
/// beside its package, in a directory named `PACKAGE.libs`.
pub(crate) fn program_dirs(bin_dir: &Path) -> Vec<PathBuf> {
    let Some(prefix) = bin_dir.parent() else { return Vec::new() };
    let libraries = prefix.parent().map(|package| package.with_added_extension("libs"));
    let libraries = libraries.filter(|dir| dir.is_dir());
    std::iter::once(prefix.to_owned()).chain(libraries).collect()
}

/// All usable installations of this host, newest major first: those in `configured` directories, in
/// `/usr/lib/postgresql/*/bin`, `/usr/pgsql-*/bin` and in `PATH`. If several have the same major
/// version, the first in that order counts.
pub fn find_installations(configured: &[PathBuf]) -> Vec<Installation> {
    let mut candidates = configured.to_vec();
    candidates.extend(versioned_directories(Path::new("/usr/lib/postgresql"), ""));
    candidates.extend(versioned_directories(Path::new("/usr"), "pgsql-"));
    if let Some(path) = std::env::var_os("PATH") {
        candidates.extend(std::env::split_paths(&path));
    }
    let mut found: Vec<Installation> = Vec::new();
    for candidate in candidates {
        match Installation::probe(&candidate) {
            Ok(installation) => {
                if found.iter().all(|known| known.major != installation.major) {
                    found.push(installation);
                }
            }
            Err(failure) if configured.contains(&candidate) => {
                tracing::warn!(directory = %candidate.display(), "not used: {failure}");
            }
            Err(_) => {}
        }
    }
    found.sort_by_key(|installation| std::cmp::Reverse(installation.major));
    found
}

/// The installation of one major version.
///
/// # Errors
/// `HostUnprepared` that names the package to install.
pub fn choose_installation(found: &[Installation], major: u32) -> Result<&Installation, Failure> {
    found.iter().find(|installation| installation.major == major).ok_or_else(|| {
        let known: Vec<String> = found.iter().map(|one| one.version.clone()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        unprepared(
            format!("PostgreSQL {major} is not installed on this host (found: {known})"),
            format!(
                "install it, for example with: apt-get install postgresql-{major}; \
                 or name its directory of programs in the engine's configuration"
            ),
        )
    })
}

/// `DIR/PREFIX<number>/bin` of every such directory.
fn versioned_directories(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            let version = name.to_str().and_then(|name| name.strip_prefix(prefix));
            version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
        })
        .map(|entry| entry.path().join("bin"))
        .collect();
    found.sort();
    found
}

/// Parses `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`.
fn parse_version(text: &str) -> Option<(u32, String)> {
    let version = text.split("(PostgreSQL)").nth(1)?.split_whitespace().next()?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    Some((digits.parse().ok()?, version.to_owned()))
}

fn unprepared(message: impl Into<String>, hint: impl Into<String>) -> Failure {
    Failure::new(ErrorKind::HostUnprepared, message, hint)
}

#[cfg(test)]
mod tests;
