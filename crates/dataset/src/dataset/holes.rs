//! `fallocate` and `lseek` for data and holes.

use super::{Dataset, FILE_SIZE_MAX};
use crate::attributes::{AllocateMode, SeekTarget};
use crate::block_map::BlockMap;
use crate::blocks::NodeSource;
use crate::inode::InodeState;
use crate::layer::{Layer, RangeSet};
use crate::{Error, Result};
use offshoot_format::inode::Timestamp;
use offshoot_format::operation::Operation;
use offshoot_types::{BLOCK_SIZE, Ino};
use std::collections::BTreeSet;

const BLOCK: u64 = BLOCK_SIZE as u64;

/// Which blocks of a file may hold data, at one moment.
struct Extents {
    /// Changed blocks.
    changed: BTreeSet<u64>,
    /// Ranges that hide committed blocks.
    hidden: RangeSet,
    map: BlockMap,
    size: u64,
}

impl Extents {
    fn of(state: &InodeState) -> Extents {
        let mut extents = Extents {
            changed: BTreeSet::new(),
            hidden: RangeSet::default(),
            map: state.map,
            size: state.size,
        };
        let layers = state.frozen.iter().map(|frozen| &frozen.layer).chain([&state.dirty]);
        layers.for_each(|layer| extents.add(layer));
        extents
    }

    fn add(&mut self, layer: &Layer) {
        for (start, end) in layer.cleared.iter() {
            self.changed.retain(|block| !(start..end).contains(block));
            self.hidden.insert(start, end);
        }
        self.changed.extend(layer.blocks.keys());
    }

    fn next_data(&self, source: &dyn NodeSource, from: u64) -> Result<Option<u64>> {
        let changed = self.changed.range(from..).next().copied();
        let mut at = from;
        let committed = loop {
            if let Some(end) = self.hidden.end_of(at) {
                at = end;
            }
            match self.map.next(source, at, true)? {
                Some(found) if self.hidden.contains(found) => at = found,
                found => break found,
            }
        };
        Ok(match (changed, committed) {
            (Some(changed), Some(committed)) => Some(changed.min(committed)),
            (changed, committed) => changed.or(committed),
        })
    }

    fn next_hole(&self, source: &dyn NodeSource, from: u64) -> Result<u64> {
        let mut at = from;
        loop {
            if self.changed.contains(&at) {
                at += 1;
                continue;
            }
            if self.hidden.contains(at) {
                return Ok(at);
            }
            let hole = match self.map.next(source, at, false)? {
                Some(hole) => hole,
                None => self.map.end().max(at),
            };
            if hole == at {
                return Ok(at);
            }
            match self.hidden.next_start(at) {
                Some(start) if start < hole => at = start,
                _ => at = hole,
            }
        }
    }
}

impl Dataset {
    /// `fallocate`. Room is not set aside, only checked: space is taken when data is committed.
    pub fn allocate(&self, ino: Ino, offset: u64, len: u64, mode: AllocateMode) -> Result<()> {
        let inode = self.inode(ino)?;
        inode.expect_file()?;
        if len == 0 {
            return Err(Error::Invalid("the range is empty"));
        }
        let end = offset.checked_add(len).filter(|end| *end <= FILE_SIZE_MAX);
        let end = end.ok_or(Error::FileTooBig)?;
        match mode {
            AllocateMode::Extend | AllocateMode::KeepSize => {
                let size = inode.state.read().size;
                self.admit(len, self.purpose_of(&inode, end <= size))?;
                if end > size {
                    self.promise(end - offset.max(size));
                }
                if mode == AllocateMode::KeepSize || end <= size {
                    return Ok(());
                }
                self.clear_at(ino, end, 0, Some(end), self.now())
            }
            AllocateMode::PunchHole | AllocateMode::ZeroRangeKeepSize => {
                self.clear_at(ino, offset, len, None, self.now())
            }
            AllocateMode::ZeroRange => self.clear_at(ino, offset, len, Some(end), self.now()),
        }
    }

    /// Zeroes a range and makes the file at least `size` long.
    pub(super) fn clear_at(
        &self,
        ino: Ino,
        offset: u64,
        len: u64,
        size: Option<u64>,
        time: Timestamp,
    ) -> Result<()> {
        let inode = self.inode(ino)?;
        inode.expect_file()?;
        let end = offset.checked_add(len).filter(|end| *end <= FILE_SIZE_MAX);
        let end = end.ok_or(Error::FileTooBig)?;
        self.change_blocks(&inode, [Some(offset), Some(end)], |state, bases| {
            state.clear(offset, end, bases);
            state.set_size(state.size.max(size.unwrap_or(0)));
            (state.mtime, state.ctime) = (time, time);
            let operation = Operation::Clear { ino, offset, len, size: size.unwrap_or(0), time };
            self.queue.lock().push(&operation, Vec::new());
        })
    }

    /// `lseek` with `SEEK_DATA` or `SEEK_HOLE`; [`crate::Error::NoSuchRange`] at or past the end.
    pub fn seek(&self, ino: Ino, offset: u64, target: SeekTarget) -> Result<u64> {
        let inode = self.inode(ino)?;
        inode.expect_file()?;
        loop {
            let extents = {
                let state = inode.state.read();
                if state.gone {
                    return Err(Error::Stale);
                }
                Extents::of(&state)
            };
            if offset >= extents.size {
                return Err(Error::NoSuchRange);
            }
            let from = offset / BLOCK;
            let found = match target {
                SeekTarget::Data => extents.next_data(&self.reader, from),
                SeekTarget::Hole => extents.next_hole(&self.reader, from).map(Some),
            };
            match found {
                Err(Error::Missing(hash)) => {
                    self.wait_for_commit()?;
                    if inode.state.read().map == extents.map {
                        return Err(Error::Missing(hash));
                    }
                }
                Err(error) => return Err(error),
                Ok(block) => {
                    let at = block.map(|block| (block * BLOCK).max(offset));
                    return match (at.filter(|at| *at < extents.size), target) {
                        (Some(at), _) => Ok(at),
                        (None, SeekTarget::Hole) => Ok(extents.size),
                        (None, SeekTarget::Data) => Err(Error::NoSuchRange),
                    };
                }
            }
        }
    }
}
