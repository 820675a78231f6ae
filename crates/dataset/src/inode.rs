//! An inode in memory: attributes, changed layers and the committed block map.
//!
//! Life of a change: an operation of epoch E puts it into the *dirty* layer; a commit ends the epoch
//! and turns dirty layers into *frozen* ones ([`InodeState::freeze`]), either by itself or by the
//! first operation of the next epoch that touches the inode; when the commit is durable,
//! [`InodeState::commit_done`] drops the frozen layer and takes the new block map. A frozen layer
//! whose commit failed stays, and the next freeze puts the dirty layer on top of it.

use crate::attributes::{Attr, FileKind};
use crate::block_map::BlockMap;
use crate::layer::{Found, Layer, Slot};
use crate::{Error, Result};
use offshoot_direct::File;
use offshoot_format::inode::{InodeRecord, Timestamp};
use offshoot_pool::BlockData;
use offshoot_types::{BLOCK_SIZE, BlockHash, Ino};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One inode, shared by everyone who uses it.
pub(crate) struct Inode {
    pub(crate) ino: Ino,
    pub(crate) kind: FileKind,
    pub(crate) state: RwLock<InodeState>,
    pub(crate) stream: Mutex<Stream>,
    /// It may use room of the reserve; see [`crate::Dataset::favour_directory`].
    pub(crate) favoured: AtomicBool,
}

/// Where a sequential reader is, to read ahead of it. In blocks.
#[derive(Default)]
pub(crate) struct Stream {
    /// The block after the last one read.
    pub(crate) next: u64,
    /// Blocks read in sequence so far.
    pub(crate) run: u64,
    /// Everything before this block was asked for ahead of time.
    pub(crate) ahead: u64,
}

/// What changes of an inode.
pub(crate) struct InodeState {
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) rdev: u32,
    /// Bytes; of a directory its number of names.
    pub(crate) size: u64,
    pub(crate) atime: Timestamp,
    pub(crate) mtime: Timestamp,
    pub(crate) ctime: Timestamp,
    pub(crate) parent: Ino,
    pub(crate) target: Box<[u8]>,
    /// The committed blocks.
    pub(crate) map: BlockMap,
    /// How many of them are not holes.
    pub(crate) blocks: u64,
    pub(crate) dirty: Layer,
    /// The epoch of the dirty layer; 0: nothing is dirty.
    pub(crate) dirty_epoch: u64,
    pub(crate) frozen: Option<Arc<Frozen>>,
    /// Users that keep it alive without a name.
    pub(crate) open: u32,
    /// Freed; only the next commit still has to know.
    pub(crate) gone: bool,
    /// Counts changes of the content.
    pub(crate) changes: u64,
    /// Where its servers read it without asking, if they do.
    pub(crate) direct: Option<Arc<File>>,
}

/// An inode as a commit writes it.
#[derive(Clone)]
pub(crate) struct Frozen {
    pub(crate) layer: Layer,
    /// Attributes at the end of the epoch; map and blocks are the commit's to fill in.
    pub(crate) record: InodeRecord,
    pub(crate) gone: bool,
}

/// Where the content of a block is.
#[derive(Clone)]
pub(crate) enum Place {
    /// In memory.
    Data(BlockData),
    /// In the pool.
    Shared(Slot, BlockHash),
    /// Nowhere: zeros.
    Hole,
    /// Where the committed map says.
    Committed,
}

impl Inode {
    /// A new inode, dirty in `epoch`.
    pub(crate) fn new(ino: Ino, kind: FileKind, state: InodeState) -> Arc<Inode> {
        let (state, stream) = (RwLock::new(state), Mutex::default());
        Arc::new(Inode { ino, kind, state, stream, favoured: AtomicBool::new(false) })
    }

    /// An inode as committed.
    pub(crate) fn from_record(ino: Ino, record: InodeRecord) -> Result<Arc<Inode>> {
        let kind = kind_from_code(record.kind)?;
        let state = InodeState {
            mode: record.mode,
            nlink: record.nlink,
            uid: record.uid,
            gid: record.gid,
            rdev: record.rdev,
            size: record.size,
            atime: record.atime,
            mtime: record.mtime,
            ctime: record.ctime,
            parent: Ino(record.parent),
            target: record.target.into(),
            map: BlockMap { height: record.height, root: record.root },
            blocks: record.blocks,
            dirty: Layer::default(),
            dirty_epoch: 0,
            frozen: None,
            open: 0,
            gone: false,
            changes: 0,
            direct: None,
        };
        Ok(Inode::new(ino, kind, state))
    }

    /// Refuses anything but a regular file.
    pub(crate) fn expect_file(&self) -> Result<()> {
        match self.kind {
            FileKind::File => Ok(()),
            FileKind::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Invalid("not a regular file")),
        }
    }

    /// Refuses anything but a directory.
    pub(crate) fn expect_directory(&self) -> Result<()> {
        if self.kind == FileKind::Directory { Ok(()) } else { Err(Error::NotDirectory) }
    }

    /// The attributes as callers see them.
    pub(crate) fn attr(&self, state: &InodeState) -> Attr {
        let block = BLOCK_SIZE as u64;
        let frozen = state.frozen.as_ref().map_or(0, |frozen| frozen.layer.blocks.len());
        let changed = (frozen + state.dirty.blocks.len()) as u64;
        let (size, allocated) = match self.kind {
            FileKind::Directory => ((state.size + 1) * 64, 0),
            _ => (state.size, (state.blocks + changed).min(state.size.div_ceil(block)) * block),
        };
        Attr {
            ino: self.ino,
            kind: self.kind,
            mode: state.mode,
            nlink: state.nlink,
            uid: state.uid,
            gid: state.gid,
            rdev: state.rdev,
            size,
            allocated,
            atime: to_system_time(state.atime),
            mtime: to_system_time(state.mtime),
            ctime: to_system_time(state.ctime),
        }
    }
}

