//! Where things are: the pool directory's parts, mount points, runtime directories of servers.

use crate::ground::pool_dir;
use offshoot_os::process::User;
use offshoot_types::{DatasetId, ErrorKind, Failure};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest runtime base that leaves room for a socket's name within the 107 bytes of `sun_path`.
const RUNTIME_BASE_MAX: usize = 60;

/// The catalog's file in the pool.
pub const CATALOG: &str = "catalog.db";

/// Where runtime directories are if their pool's path is too long.
const RUNTIMES: &str = "/tmp";
/// A keeper that is starting does not listen yet; one with an older socket should.
const DESERTED_AFTER: Duration = Duration::from_secs(60);

/// The places of one pool.
#[derive(Debug, Clone)]
pub struct Paths {
    pool: PathBuf,
    runtime: PathBuf,
}

impl Paths {
    /// Prepares the directories below a pool directory, which is created if missing. One that is there keeps its mode
    /// and its owner.
    ///
    /// # Errors
    /// Those of [`pool_dir::check`], before anything is changed; `HostUnprepared` naming the directory that cannot be
    /// used.
    pub fn prepare(pool: &Path) -> Result<Paths, Failure> {
        pool_dir::check(pool)?;
        // Servers run as another user when we are root: they must be able to traverse it, not to
        // list it.
        make_all(pool, 0o711).map_err(|error| unusable(pool, &error))?;
        let paths = Paths::of(pool)?;
        for dir in [paths.pool.join("run"), paths.mounts()] {
            make_dir(&dir, 0o711)?;
        }
        make_dir(&paths.logs(), 0o700)?;
        Ok(paths)
    }

    /// The places of a pool that is there. Makes nothing.
    ///
    /// # Errors
    /// `HostUnprepared` if it cannot be reached.
    pub fn of(pool: &Path) -> Result<Paths, Failure> {
        let pool = pool.canonicalize().map_err(|error| unusable(pool, &error))?;
        Ok(Paths { runtime: runtime_base(&pool), pool })
    }

    /// Whether servers reach what is in the pool as this user.
    ///
    /// # Errors
    /// `HostUnprepared` with the command that opens the way: the engine does not change what it did not make.
    pub fn check_way(&self, user: &User) -> Result<(), Failure> {
        let found = std::fs::metadata(&self.pool).map_err(|error| unusable(&self.pool, &error))?;
        // Where access lists are in use, the group's bits show the most that any of them allows.
        if found.uid() == user.uid || found.permissions().mode() & 0o011 != 0 {
            return Ok(());
        }
        let (pool, name) = (self.pool.display(), &user.name);
        Err(Failure::new(
            ErrorKind::HostUnprepared,
            format!("servers run as the user '{name}', who cannot pass through {pool}"),
            format!("chmod o+x {pool}"),
        ))
    }

    /// The first directory on the way to the pool that others than its owner and group cannot pass through.
    pub fn closed_to_others(&self) -> Option<PathBuf> {
        let closed = |dir: &&Path| {
            std::fs::metadata(dir).map_or(true, |found| found.permissions().mode() & 0o001 == 0)
        };
        self.pool.ancestors().filter(closed).last().map(Path::to_owned)
    }

    /// Makes the directory of runtime directories. It may be outside the pool: call this when the
    /// pool is ours, so that a refused engine leaves nothing there.
    ///
    /// # Errors
    /// `HostUnprepared` when it cannot be used.
    pub fn make_runtime(&self) -> Result<(), Failure> {
        make_dir(&self.runtime, 0o711)?;
        let owner = std::fs::symlink_metadata(&self.runtime);
        let owner = owner.map_err(|error| unusable(&self.runtime, &error))?;
        if owner.uid() == User::own_uid() {
            return Ok(());
        }
        Err(Failure::new(
            ErrorKind::HostUnprepared,
            format!("{} belongs to another user", self.runtime.display()),
            "remove it, or use a pool directory with a shorter path",
        ))
    }

    /// Removes that directory again, except what a remaining server has in it.
    pub fn remove_runtime(&self) {
        remove_empty(&self.runtime);
    }

    /// Removes what other pools left in `/tmp` if their keeper was killed and no engine has opened
    /// them since: they may be gone.
    pub fn remove_deserted_runtimes(&self) {
        remove_deserted(Path::new(RUNTIMES), &self.runtime, DESERTED_AFTER);
    }

