//! A client in this process: what the library for servers does, for tests and checks of what servers see.

use crate::group::Group;
use crate::layout::{BLOCK, table_len};
use crate::memory::Memory;
use crate::reading::{Found, Mapped};
use crate::table::Table;
use std::io;
use std::os::fd::AsFd;

/// A client of a table.
#[derive(Debug)]
pub struct Reader {
    table: Memory,
    frames: Memory,
}

impl Reader {
    /// A client that has mapped the same memory anew.
    ///
    /// # Errors
    /// The system's.
    pub fn of(table: &Table) -> io::Result<Reader> {
        let group: &Group = table.group();
        let own = |fd: std::os::fd::BorrowedFd<'_>| fd.as_fd().try_clone_to_owned();
        let len = table_len(group.count());
        Ok(Reader {
            table: Memory::open(own(table.as_fd())?, len)?,
            frames: Memory::open(own(group.as_fd())?, group.count() * BLOCK)?,
        })
    }

    fn mapped(&self) -> Mapped {
        let count = self.frames.len() / BLOCK;
        Mapped { table: self.table.at(0), frames: self.frames.at(0), count }
    }

    /// Reads all of it, or (`false`) nothing that counts: then the kernel has to be asked.
    pub fn read(&self, ino: u64, offset: u64, target: &mut [u8]) -> bool {
        self.find(ino).is_some_and(|found| self.read_of(found, offset, target))
    }

    /// The slot of a file.
    pub(crate) fn find(&self, ino: u64) -> Option<Found> {
        self.mapped().find(ino)
    }

    /// As of a file that was found earlier.
    pub(crate) fn read_of(&self, found: Found, offset: u64, target: &mut [u8]) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        let mapped = self.mapped();
        // SAFETY: the target is as long as it says.
        let done = unsafe { mapped.read(found, target.as_mut_ptr(), target.len(), offset) };
        if mapped.is_still(found) && done {
            mapped.add_reads(target.len().div_ceil(BLOCK) as u64);
            return true;
        }
        false
    }

    /// Whether all of it could be read just now.
    pub fn has(&self, ino: u64, offset: usize, len: usize) -> bool {
        let (mapped, Some(found)) = (self.mapped(), self.find(ino)) else { return false };
        mapped.has(found, offset, len) && mapped.is_still(found)
    }

    /// Differs with each engine that takes over.
    pub fn epoch(&self) -> u64 {
        self.mapped().epoch()
    }

    /// The length of a file, if it is known here.
    pub fn size(&self, ino: u64) -> Option<u64> {
        let (mapped, found) = (self.mapped(), self.find(ino)?);
        let size = mapped.size(found);
        mapped.is_still(found).then_some(size)
    }
}
