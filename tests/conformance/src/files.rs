//! Datasets as plain directories.

use offshoot_connector::{DataDir, LogTarget, PlainDir};
use offshoot_os::process::User;
use std::io;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copies a tree with owners and modes; a file that is removed in the meantime is left out.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    let about = std::fs::symlink_metadata(from).unwrap();
    if about.is_dir() {
        std::fs::create_dir(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let name = entry.unwrap().file_name();
            if from.join(&name).symlink_metadata().is_ok() {
                copy_tree(&from.join(&name), &to.join(&name));
            }
        }
        std::fs::set_permissions(to, about.permissions()).unwrap();
    } else if about.is_symlink() {
        symlink(std::fs::read_link(from).unwrap(), to).unwrap();
    } else if about.is_file() {
        match std::fs::copy(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            other => drop(other.unwrap()),
        }
    } else {
        return;
    }
    let _ = lchown(to, Some(about.uid()), Some(about.gid()));
}

/// Gives a directory to the user that servers run as.
pub fn give_to(path: &Path, user: Option<&User>) {
    if let Some(user) = user {
        lchown(path, Some(user.uid), Some(user.gid)).unwrap();
    }
}

/// A data directory that takes log by copying it.
pub(crate) struct PlainTarget {
    pub(crate) files: Arc<dyn DataDir>,
    pub(crate) data: PathBuf,
    pub(crate) log: PathBuf,
}

impl LogTarget for PlainTarget {
    fn files(&self) -> &Arc<dyn DataDir> {
        &self.files
    }

    fn share(&self, log_file: &str, to: &str) -> io::Result<()> {
        let (to, temporary) = (self.data.join(to), self.data.join(format!("{to}.sharing")));
        std::fs::copy(self.log.join(log_file), &temporary)?;
        let owner = std::fs::metadata(&self.data)?;
        lchown(&temporary, Some(owner.uid()), Some(owner.gid()))?;
        std::fs::rename(temporary, to)
    }
}

/// A directory as a connector reaches it.
pub(crate) fn plain(path: &Path) -> Arc<dyn DataDir> {
    Arc::new(PlainDir::new(path))
}