    /// A number derived from the pool's path, so that engines on one host do not collide.
    pub fn pool_number(&self) -> u64 {
        path_number(&self.pool)
    }

    /// The pool directory, absolute.
    pub fn pool(&self) -> &Path {
        &self.pool
    }

    /// The catalog's file.
    pub fn catalog(&self) -> PathBuf {
        self.pool.join(CATALOG)
    }

    /// The directory of all mount points.
    pub fn mounts(&self) -> PathBuf {
        self.pool.join("run/mnt")
    }

    /// The directory of what servers load.
    pub fn libraries(&self) -> PathBuf {
        self.pool.join("run/lib")
    }

    /// The directory of the servers' logs.
    pub fn logs(&self) -> PathBuf {
        self.pool.join("run/log")
    }

    /// The log of a server.
    pub fn log(&self, key: &str) -> PathBuf {
        self.logs().join(format!("{key}.log"))
    }

    /// Where a dataset is mounted.
    pub fn mount(&self, dataset: DatasetId) -> PathBuf {
        self.mounts().join(dataset.0.to_string())
    }

    /// The directory of all servers' runtime directories.
    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// The runtime directory of one server.
    pub fn server(&self, key: &str) -> PathBuf {
        self.runtime.join(key)
    }
}

/// Where the keeper of a pool answers, in its runtime directory.
pub fn keeper_socket(runtime: &Path) -> PathBuf {
    runtime.join("keeper")
}

/// `run/pg` in the pool if sockets fit there, otherwise the pool's own directory in `/tmp`.
fn runtime_base(pool: &Path) -> PathBuf {
    let inside = pool.join("run/pg");
    if inside.as_os_str().len() <= RUNTIME_BASE_MAX {
        return inside;
    }
    Path::new(RUNTIMES).join(format!("{}{:016x}", runtime_prefix(), path_number(pool)))
}

/// How the names of this user's runtime directories begin.
fn runtime_prefix() -> String {
    format!("offshoot-{}-", User::own_uid())
}

/// Removes this user's runtime directories in `dir`, except `own`, in which a keeper's socket is older
/// than `age` and nobody listens.
fn remove_deserted(dir: &Path, own: &Path, age: Duration) {
    let prefix = runtime_prefix();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let ours =
            entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == User::own_uid());
        let named = entry.file_name().to_string_lossy().starts_with(&prefix);
        if !ours || !named || entry.path() == own {
            continue;
        }
        let socket = keeper_socket(&entry.path());
        let made = std::fs::symlink_metadata(&socket).and_then(|found| found.modified());
        let old = made.is_ok_and(|made| made.elapsed().is_ok_and(|since| since >= age));
        if old && offshoot_keeper::remove_deserted(&socket) {
            remove_empty(&entry.path());
        }
    }
}

/// A number that stays the same for a path and differs from most others' (FNV-1a).
fn path_number(path: &Path) -> u64 {
    path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3_u64)
    })
}

/// Makes a directory and those above it, all of this mode, whatever the umask. Those that are there stay as they are.
fn make_all(path: &Path, mode: u32) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_all(parent, mode)?;
    }
    std::fs::DirBuilder::new().mode(mode).create(path)?;
    add_mode(path, mode)
}

/// Makes a directory of the engine's own, or restores its mode.
fn make_dir(path: &Path, mode: u32) -> Result<(), Failure> {
    let made = match std::fs::DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    made.and_then(|()| add_mode(path, mode)).map_err(|error| unusable(path, &error))
}

/// Restores what is missing of the mode of a directory that is ours. Whoever may write beside it, as in `/tmp`, could
/// have put a link to another one in its place: it is not followed.
fn add_mode(path: &Path, mode: u32) -> io::Result<()> {
    let dir = offshoot_os::files::open_directory(path)?;
    let found = dir.metadata()?;
    let present = found.permissions().mode();
    if mode & !present != 0 && found.uid() == User::own_uid() {
        dir.set_permissions(std::fs::Permissions::from_mode(present | mode))?;
    }
    Ok(())
}

/// Removes a directory and those below it that hold no file.
fn remove_empty(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // Refused, as it should be, if something is left in it.
    let _ = std::fs::remove_dir(dir);
}

fn unusable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        format!("the directory {} cannot be used: {error}", path.display()),
        "give --pool a directory that this user can write to",
    )
    .or_pool_full(error)
}

#[cfg(test)]
mod tests;
