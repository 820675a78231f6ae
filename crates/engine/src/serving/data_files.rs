//! Directories of a dataset for the connector, without going through a mount.

use offshoot_connector::{DataDir, DataFile, LogTarget, WritableFile};
use offshoot_fs::{File, FileSystem, NewFile, PathError};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// One directory of a dataset.
pub struct DataFiles {
    files: Arc<FileSystem>,
    directory: &'static str,
    /// Whether each file is durable as soon as it is written.
    durable: bool,
}

impl DataFiles {
    /// A directory of this dataset.
    pub fn at(files: Arc<FileSystem>, directory: &'static str) -> Self {
        DataFiles { files, directory, durable: true }
    }

    /// The same of a copy that nobody has yet: a crash throws it away. What makes it somebody's makes it durable first, as a
    /// whole; one file of it made durable would take all with it that its server has written.
    pub fn of_copy(files: Arc<FileSystem>, directory: &'static str) -> Self {
        DataFiles { files, directory, durable: false }
    }

    fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(self.directory).join(path)
    }

    /// The blocks of a file that may differ from those of the same file in `other`; `None`: there is
    /// none.
    pub fn differing(&self, path: &str, other: &DataFiles) -> io::Result<Option<Vec<Range<u64>>>> {
        self.files.differing_blocks(self.path(path), &other.files).map_err(os_error)
    }

    /// Permissions for what is made, with the owner of the directory.
    fn new_file(&self, mode: u32) -> io::Result<NewFile> {
        let owner = self.files.stat(self.directory).map_err(os_error)?;
        Ok(NewFile { mode, uid: owner.uid, gid: owner.gid })
    }
}

fn os_error(error: PathError) -> io::Error {
    let kind = io::Error::from_raw_os_error(error.errno()).kind();
    io::Error::new(kind, error)
}

fn file_error(error: offshoot_dataset::Error) -> io::Error {
    let kind = io::Error::from_raw_os_error(error.errno()).kind();
    io::Error::new(kind, error)
}

struct OpenFile(File);

impl DataFile for OpenFile {
    fn size(&self) -> io::Result<u64> {
        self.0.len().map_err(file_error)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, buffer).map_err(file_error)
    }
}

impl WritableFile for OpenFile {
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, data).map(drop).map_err(file_error)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size).map_err(file_error)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync().map_err(file_error)
    }
}

/// A new file, written from the beginning.
struct NewContent {
    file: File,
    end: u64,
}

impl io::Write for NewContent {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.file.write_at(self.end, data).map_err(file_error)?;
        self.end += data.len() as u64;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DataDir for DataFiles {
    fn read_up_to(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.files.read_file(self.path(path), bytes_max).map_err(|error| match error.source {
            offshoot_dataset::Error::FileTooBig => offshoot_os::files::too_large(path, bytes_max),
            _ => os_error(error),
        })
    }

    fn write_atomic(&self, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
        let (path, new) = (self.path(path), self.new_file(mode)?);
        let written = match self.durable {
            true => self.files.write_file(path, bytes, new),
            false => self.files.put_file(path, bytes, new),
        };
        written.map_err(os_error)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.remove_tree(self.path(path)).map_err(os_error)
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.files.exists(self.path(path)).map_err(os_error)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = self.files.list(self.path(path)).map_err(os_error)?;
        Ok(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn DataFile>> {
        Ok(Box::new(OpenFile(self.files.open_file(self.path(path)).map_err(os_error)?)))
    }

    fn remove_all(&self, path: &str) -> io::Result<()> {
        self.remove(path)
    }

    fn create_dir(&self, path: &str, mode: u32) -> io::Result<()> {
        self.files.create_dirs(self.path(path), self.new_file(mode)?).map_err(os_error)
    }

    fn create(&self, path: &str, mode: u32) -> io::Result<Box<dyn io::Write>> {
        let new = self.new_file(mode)?;
        let file = self.files.create_file(self.path(path), new).map_err(os_error)?;
        Ok(Box::new(NewContent { file, end: 0 }))
    }

    fn open_writable(&self, path: &str, mode: u32) -> io::Result<Box<dyn WritableFile>> {
        let file = if self.exists(path)? {
            self.files.open_file(self.path(path))
        } else {
            self.files.create_file(self.path(path), self.new_file(mode)?)
        };
        Ok(Box::new(OpenFile(file.map_err(os_error)?)))
    }

    fn link(&self, path: &str, target: &str) -> io::Result<()> {
        let new = self.new_file(0o777)?;
        self.files.create_symlink(self.path(path), target, new).map_err(os_error)
    }
}

/// A data directory that takes files of received log by sharing their blocks.
pub struct LogReceiver {
    data: Arc<DataFiles>,
    /// The same for the connector.
    files: Arc<dyn DataDir>,
    log: DataFiles,
    /// Who its servers run as: user and group. The received files belong to the engine's user.
    owner: (u32, u32),
}

impl LogReceiver {
    /// A data directory and a directory of received log.
    pub fn new(data: DataFiles, log: DataFiles, owner: (u32, u32)) -> LogReceiver {
        let data = Arc::new(data);
        LogReceiver { files: data.clone(), data, log, owner }
    }
}

impl LogTarget for LogReceiver {
    fn files(&self) -> &Arc<dyn DataDir> {
        &self.files
    }

    fn share(&self, log_file: &str, to: &str) -> io::Result<()> {
        let private = NewFile::private(self.owner.0, self.owner.1);
        let from = self.log.path(log_file);
        let shared =
            self.data.files.share_file_as(&self.log.files, from, self.data.path(to), private);
        shared.map(drop).map_err(os_error)
    }
}
