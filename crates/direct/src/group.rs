//! A trust group: whoever is in it can read all that its frames hold.

use crate::budget::{Budget, Holder};
use crate::frames::Frames;
use crate::layout::BLOCK;
use crate::memory::{HUGE_PAGE, Memory};
use offshoot_types::BlockHash;
use parking_lot::{Mutex, MutexGuard};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// With fewer frames than this left there is no room.
const ROOM_MIN: usize = 64;

/// The frames of a trust group.
#[derive(Debug)]
pub struct Group {
    memory: Arc<Memory>,
    frames: Mutex<Frames>,
}

/// Figures of a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// Bytes that its frames can have at most.
    pub size: u64,
    /// Bytes of frames in use.
    pub used: u64,
    /// How often a frame was taken from a block for another.
    pub evicted: u64,
}

impl Group {
    /// A group with a share of this memory for blocks; none of it is in use yet.
    ///
    /// # Errors
    /// The system's.
    pub fn create(budget: &Arc<Budget>) -> io::Result<Arc<Group>> {
        Ok(Group::of(Memory::create("offshoot-frames", budget.len())?, budget))
    }

    /// The group that an earlier engine made. Its frames are empty: what reads them by a [`Table`](crate::Table) finds out
    /// as each of these is adopted.
    ///
    /// # Errors
    /// `InvalidData` for anything else; the system's.
    pub fn adopt(frames: OwnedFd, budget: &Arc<Budget>) -> io::Result<Arc<Group>> {
        let len = rustix::fs::fstat(&frames)?.st_size;
        let len = usize::try_from(len).ok().filter(|len| *len > 0 && len.is_multiple_of(HUGE_PAGE));
        let len = len.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no frames"))?;
        Ok(Group::of(Memory::open(frames, len)?, budget))
    }

    fn of(memory: Memory, budget: &Arc<Budget>) -> Arc<Group> {
        let memory = Arc::new(memory);
        let frames = Mutex::new(Frames::new(memory.clone(), budget.clone()));
        let group = Arc::new(Group { frames, memory });
        let holder: Arc<dyn Holder> = group.clone();
        budget.join(Arc::downgrade(&holder));
        group
    }

    /// Gives the memory back that an earlier engine has filled, once every table that led there is adopted.
    ///
    /// # Errors
    /// The system's: it stays until it is used again.
    pub fn forget(&self) -> io::Result<()> {
        let frames = self.frames.lock();
        if frames.used() > 0 {
            return Ok(());
        }
        self.memory.clear(0, self.memory.len())
    }

    /// Whether this descriptor is that of the frames.
    ///
    /// # Errors
    /// The system's.
    pub fn is(&self, frames: BorrowedFd<'_>) -> io::Result<bool> {
        self.memory.is_same(frames)
    }

    /// Copies a block out, if a frame has it.
    pub fn copy(&self, name: &BlockHash, target: &mut [u8; BLOCK]) -> bool {
        self.frames.lock().copy(name, target)
    }

    /// Whether blocks still come in without taking the place of others. It says so a little too early, not too late.
    pub fn has_room(&self) -> bool {
        self.frames.lock().room() > ROOM_MIN
    }

    /// Leaves the names of blocks that no frame has; the others become zeros.
    pub fn leave_missing(&self, names: &mut [BlockHash]) {
        let frames = self.frames.lock();
        names.iter_mut().filter(|name| frames.has(name)).for_each(|name| *name = BlockHash::ZERO);
    }

    /// Figures.
    pub fn stats(&self) -> GroupStats {
        let frames = self.frames.lock();
        GroupStats {
            size: self.memory.len() as u64,
            used: (frames.used() * BLOCK) as u64,
            evicted: frames.evicted,
        }
    }

    /// What the keeper holds of it.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// What its servers get.
    ///
    /// # Errors
    /// The system's.
    pub fn read_only(&self) -> io::Result<OwnedFd> {
        self.memory.read_only()
    }

    pub(crate) fn count(&self) -> usize {
        self.memory.len() / BLOCK
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock()
    }
}

impl Holder for Group {
    fn pages(&self) -> Option<usize> {
        Some(self.frames.try_lock()?.pages())
    }

    fn give_page(&self, must: bool) -> bool {
        self.frames.try_lock().is_some_and(|mut frames| frames.give_page(must))
    }
}
