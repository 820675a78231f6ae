//! Applying operations of the intent log, and freeing inodes that a crash left without a name.

use super::Dataset;
use super::changes::LoggedSetAttr;
use super::names::Creation;
use super::occasion::Occasion;
use crate::attributes::{RenameMode, XattrMode};
use crate::inode::kind_from_code;
use crate::{Error, Result, tree};
use offshoot_format::inode::{orphans_from, parse_orphan_key};
use offshoot_format::operation::Operation;
use offshoot_types::Ino;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

impl Dataset {
    /// Number of the last operation applied.
    pub(crate) fn last_operation(&self) -> u64 {
        self.queue.lock().last
    }

    /// Applies the next operation of the log.
    pub(crate) fn replay(&self, bytes: &[u8]) -> Result<()> {
        let before = self.last_operation();
        self.replay_operation(Operation::decode(bytes)?)?;
        let mut queue = self.queue.lock();
        // An operation that finds nothing to do still counts.
        queue.last = before + 1;
        // It is already in the log; the store commits before it opens a new one.
        queue.give_up_log();
        Ok(())
    }

    fn replay_operation(&self, operation: Operation<'_>) -> Result<()> {
        match operation {
            Operation::Write { ino, offset, time, data } => {
                let inode = self.inode(ino)?;
                inode.expect_file()?;
                self.write_at(&inode, Some(offset), data, time).map(|_| ())
            }
            Operation::Clear { ino, offset, len, size, time } => {
                self.clear_at(ino, offset, len, Some(size), time)
            }
            Operation::SetAttr { ino, size, mode, uid, gid, atime, mtime, time } => {
                let change = LoggedSetAttr { size, mode, uid, gid, atime, mtime };
                self.setattr_at(ino, change, time).map(|_| ())
            }
            Operation::Create { parent, name, ino, kind, mode, uid, gid, rdev, target, time } => {
                let (kind, ino) = (kind_from_code(kind)?, Some(ino));
                let new = Creation { kind, mode, uid, gid, rdev, target, ino };
                self.create_at(parent, name, &new, Occasion::replayed(time)).map(|_| ())
            }
            Operation::Link { ino, parent, name, time } => {
                self.link_at(ino, parent, name, Occasion::replayed(time)).map(|_| ())
            }
            Operation::Unlink { parent, name, time } => {
                self.remove_at(parent, name, None, Occasion::replayed(time))
            }
            Operation::Rename { parent, name, new_parent, new_name, exchange, time } => {
                let mode = if exchange { RenameMode::Exchange } else { RenameMode::Replace };
                self.rename_at(parent, name, new_parent, new_name, mode, Occasion::replayed(time))
            }
            Operation::Xattr { ino, name, value, time } => {
                self.xattr_at(ino, name, value, XattrMode::Set, Occasion::replayed(time))
            }
        }
    }

    /// Ends a replay, or the loading of a dataset: inodes without a name are freed, as nobody has
    /// them open any more. This is not an operation: it changes nothing visible.
    pub(crate) fn free_orphans(&self) -> Result<()> {
        self.replaying.store(false, Ordering::Relaxed);
        let mut orphans: BTreeSet<u64> = BTreeSet::new();
        let root = self.committed.read().root;
        tree::scan(&self.reader, root, &orphans_from(), &mut |entry| match parse_orphan_key(
            &entry.key,
        ) {
            Some(ino) => {
                orphans.insert(ino.0);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        })?;
        let changed: Vec<_> = self.dirty_inodes.lock().iter().cloned().collect();
        orphans.extend(
            changed.iter().filter(|inode| inode.state.read().nlink == 0).map(|inode| inode.ino.0),
        );
        for ino in orphans {
            let inode = match self.inode(Ino(ino)) {
                Err(Error::NotFound) => continue,
                other => other?,
            };
            let gate = self.enter()?;
            let mut state = inode.state.write();
            if state.nlink == 0 && state.open == 0 && !state.gone {
                self.change(*gate, &inode, &mut state, |state| self.free(state));
            }
        }
        Ok(())
    }
}
