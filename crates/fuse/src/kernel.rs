//! Tells the kernel about changes the engine made behind its back.

use fuser::{INodeNo, Notifier};
use offshoot_fs::Watcher;
use offshoot_types::Ino;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The caches the kernel keeps for one mount.
pub(crate) struct KernelCaches {
    notifier: Notifier,
}

impl KernelCaches {
    pub(crate) fn new(notifier: Notifier) -> Self {
        KernelCaches { notifier }
    }
}

impl Watcher for KernelCaches {
    fn entry_changed(&self, parent: Ino, name: &[u8]) {
        // Also drops the parent's attributes. Fails only if the connection is gone.
        if let Err(error) = self.notifier.inval_entry(INodeNo(parent.0), OsStr::from_bytes(name)) {
            tracing::debug!(%error, "the kernel did not take a changed name");
        }
        if let Err(error) = self.notifier.inval_inode(INodeNo(parent.0), 0, 0) {
            tracing::debug!(%error, "the kernel did not take a changed directory");
        }
    }

    fn inode_changed(&self, ino: Ino) {
        if let Err(error) = self.notifier.inval_inode(INodeNo(ino.0), 0, 0) {
            tracing::debug!(%error, "the kernel did not take a changed file");
        }
    }
}
