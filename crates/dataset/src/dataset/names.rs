//! Names: lookup, listing, creation, links, removal.

use super::Dataset;
use super::occasion::Occasion;
use crate::attributes::{Attr, DirEntry, FileKind, NewInode, NewKind};
use crate::block_map::BlockMap;
use crate::inode::{Inode, InodeState, kind_code, kind_from_code};
use crate::layer::{Layer, NameKey};
use crate::{Error, Result, tree};
use offshoot_format::inode::{
    Timestamp, decode_name, name_hash, name_key, names_from, parse_name_key,
};
use offshoot_format::operation::Operation;
use offshoot_types::{BlockHash, Ino};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

#[cfg(test)]
mod tests;

const NAME_LEN_MAX: usize = 255;
const TARGET_LEN_MAX: usize = 4095;
const LINKS_MAX: u32 = 65_000;

/// The inode and kind a name stands for.
pub(super) type Entry = (Ino, u8);

pub(super) fn key_of(name: &[u8]) -> NameKey {
    (name_hash(name), name.into())
}

pub(super) fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > NAME_LEN_MAX {
        return Err(Error::NameTooLong);
    }
    if name.is_empty() || name == b"." || name == b".." {
        return Err(Error::Invalid("this name cannot be given"));
    }
    if name.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Error::Invalid("a name has no '/' and no NUL"));
    }
    Ok(())
}

/// Everything about a new inode that is logged.
pub(super) struct Creation<'a> {
    pub(super) kind: FileKind,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) rdev: u32,
    pub(super) target: &'a [u8],
    /// Given by a replay.
    pub(super) ino: Option<Ino>,
}

impl<'a> Creation<'a> {
    /// Of a new inode.
    pub(super) fn of(new: &'a NewInode) -> Result<Creation<'a>> {
        let (kind, target): (_, &[u8]) = match &new.kind {
            NewKind::File => (FileKind::File, &[]),
            NewKind::Directory => (FileKind::Directory, &[]),
            NewKind::Symlink(target) => (FileKind::Symlink, target),
            NewKind::Fifo => (FileKind::Fifo, &[]),
            NewKind::Socket => (FileKind::Socket, &[]),
            NewKind::CharDevice => (FileKind::CharDevice, &[]),
            NewKind::BlockDevice => (FileKind::BlockDevice, &[]),
        };
        if target.len() > TARGET_LEN_MAX {
            return Err(Error::NameTooLong);
        }
        let NewInode { mode, uid, gid, rdev, .. } = *new;
        Ok(Creation { kind, mode, uid, gid, rdev, target, ino: None })
    }
}

impl InodeState {
    /// An inode with one name.
    fn new(new: &Creation<'_>, parent: Ino, time: Timestamp) -> InodeState {
        let directory = new.kind == FileKind::Directory;
        InodeState {
            mode: new.mode & 0o7777,
            nlink: if directory { 2 } else { 1 },
            uid: new.uid,
            gid: new.gid,
            rdev: new.rdev,
            size: new.target.len() as u64,
            atime: time,
            mtime: time,
            ctime: time,
            parent: if directory { parent } else { Ino(0) },
            target: new.target.into(),
            map: BlockMap::EMPTY,
            blocks: 0,
            dirty: Layer::default(),
            dirty_epoch: 0,
            frozen: None,
            open: 0,
            gone: false,
            changes: 0,
            direct: None,
        }
    }

    /// Adds, replaces or (`None`) removes a name of a directory.
    pub(super) fn put_entry(&mut self, name: &[u8], entry: Option<Entry>, time: Timestamp) {
        self.dirty.put_name(key_of(name), entry);
        (self.mtime, self.ctime) = (time, time);
    }

    /// A name as the in-memory layers know it; `None`: ask the tree.
    fn entry_in_memory(&self, key: &NameKey) -> Option<Option<Entry>> {
        self.dirty
            .names
            .get(key)
            .or_else(|| self.frozen.as_ref().and_then(|frozen| frozen.layer.names.get(key)))
            .copied()
    }
}

impl Dataset {
    /// Finds a name in a directory. (`.` and `..` are no names here; see [`Dataset::parent`].)
    pub fn lookup(&self, parent: Ino, name: &[u8]) -> Result<Attr> {
        if name.len() > NAME_LEN_MAX {
            return Err(Error::NameTooLong);
        }
        let directory = self.inode(parent)?;
        let (ino, _) = self.find_entry(&directory, name)?.ok_or(Error::NotFound)?;
        self.pass_favour(&directory, ino)?;
        self.getattr(ino)
    }

    /// The directory that holds this directory; the root's is the root.
    pub fn parent(&self, directory: Ino) -> Result<Ino> {
        let inode = self.inode(directory)?;
        inode.expect_directory()?;
        let state = inode.state.read();
        if state.gone { Err(Error::NotFound) } else { Ok(state.parent) }
    }

