//! Renaming, with the semantics of `renameat2`.

use super::Dataset;
use super::names::check_name;
use super::occasion::Occasion;
use crate::attributes::{FileKind, RenameMode};
use crate::inode::{Inode, InodeState, kind_code};
use crate::{Error, Result};
use offshoot_format::operation::Operation;
use offshoot_types::Ino;
use parking_lot::RwLockWriteGuard;
use std::sync::Arc;

/// No path is deeper; a longer walk upwards means a damaged tree.
const DEPTH_MAX: u32 = 100_000;

/// The two directories of a rename, locked; one guard when they are the same.
struct Directories<'a> {
    old: RwLockWriteGuard<'a, InodeState>,
    new: Option<RwLockWriteGuard<'a, InodeState>>,
}

impl<'a> Directories<'a> {
    fn lock(old: &'a Inode, new: &'a Inode) -> Directories<'a> {
        if old.ino == new.ino {
            return Directories { old: old.state.write(), new: None };
        }
        if old.ino < new.ino {
            let old = old.state.write();
            return Directories { old, new: Some(new.state.write()) };
        }
        let new = new.state.write();
        Directories { old: old.state.write(), new: Some(new) }
    }
}

/// A rename whose names have been looked up.
struct Plan<'a> {
    old_parent: &'a Arc<Inode>,
    new_parent: &'a Arc<Inode>,
    name: &'a [u8],
    new_name: &'a [u8],
    moved: Arc<Inode>,
    replaced: Option<Arc<Inode>>,
    exchange: bool,
    occasion: Occasion<'a>,
}

impl Dataset {
    pub(super) fn rename_at(
        &self,
        parent: Ino,
        name: &[u8],
        new_parent: Ino,
        new_name: &[u8],
        mode: RenameMode,
        occasion: Occasion<'_>,
    ) -> Result<()> {
        check_name(name)?;
        check_name(new_name)?;
        let _names = self.namespace.lock();
        let old_directory = self.inode(parent)?;
        let new_directory = self.inode(new_parent)?;
        let (ino, _) = self.find_entry(&old_directory, name)?.ok_or(Error::NotFound)?;
        let target = self.find_entry(&new_directory, new_name)?;
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) => return Err(Error::Exists),
            (RenameMode::Exchange, None) => return Err(Error::NotFound),
            // Two names of one inode: nothing happens.
            (_, Some((other, _))) if other == ino => return Ok(()),
            _ => {}
        }
        let plan = Plan {
            old_parent: &old_directory,
            new_parent: &new_directory,
            name,
            new_name,
            moved: self.inode(ino)?,
            replaced: target.map(|(ino, _)| self.inode(ino)).transpose()?,
            exchange: mode == RenameMode::Exchange,
            occasion,
        };
        self.check_rename(&plan)?;
        self.apply_rename(&plan)
    }

    fn check_rename(&self, plan: &Plan<'_>) -> Result<()> {
        let is_directory = |inode: &Inode| inode.kind == FileKind::Directory;
        if plan.new_parent.state.read().nlink == 0 {
            return Err(Error::NotFound);
        }
        if is_directory(&plan.moved) {
            self.check_not_below(plan.new_parent, plan.moved.ino)?;
        }
        let Some(replaced) = &plan.replaced else { return Ok(()) };
        if plan.exchange {
            if is_directory(replaced) {
                self.check_not_below(plan.old_parent, replaced.ino)?;
            }
            return Ok(());
        }
        match (is_directory(&plan.moved), is_directory(replaced)) {
            (true, false) => Err(Error::NotDirectory),
            (false, true) => Err(Error::IsDirectory),
            (true, true) if replaced.state.read().size > 0 => Err(Error::NotEmpty),
            _ => Ok(()),
        }
    }

    /// Refuses to move `ino` into `directory` if that is below it.
    fn check_not_below(&self, directory: &Inode, ino: Ino) -> Result<()> {
        let mut at = directory.ino;
        for _ in 0..DEPTH_MAX {
            if at == ino {
                return Err(Error::Invalid("a directory cannot be moved into itself"));
            }
            if at == Ino::ROOT {
                return Ok(());
            }
            at = self.parent(at)?;
        }
        Err(Error::Corrupt("directories form a circle".into()))
    }

    fn apply_rename(&self, plan: &Plan<'_>) -> Result<()> {
        let gate = self.enter()?;
        let Plan { name, new_name, exchange, occasion: Occasion { time, request }, .. } = *plan;
        let entry = |inode: &Inode| Some((inode.ino, kind_code(inode.kind)));
        let subdirectory = |inode: &Inode| u32::from(inode.kind == FileKind::Directory);
        let coming = entry(&plan.moved);
        let leaving = plan.replaced.as_deref();
        let going_back = if exchange { leaving.and_then(entry) } else { None };
        {
            let mut directories = Directories::lock(plan.old_parent, plan.new_parent);
            let old = &mut *directories.old;
            // First the new name, then the old one goes; both under the locks.
            let to_new = |state: &mut InodeState| {
                state.put_entry(new_name, coming, time);
                state.size += u64::from(leaving.is_none());
                state.nlink += subdirectory(&plan.moved);
                state.nlink -= leaving.map_or(0, subdirectory);
            };
            let to_old = |state: &mut InodeState| {
                state.put_entry(name, going_back, time);
                state.size -= u64::from(going_back.is_none());
                state.nlink -= subdirectory(&plan.moved);
                state.nlink += if exchange { leaving.map_or(0, subdirectory) } else { 0 };
                let operation = Operation::Rename {
                    parent: plan.old_parent.ino,
                    name,
                    new_parent: plan.new_parent.ino,
                    new_name,
                    exchange,
                    time,
                };
                self.queue.lock().push_asked(&operation, request);
            };
            match &mut directories.new {
                Some(new) => self.change(*gate, plan.new_parent, new, to_new),
                None => self.change(*gate, plan.new_parent, old, to_new),
            }
            self.change(*gate, plan.old_parent, old, to_old);
        }
        let settle = |inode: &Arc<Inode>, parent: Ino| {
            let mut state = inode.state.write();
            self.change(*gate, inode, &mut state, |state| {
                state.ctime = time;
                if inode.kind == FileKind::Directory {
                    state.parent = parent;
                }
            });
        };
        settle(&plan.moved, plan.new_parent.ino);
        match &plan.replaced {
            Some(replaced) if exchange => settle(replaced, plan.old_parent.ino),
            Some(replaced) => self.drop_link(*gate, replaced, time),
            None => {}
        }
        Ok(())
    }
}
