//! Attributes, and lifetime of inodes.

use super::Dataset;
use crate::attributes::{Attr, SetAttr};
use crate::inode::{Inode, InodeState, to_timestamp};
use crate::{Error, FILE_SIZE_MAX, FileKind, Result};
use offshoot_format::inode::Timestamp;
use offshoot_format::operation::Operation;
use offshoot_types::Ino;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An attribute change as it is logged.
#[derive(Clone, Copy)]
pub(super) struct LoggedSetAttr {
    pub(super) size: Option<u64>,
    pub(super) mode: Option<u32>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) atime: Option<Timestamp>,
    pub(super) mtime: Option<Timestamp>,
}

impl Dataset {
    /// Changes attributes and returns the new ones.
    pub fn setattr(&self, ino: Ino, change: &SetAttr) -> Result<Attr> {
        let change = LoggedSetAttr {
            size: change.size,
            mode: change.mode.map(|mode| mode & 0o7777),
            uid: change.uid,
            gid: change.gid,
            atime: change.atime.map(to_timestamp),
            mtime: change.mtime.map(to_timestamp),
        };
        self.setattr_at(ino, change, self.now())
    }

    pub(super) fn setattr_at(
        &self,
        ino: Ino,
        change: LoggedSetAttr,
        time: Timestamp,
    ) -> Result<Attr> {
        let inode = self.inode(ino)?;
        if let Some(size) = change.size {
            inode.expect_file()?;
            if size > FILE_SIZE_MAX {
                return Err(Error::FileTooBig);
            }
        }
        let LoggedSetAttr { size, mode, uid, gid, atime, mtime } = change;
        let operation = Operation::SetAttr { ino, size, mode, uid, gid, atime, mtime, time };
        let cut = size.unwrap_or(u64::MAX);
        self.change_blocks(&inode, [Some(cut), None], |state, bases| {
            if let Some(size) = size {
                state.resize(size, bases);
                state.mtime = time;
            }
            state.mode = mode.unwrap_or(state.mode);
            state.uid = uid.unwrap_or(state.uid);
            state.gid = gid.unwrap_or(state.gid);
            state.atime = atime.unwrap_or(state.atime);
            state.mtime = mtime.unwrap_or(state.mtime);
            state.ctime = time;
            self.queue.lock().push(&operation, Vec::new());
            inode.attr(state)
        })
    }

    /// Counts one more user of an inode, so that it outlives its last name. Balance with
    /// [`Dataset::close`].
    pub fn open(&self, ino: Ino) -> Result<()> {
        let inode = self.inode(ino)?;
        let _gate = self.enter()?;
        let mut state = inode.state.write();
        if state.gone {
            return Err(Error::Stale);
        }
        state.open += 1;
        Ok(())
    }

    /// Ends one [`Dataset::open`]; frees the inode when it was the last and no name is left.
    pub fn close(&self, ino: Ino) {
        let Some(inode) = self.inodes.get(ino) else { return };
        let Ok(gate) = self.enter() else { return };
        let mut state = inode.state.write();
        state.open = state.open.saturating_sub(1);
        if state.open == 0 && state.nlink == 0 && !state.gone {
            self.change(*gate, &inode, &mut state, |state| self.free(state));
        }
    }

    /// Takes away a name's count; frees the inode when it was the last and nobody uses it. A replay
    /// frees only at its end: later records may write to an inode that was still open.
    pub(super) fn drop_link(&self, epoch: u64, inode: &Arc<Inode>, time: Timestamp) {
        let mut state = inode.state.write();
        self.change(epoch, inode, &mut state, |state| {
            state.ctime = time;
            state.nlink = match inode.kind {
                FileKind::Directory => 0,
                _ => state.nlink.saturating_sub(1),
            };
            if state.nlink == 0 && state.open == 0 && !self.is_replaying() {
                self.free(state);
            }
        });
    }

    /// Frees an inode: its content goes with the next commit.
    pub(super) fn free(&self, state: &mut InodeState) {
        state.gone = true;
        state.dirty.drop_blocks();
        state.dirty.xattrs.clear();
        self.inode_count.fetch_sub(1, Ordering::Relaxed);
    }
}
