//! Tells adapters about changes that did not come through them.

use offshoot_types::Ino;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// Is notified of changes that the engine made by path. Called by the changing thread after the
/// change, with no lock of this crate held.
pub trait Watcher: Send + Sync {
    /// A name appeared, vanished or now names another inode. If a directory vanished, so did all
    /// names below it.
    fn entry_changed(&self, parent: Ino, name: &[u8]);
    /// Attributes or contents of an inode changed.
    fn inode_changed(&self, ino: Ino);
}

type Registered = Mutex<Vec<Arc<dyn Watcher>>>;

/// The watchers of one file system.
#[derive(Default)]
pub(crate) struct Watchers {
    registered: Arc<Registered>,
}

impl Watchers {
    pub(crate) fn add(&self, watcher: Arc<dyn Watcher>) -> Watch {
        self.registered.lock().push(watcher.clone());
        Watch { watcher, registered: Arc::downgrade(&self.registered) }
    }

    pub(crate) fn entry_changed(&self, parent: Ino, name: &[u8]) {
        for watcher in self.snapshot() {
            watcher.entry_changed(parent, name);
        }
    }

    pub(crate) fn inode_changed(&self, ino: Ino) {
        for watcher in self.snapshot() {
            watcher.inode_changed(ino);
        }
    }

    fn snapshot(&self) -> Vec<Arc<dyn Watcher>> {
        self.registered.lock().clone()
    }
}

/// Keeps a watcher registered until dropped.
#[must_use = "the watcher is removed when this is dropped"]
pub struct Watch {
    watcher: Arc<dyn Watcher>,
    registered: Weak<Registered>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(registered) = self.registered.upgrade() {
            registered.lock().retain(|other| !Arc::ptr_eq(other, &self.watcher));
        }
    }
}
