//! A dataset as a POSIX file system, by inode number.

use crate::watch::{Watch, Watchers};
use crate::{Attr, Dataset, DirEntry, Error, FileKind, NewInode, NewKind, SetAttr, Watcher};
use offshoot_types::Ino;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const SET_UID: u32 = 0o4000;
const SET_GID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o0010;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The user's primary group.
    pub gid: u32,
}

/// The files of one dataset. Make one per dataset and share it: watchers hear only of changes made
/// through the same value.
pub struct FileSystem {
    dataset: Arc<Dataset>,
    pub(crate) watchers: Watchers,
    /// Makes names of temporary files distinct.
    pub(crate) temporary: AtomicU64,
}

impl FileSystem {
    /// The files of `dataset`.
    pub fn new(dataset: Arc<Dataset>) -> Arc<FileSystem> {
        Arc::new(FileSystem {
            dataset,
            watchers: Watchers::default(),
            temporary: AtomicU64::new(0),
        })
    }

    /// The dataset, for operations that need nothing added. Changes made there directly are not
    /// announced to watchers: that is right for an adapter whose client asked for the change.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    /// Lets a watcher hear of changes by path until the returned value is dropped.
    pub fn watch(&self, watcher: Arc<dyn Watcher>) -> Watch {
        self.watchers.add(watcher)
    }

    /// Finds a name; `.` and `..` work.
    ///
    /// # Errors
    /// As [`Dataset::lookup`].
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr, Error> {
        match name {
            b"." => self.dataset.getattr(parent),
            b".." => self.dataset.getattr(self.dataset.parent(parent)?),
            _ => self.dataset.lookup(parent, name),
        }
    }

    /// Makes an inode that belongs to the caller. In a set-gid directory it gets the directory's
    /// group, and a directory made there is set-gid too.
    ///
    /// # Errors
    /// As [`Dataset::create`].
    pub fn create(
        &self,
        caller: Caller,
        parent: Ino,
        name: &[u8],
        kind: NewKind,
        mode: u32,
        rdev: u32,
    ) -> Result<Attr, Error> {
        let mut new = NewInode { kind, mode, uid: caller.uid, gid: caller.gid, rdev };
        let directory = self.dataset.getattr(parent)?;
        if directory.mode & SET_GID != 0 {
            new.gid = directory.gid;
            if new.kind == NewKind::Directory {
                new.mode |= SET_GID;
            }
        }
        self.dataset.create(parent, name, &new)
    }

    /// Changes attributes as the caller asked. A new owner or group, and a new length given by
    /// anybody but root, drop the set-uid bit and the set-gid bit of group-executable files.
    ///
    /// # Errors
    /// As [`Dataset::setattr`].
    pub fn set_attr(&self, caller: Caller, ino: Ino, change: &SetAttr) -> Result<Attr, Error> {
        let mut change = *change;
        let owner = change.uid.is_some() || change.gid.is_some();
        if change.mode.is_none() && (owner || (change.size.is_some() && caller.uid != 0)) {
            let attr = self.dataset.getattr(ino)?;
            change.mode = without_privileges(&attr);
        }
        self.dataset.setattr(ino, &change)
    }

    /// Writes. `drop_privileges` says that the writer may not keep set-uid and set-gid bits.
    ///
    /// # Errors
    /// As [`Dataset::write`].
    pub fn write(
        &self,
        ino: Ino,
        offset: u64,
        data: &[u8],
        drop_privileges: bool,
    ) -> Result<(), Error> {
        if drop_privileges {
            let mode = without_privileges(&self.dataset.getattr(ino)?);
            if mode.is_some() {
                self.dataset.setattr(ino, &SetAttr { mode, ..SetAttr::default() })?;
            }
        }
        self.dataset.write(ino, offset, data)
    }

    /// Up to `max` names behind `cookie` (0 = from the start), `.` and `..` first. Empty at the
    /// end.
    ///
    /// # Errors
    /// As [`Dataset::readdir`].
    pub fn read_directory(
        &self,
        directory: Ino,
        cookie: u64,
        max: usize,
    ) -> Result<Vec<DirEntry>, Error> {
        if cookie >= 2 {
            let from = if cookie == 2 { 0 } else { cookie };
            return self.dataset.readdir(directory, from, max);
        }
        let dot = |name: &[u8], ino, cookie| DirEntry {
            name: name.to_vec(),
            ino,
            kind: FileKind::Directory,
            cookie,
        };
        let mut entries = Vec::new();
        if cookie == 0 {
            entries.push(dot(b".", directory, 1));
        }
        entries.push(dot(b"..", self.dataset.parent(directory)?, 2));
        if max > entries.len() {
            entries.extend(self.dataset.readdir(directory, 0, max - entries.len())?);
        }
        Ok(entries)
    }

    /// Makes everything done so far durable.
    ///
    /// # Errors
    /// As [`Dataset::sync`].
    pub fn sync(&self) -> Result<(), Error> {
        self.dataset.sync()
    }
}

/// The mode that is left when privileges are dropped; `None` where there are none to drop.
fn without_privileges(attr: &Attr) -> Option<u32> {
    if attr.kind == FileKind::Directory {
        return None;
    }
    let mut mode = attr.mode & !SET_UID;
    // Without the execute bit, set-gid meant mandatory locking, no privilege (inode(7)).
    if mode & GROUP_EXECUTE != 0 {
        mode &= !SET_GID;
    }
    (mode != attr.mode).then_some(mode)
}
