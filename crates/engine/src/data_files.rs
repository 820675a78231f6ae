//! The data directory of a dataset for the connector, without going through a mount.

use crate::paths::DATA_DIR;
use offshoot_fs::{FileSystem, NewFile, PathError};
use offshoot_postgres::data_dir::DataDir;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// `data/` of a dataset.
pub struct DataFiles {
    files: Arc<FileSystem>,
}

impl DataFiles {
    /// The data directory of this dataset.
    pub fn new(files: Arc<FileSystem>) -> Self {
        DataFiles { files }
    }

    fn path(path: &str) -> PathBuf {
        PathBuf::from(DATA_DIR).join(path)
    }
}

fn os_error(error: PathError) -> io::Error {
    let kind = io::Error::from_raw_os_error(error.errno()).kind();
    io::Error::new(kind, error)
}

impl DataDir for DataFiles {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.read_file(Self::path(path)).map_err(os_error)
    }

    fn write_atomic(&self, path: &str, bytes: &[u8], mode: u32) -> io::Result<()> {
        let owner = self.files.stat(DATA_DIR).map_err(os_error)?;
        let new = NewFile { mode, uid: owner.uid, gid: owner.gid };
        self.files.write_file(Self::path(path), bytes, new).map_err(os_error)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.files.remove_tree(Self::path(path)).map_err(os_error)
    }

    fn exists(&self, path: &str) -> io::Result<bool> {
        self.files.exists(Self::path(path)).map_err(os_error)
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = self.files.list(Self::path(path)).map_err(os_error)?;
        Ok(entries.into_iter().filter_map(|entry| entry.name.into_string().ok()).collect())
    }
}