impl InodeState {
    /// Blocks are about to change. INVARIANT: nothing changes the content or the size of a file but by the four methods
    /// that begin with this, so that nobody reads directly what it was (D1 of `crates/direct`).
    /// Returns whether somebody could.
    pub(crate) fn changing(&mut self, from: u64, end: u64) -> bool {
        self.changes += 1;
        self.direct.as_ref().is_some_and(|direct| direct.withdraw(from, end))
    }

    /// As [`InodeState::changing`].
    pub(crate) fn put_block(&mut self, block: u64, slot: Slot) -> bool {
        let was_read = self.changing(block, block + 1);
        self.dirty.put_block(block, slot);
        was_read
    }

    /// Turns blocks into holes.
    pub(crate) fn clear_blocks(&mut self, start: u64, end: u64) {
        self.changing(start, end);
        self.dirty.clear_blocks(start, end);
    }

    /// Of a file whose blocks beyond that are cleared already.
    pub(crate) fn set_size(&mut self, size: u64) {
        if size == self.size {
            return;
        }
        self.changing(size.div_ceil(BLOCK_SIZE as u64), u64::MAX);
        self.size = size;
        if let Some(direct) = &self.direct {
            direct.set_size(size);
        }
    }

    /// Where the content of a block is.
    pub(crate) fn place(&self, block: u64) -> Place {
        let of = |slot: &Slot| match slot {
            Slot::Data(data) => Place::Data(data.clone()),
            Slot::Shared(pin) => Place::Shared(slot.clone(), pin.hash()),
        };
        match self.dirty.find(block) {
            Found::Slot(slot) => return of(slot),
            Found::Hole => return Place::Hole,
            Found::Below => {}
        }
        if let Some(frozen) = &self.frozen {
            match frozen.layer.find(block) {
                Found::Slot(slot) => return of(slot),
                Found::Hole => return Place::Hole,
                Found::Below => {}
            }
        }
        if self.map.root.is_zero() { Place::Hole } else { Place::Committed }
    }

    /// Whether every block is where the committed map says.
    pub(crate) fn is_all_committed(&self) -> bool {
        self.dirty.has_no_blocks()
            && self.frozen.as_ref().is_none_or(|frozen| frozen.layer.has_no_blocks())
    }

    /// The attributes for a commit.
    fn record(&self, kind: FileKind) -> InodeRecord {
        InodeRecord {
            kind: kind_code(kind),
            mode: self.mode,
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            rdev: self.rdev,
            size: self.size,
            blocks: 0,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            parent: self.parent.0,
            height: 0,
            root: BlockHash::ZERO,
            target: self.target.to_vec(),
        }
    }

    /// Ends the epoch of the dirty layer.
    pub(crate) fn freeze(&mut self, kind: FileKind) {
        let dirty = std::mem::take(&mut self.dirty);
        let layer = match self.frozen.take() {
            None => dirty,
            Some(failed) => {
                let mut layer = match Arc::try_unwrap(failed) {
                    Ok(failed) => failed.layer,
                    Err(failed) => failed.layer.clone(),
                };
                layer.overlay(dirty);
                layer
            }
        };
        let frozen = Frozen { layer, record: self.record(kind), gone: self.gone };
        self.frozen = Some(Arc::new(frozen));
        self.dirty_epoch = 0;
    }

    /// Drops the frozen layer, which is now durable in `map`.
    pub(crate) fn commit_done(&mut self, map: BlockMap, blocks: u64) {
        self.frozen = None;
        self.map = map;
        self.blocks = blocks;
    }

    /// The memory its layers are counted with.
    pub(crate) fn weight(&self) -> u64 {
        self.dirty.weight() + self.frozen.as_ref().map_or(0, |frozen| frozen.layer.weight())
    }
}

/// The number of a kind in records.
pub(crate) fn kind_code(kind: FileKind) -> u8 {
    match kind {
        FileKind::File => 1,
        FileKind::Directory => 2,
        FileKind::Symlink => 3,
        FileKind::Fifo => 4,
        FileKind::Socket => 5,
        FileKind::CharDevice => 6,
        FileKind::BlockDevice => 7,
    }
}

/// The kind of a number.
pub(crate) fn kind_from_code(code: u8) -> Result<FileKind> {
    Ok(match code {
        1 => FileKind::File,
        2 => FileKind::Directory,
        3 => FileKind::Symlink,
        4 => FileKind::Fifo,
        5 => FileKind::Socket,
        6 => FileKind::CharDevice,
        7 => FileKind::BlockDevice,
        _ => return Err(Error::Corrupt(format!("an inode has kind {code}"))),
    })
}

/// A time as records keep it.
pub(crate) fn to_timestamp(time: SystemTime) -> Timestamp {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => {
            Timestamp { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
        }
        Err(before) => {
            let before = before.duration();
            let (seconds, nanoseconds) = (before.as_secs() as i64, before.subsec_nanos());
            if nanoseconds == 0 {
                return Timestamp { seconds: -seconds, nanoseconds: 0 };
            }
            Timestamp { seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds }
        }
    }
}

/// A time as callers see it; 1970 where the platform cannot say it.
pub(crate) fn to_system_time(time: Timestamp) -> SystemTime {
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let base = if time.seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    let nanoseconds = Duration::from_nanos(u64::from(time.nanoseconds));
    base.and_then(|base| base.checked_add(nanoseconds)).unwrap_or(UNIX_EPOCH)
}
