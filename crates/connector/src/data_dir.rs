//! The files of a directory, wherever it is: a data directory, received log, an index.
//!
//! The engine works on files of datasets that it serves itself; through its own mount it would wait
//! for itself. So everything here that reads or writes files which may be in a dataset takes a
//! [`DataDir`]; only child processes get the path of a mount.

use offshoot_os::files;
use std::io;
use std::path::{Path, PathBuf};

/// What [`DataDir::read`] reads at most: many times what any file has that is read so.
pub const READ_BYTES_MAX: u64 = 16 << 20;

/// An open file, read by position. It stays readable when its name changes or goes.
pub trait DataFile: Send + Sync {
    /// Its present length in bytes.
    ///
    /// # Errors
    /// File system errors.
    fn size(&self) -> io::Result<u64>;

    /// Reads into `buffer`; how many bytes, 0 only at the end of the file.
    ///
    /// # Errors
    /// File system errors.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// An open file that is written by position. Nothing of it is durable before [`WritableFile::sync`].
pub trait WritableFile: DataFile {
    /// Writes all of `data`.
    ///
    /// # Errors
    /// File system errors.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Cuts it, or adds zeros.
    ///
    /// # Errors
    /// File system errors.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Makes what was written to it durable, and its name. Only then may a connector that receives log
    /// itself confirm it to its source.
    ///
    /// # Errors
    /// File system errors.
    fn sync(&self) -> io::Result<()>;
}

/// Access to the files of one directory. Paths are relative to it, with `/`, without `..`; the
/// empty path is the directory itself.
pub trait DataDir: Send + Sync {
    /// The whole content of a file of at most [`READ_BYTES_MAX`].
    ///
    /// # Errors
    /// As [`DataDir::read_up_to`].
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.read_up_to(path, READ_BYTES_MAX)
    }

    /// The whole content of a plain file of at most so many bytes. Whoever may write to a VDB's data directory chooses
    /// the kind and the size of each file in it: a link is not followed, a pipe not waited for, and of a longer file
    /// nothing is read.
    ///
    /// # Errors
    /// `NotFound` when there is none, `FileTooLarge` for a longer one, others for what is not a plain file.
    fn read_up_to(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>>;

    /// Replaces or creates a file so that a reader sees the old content or the new, and with the
    /// owner of the data directory (the server must be able to read and rewrite it).
    ///
    /// # Errors
    /// File system errors.
    fn write_atomic(&self, path: &str, bytes: &[u8], mode: u32) -> io::Result<()>;

    /// Removes a file; it is no error if there is none.
    ///
    /// # Errors
    /// File system errors.
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Whether there is a file or directory of that name.
    ///
    /// # Errors
    /// File system errors, except `NotFound`.
    fn exists(&self, path: &str) -> io::Result<bool>;

    /// The names in a directory, sorted, without `.` and `..`.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;

    /// Opens a plain file to read. No link is followed, no pipe waited for.
    ///
    /// # Errors
    /// `NotFound` when there is none, others for what is not a plain file.
    fn open(&self, path: &str) -> io::Result<Box<dyn DataFile>>;

    /// Removes a file, a symbolic link or a directory with everything below; it is no error if
    /// there is none.
    ///
    /// # Errors
    /// File system errors.
    fn remove_all(&self, path: &str) -> io::Result<()>;

    /// Makes a directory, with the owner of this one, under a name that is not taken.
    ///
    /// # Errors
    /// File system errors.
    fn create_dir(&self, path: &str, mode: u32) -> io::Result<()>;

    /// Makes a file, with the owner of the directory, under a name that is not taken, to be written
    /// from the beginning. Nothing in it is durable.
    ///
    /// # Errors
    /// File system errors.
    fn create(&self, path: &str, mode: u32) -> io::Result<Box<dyn io::Write>>;

    /// Opens a file to write anywhere in it; creates it with the owner of this directory if there is
    /// none.
    ///
    /// # Errors
    /// File system errors.
    fn open_writable(&self, path: &str, mode: u32) -> io::Result<Box<dyn WritableFile>>;

    /// Makes a symbolic link, with the owner of the directory, under a name that is not taken.
    ///
    /// # Errors
    /// File system errors.
    fn link(&self, path: &str, target: &str) -> io::Result<()>;
}

/// Fills `buffer` from `offset` on, as far as the file goes; returns how many bytes.
///
/// # Errors
/// File system errors.
pub fn read_full(file: &dyn DataFile, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset + filled as u64, rest) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A plain directory of this host.
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

    /// Gives a new file to the owner of the root.
    fn give(&self, path: &Path) -> io::Result<()> {
        use std::os::unix::fs::{MetadataExt, lchown};
        let (owner, made) = (std::fs::metadata(&self.root)?, std::fs::symlink_metadata(path)?);
        if (made.uid(), made.gid()) != (owner.uid(), owner.gid()) {
            lchown(path, Some(owner.uid()), Some(owner.gid()))?;
        }
        Ok(())
    }
}

impl DataDir for PlainDir {
    fn read_up_to(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        files::read_beneath(&self.root, path, bytes_max)
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
            // Only root can give files away; otherwise the file is already ours, as is the root.
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
        let directory = self.root.join(path);
        // Somebody else may have put a link to another directory there.
        if !path.is_empty() && std::fs::symlink_metadata(&directory)?.is_symlink() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        for entry in std::fs::read_dir(directory)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn DataFile>> {
        let file = files::open_beneath(&self.root, path)?;
        Ok(Box::new(PlainFile { file, directory: None }))
    }

    fn remove_all(&self, path: &str) -> io::Result<()> {
        let path = self.root.join(path);
        let removed = match std::fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(&path),
            Ok(_) => std::fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    fn create_dir(&self, path: &str, mode: u32) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let path = self.root.join(path);
        std::fs::DirBuilder::new().mode(mode).create(&path)?;
        self.give(&path)
    }

    fn create(&self, path: &str, mode: u32) -> io::Result<Box<dyn io::Write>> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.root.join(path);
        let file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        self.give(&path)?;
        Ok(Box::new(file))
    }

    fn open_writable(&self, path: &str, mode: u32) -> io::Result<Box<dyn WritableFile>> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = self.root.join(path);
        let mut options = std::fs::OpenOptions::new();
        let file =
            options.read(true).write(true).create(true).truncate(false).mode(mode).open(&path)?;
        self.give(&path)?;
        let directory = path.parent().map_or_else(|| self.root.clone(), Path::to_path_buf);
        Ok(Box::new(PlainFile { file, directory: Some(directory) }))
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        let path = self.root.join(path);
        std::os::unix::fs::symlink(target, &path)?;
        self.give(&path)
    }
}

struct PlainFile {
    file: std::fs::File,
    /// Where its name is, of a file that is written.
    directory: Option<PathBuf>,
}

impl DataFile for PlainFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buffer, offset)
    }
}

impl WritableFile for PlainFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, data, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        match &self.directory {
            Some(directory) => std::fs::File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    }
}
