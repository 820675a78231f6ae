//! Small files of a data directory, wherever it lives.
//!
//! The engine edits files of datasets that it serves itself; going through its own mount would let
//! it wait for itself. So everything here that reads or writes configuration takes a [`DataDir`].

use std::io;
use std::path::{Path, PathBuf};

/// Access to the files of one data directory. Paths are relative to it, with `/`, without `..`.
pub trait DataDir: Send + Sync {
    /// The whole content of a small file.
    ///
    /// # Errors
    /// `NotFound` when there is none.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Replaces or creates a file so that a reader sees the old content or the new, and with the
    /// owner of the data directory (the server must be able to read and rewrite it).
    ///
    /// # Errors
    /// Whatever the file system says.
    fn write_atomic(&self, path: &str, bytes: &[u8], mode: u32) -> io::Result<()>;

    /// Removes a file; none being there is no error.
    ///
    /// # Errors
    /// Whatever the file system says.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Whether there is a file or directory of that name.
    ///
    /// # Errors
    /// Whatever the file system says, but not `NotFound`.
    fn exists(&self, path: &str) -> io::Result<bool>;

    /// The names in a directory, sorted, without `.` and `..`.
    ///
    /// # Errors
    /// `NotFound` when there is no such directory.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
}

/// A data directory that is a plain directory of this host.
#[derive(Debug, Clone)]
pub struct PlainDir {
    root: PathBuf,
}

impl PlainDir {
    /// The directory at `root`, which must exist. Files written get the owner of `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        PlainDir { root: root.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl DataDir for PlainDir {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.root.join(path))
    }

    fn write_atomic(&self, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
        use std::io::Write;
        use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
        let target = self.root.join(path);
        let temporary = self.root.join(format!("{path}.offshoot-new"));
        let owner = std::fs::metadata(&self.root)?;
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(mode).open(&temporary)?;
        let written = (|| {
            // Only root can give files away; otherwise the file is ours already, as is the root.
            if file.metadata()?.uid() != owner.uid() || file.metadata()?.gid() != owner.gid() {
                fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
            }
            file.set_permissions(std::fs::Permissions::from_mode(mode))?;
            file.write_all(bytes)?;
            file.sync_all()?;
            std::fs::rename(&temporary, &target)
        })();
        if written.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        written
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match std::fs::remove_file(self.root.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        match std::fs::symlink_metadata(self.root.join(path)) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.root.join(path))? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}