    /// The target of a symbolic link.
    pub fn readlink(&self, ino: Ino) -> Result<Vec<u8>> {
        let inode = self.inode(ino)?;
        if inode.kind != FileKind::Symlink {
            return Err(Error::Invalid("not a symbolic link"));
        }
        let state = inode.state.read();
        Ok(state.target.to_vec())
    }

    /// What a name of a directory stands for.
    pub(super) fn find_entry(&self, directory: &Inode, name: &[u8]) -> Result<Option<Entry>> {
        directory.expect_directory()?;
        let key = key_of(name);
        loop {
            {
                let state = directory.state.read();
                if state.gone {
                    return Err(Error::NotFound);
                }
                if let Some(entry) = state.entry_in_memory(&key) {
                    return Ok(entry);
                }
            }
            // Read after the layers: a commit publishes its tree before it drops the frozen layer.
            let committed = *self.committed.read();
            let tree_key = name_key(directory.ino, key.0, name);
            match tree::get(&self.reader, committed.root, &tree_key) {
                Ok(None) => return Ok(None),
                Ok(Some(value)) => return Ok(Some(decode_name(&value.bytes)?)),
                Err(Error::Missing(hash)) => self.after_missing(committed, hash)?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Up to `max` names of a directory after `cookie` (0 = from the start), without `.` and `..`.
    /// Empty at the end. Names that exist throughout are returned exactly once. Names with equal
    /// cookies are returned together, even beyond `max`.
    pub fn readdir(&self, directory: Ino, cookie: u64, max: usize) -> Result<Vec<DirEntry>> {
        let inode = self.inode(directory)?;
        inode.expect_directory()?;
        let max = max.max(1);
        loop {
            let overlay = overlay_names(&inode, cookie, max)?;
            let committed = *self.committed.read();
            let mut found: BTreeMap<NameKey, Entry> = BTreeMap::new();
            match self.scan_names(&inode, committed.root, cookie, max, &overlay, &mut found) {
                Err(Error::Missing(hash)) => {
                    self.after_missing(committed, hash)?;
                    continue;
                }
                other => other?,
            }
            found.extend(overlay.into_iter().filter_map(|(key, entry)| Some((key, entry?))));
            let mut entries: Vec<DirEntry> = Vec::new();
            for ((hash, name), (ino, kind)) in found {
                if entries.len() >= max && entries.last().is_some_and(|last| last.cookie != hash) {
                    break;
                }
                let kind = kind_from_code(kind)?;
                entries.push(DirEntry { name: name.into(), ino, kind, cookie: hash });
            }
            return Ok(entries);
        }
    }

    /// The committed names after a cookie that the overlay does not mention.
    fn scan_names(
        &self,
        directory: &Inode,
        root: BlockHash,
        cookie: u64,
        max: usize,
        overlay: &BTreeMap<NameKey, Option<Entry>>,
        found: &mut BTreeMap<NameKey, Entry>,
    ) -> Result<()> {
        let mut damage = None;
        let from = names_from(directory.ino, cookie + 1);
        tree::scan(&self.reader, root, &from, &mut |entry| {
            let Some((owner, hash, name)) = parse_name_key(&entry.key) else {
                return ControlFlow::Break(());
            };
            let enough = found.len() >= max
                && found.last_key_value().is_some_and(|((last, _), _)| *last != hash);
            if owner != directory.ino || enough {
                return ControlFlow::Break(());
            }
            let key: NameKey = (hash, name.into());
            if overlay.contains_key(&key) {
                return ControlFlow::Continue(());
            }
            match decode_name(&entry.value.bytes) {
                Ok(value) => {
                    found.insert(key, value);
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    damage = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        damage.map_or(Ok(()), |error| Err(error.into()))
    }

    pub(super) fn create_at(
        &self,
        parent: Ino,
        name: &[u8],
        new: &Creation<'_>,
        occasion: Occasion<'_>,
    ) -> Result<Attr> {
        let Occasion { time, request } = occasion;
        check_name(name)?;
        let _names = self.namespace.lock();
        let directory = self.inode(parent)?;
        if self.find_entry(&directory, name)?.is_some() {
            return Err(Error::Exists);
        }
        let gate = self.enter()?;
        let ino = match new.ino {
            None => Ino(self.next_ino.fetch_add(1, Ordering::Relaxed)),
            Some(ino) => {
                self.next_ino.fetch_max(ino.0 + 1, Ordering::Relaxed);
                ino
            }
        };
        let inode = Inode::new(ino, new.kind, InodeState::new(new, parent, time));
        let mut parent_state = directory.state.write();
        if parent_state.gone || parent_state.nlink == 0 {
            return Err(Error::NotFound);
        }
        let attr = {
            let mut state = inode.state.write();
            self.change(*gate, &inode, &mut state, |state| inode.attr(state))
        };
        self.inode_count.fetch_add(1, Ordering::Relaxed);
        self.inodes.insert(inode);
        self.change(*gate, &directory, &mut parent_state, |state| {
            state.put_entry(name, Some((ino, kind_code(new.kind))), time);
            state.size += 1;
            state.nlink += u32::from(new.kind == FileKind::Directory);
            // Queued before the lock is released: what others do to the new inode comes later.
            let Creation { mode, uid, gid, rdev, target, .. } = *new;
            let kind = kind_code(new.kind);
            let operation =
                Operation::Create { parent, name, ino, kind, mode, uid, gid, rdev, target, time };
            self.queue.lock().push_asked(&operation, request);
        });
        Ok(attr)
    }

    pub(super) fn link_at(
        &self,
        ino: Ino,
        parent: Ino,
        name: &[u8],
        occasion: Occasion<'_>,
    ) -> Result<Attr> {
        let Occasion { time, request } = occasion;
        check_name(name)?;
        let _names = self.namespace.lock();
        let directory = self.inode(parent)?;
        let inode = self.inode(ino)?;
        if inode.kind == FileKind::Directory {
            return Err(Error::Invalid("a directory has one name only"));
        }
        if self.find_entry(&directory, name)?.is_some() {
            return Err(Error::Exists);
        }
        if directory.state.read().nlink == 0 {
            return Err(Error::NotFound);
        }
        let gate = self.enter()?;
        let attr = {
            let mut state = inode.state.write();
            if state.gone || state.nlink == 0 {
                return Err(Error::NotFound);
            }
            if state.nlink >= LINKS_MAX {
                return Err(Error::TooManyLinks);
            }
            self.change(*gate, &inode, &mut state, |state| {
                state.nlink += 1;
                state.ctime = time;
                inode.attr(state)
            })
        };
        let mut parent_state = directory.state.write();
        self.change(*gate, &directory, &mut parent_state, |state| {
            state.put_entry(name, Some((ino, kind_code(inode.kind))), time);
            state.size += 1;
            let operation = Operation::Link { ino, parent, name, time };
            self.queue.lock().push_asked(&operation, request);
        });
        Ok(attr)
    }

    /// Removes a name; `directory` says what it must name, `None`: either.
    pub(super) fn remove_at(
        &self,
        parent: Ino,
        name: &[u8],
        directory: Option<bool>,
        occasion: Occasion<'_>,
    ) -> Result<()> {
        let Occasion { time, request } = occasion;
        let _names = self.namespace.lock();
        let parent_inode = self.inode(parent)?;
        let (ino, _) = self.find_entry(&parent_inode, name)?.ok_or(Error::NotFound)?;
        let inode = self.inode(ino)?;
        let is_directory = inode.kind == FileKind::Directory;
        match directory {
            Some(false) if is_directory => return Err(Error::IsDirectory),
            Some(true) if !is_directory => return Err(Error::NotDirectory),
            _ => {}
        }
        if is_directory && inode.state.read().size > 0 {
            return Err(Error::NotEmpty);
        }
        let gate = self.enter()?;
        let mut state = parent_inode.state.write();
        self.change(*gate, &parent_inode, &mut state, |state| {
            state.put_entry(name, None, time);
            state.size = state.size.saturating_sub(1);
            state.nlink -= u32::from(is_directory);
            self.queue.lock().push_asked(&Operation::Unlink { parent, name, time }, request);
        });
        drop(state);
        self.drop_link(*gate, &inode, time);
        Ok(())
    }
}

/// What memory knows of the names after a cookie: up to `max` existing ones, and all removed ones
/// between them.
fn overlay_names(
    directory: &Inode,
    cookie: u64,
    max: usize,
) -> Result<BTreeMap<NameKey, Option<Entry>>> {
    let state = directory.state.read();
    if state.gone {
        return Err(Error::NotFound);
    }
    let from: (Bound<NameKey>, Bound<NameKey>) =
        (Bound::Included((cookie.saturating_add(1), Box::default())), Bound::Unbounded);
    let mut overlay = BTreeMap::new();
    let mut add = |layer: &Layer| {
        let (mut live, mut last) = (0, 0);
        for (key, entry) in layer.names.range(from.clone()) {
            if live >= max && key.0 != last {
                break;
            }
            // The dirty layer comes first and goes before the frozen one: a name removed there does
            // not count here. If it did, the names between this end and the tree's were left out.
            let known = overlay.entry(key.clone()).or_insert(*entry);
            live += usize::from(known.is_some());
            last = key.0;
        }
    };
    add(&state.dirty);
    if let Some(frozen) = &state.frozen {
        add(&frozen.layer);
    }
    Ok(overlay)
}
