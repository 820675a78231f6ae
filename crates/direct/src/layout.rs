//! Where things are in the memory that engine and servers share, as both sides see it. The client library is compiled
//! with this file, too, so it uses nothing but `core`.
//!
//! ```text
//! tables (of one mount)                                frames (of one trust group)
//!        0  header: magic, version, epoch, frames      0  frame 0: a block of 8 KiB
//!     4096  slots: a file each, found by its inode     …
//!    1 MiB  entries: a word for each block of a file
//!    then   marks: a byte for each frame
//!    then   a page with a counter: blocks that were read directly
//! ```
//! A client maps the marks writable, everything else for reading. What it writes into marks, or writes anywhere by other
//! means, makes its own reads wrong or slow and nobody else's: the engine reads nothing from here but marks.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

/// The unit in which memory is mapped.
pub const PAGE: usize = 4096;
/// Bytes of a block, and of a frame.
pub const BLOCK: usize = 8192;
/// At the beginning of every table.
pub const MAGIC: u64 = u64::from_le_bytes(*b"offshdir");
/// Of layout and protocol. A client of another version does without.
pub const VERSION: u64 = 1;

/// Where the slots begin.
pub const SLOTS_AT: usize = 4096;
/// How many files of a mount can be read directly at a time.
pub const SLOTS: usize = 12_288;
/// A file is in one of this many slots after the one that its inode's number leads to.
pub const PROBES: usize = 32;
/// Where the entries begin.
pub const ENTRIES_AT: usize = 1 << 20;
/// Bytes of addresses for entries: as many as 2 TiB of files have. Memory is used where there are entries.
pub const ENTRIES_LEN: usize = 2 << 30;
/// Where the marks begin.
pub const MARKS_AT: usize = ENTRIES_AT + ENTRIES_LEN;
/// The unit in which entries are given to files.
pub const UNIT: usize = 64;
/// The most entries of a file: PostgreSQL's files have up to 1 GiB.
pub const ENTRIES_MAX: usize = 1 << 17;

/// The beginning of a table.
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU64,
    /// Differs with each engine that takes over; never 0.
    pub epoch: AtomicU64,
    /// How many frames, and marks, there are.
    pub frames: AtomicU64,
}

/// A file.
#[repr(C, align(32))]
pub struct Slot {
    /// Its inode; 0: nobody's.
    pub ino: AtomicU64,
    /// Its length in bytes.
    pub size: AtomicU64,
    /// Where its entries are: [`Place`].
    pub place: AtomicU64,
    /// Rises whenever the slot changes hands.
    pub generation: AtomicU32,
}

const _: () = assert!(SLOTS_AT + (SLOTS + PROBES) * size_of::<Slot>() <= ENTRIES_AT);

/// Where an inode's slot may begin. Files that were made one after the other are on few pages.
pub fn first_slot(ino: u64) -> usize {
    (ino % SLOTS as u64) as usize
}

/// Where a file's entries are, in one word: the first unit, the number of entries as a power of two, and a number that
/// rises when it changes. Zero: it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The first unit.
    pub unit: u32,
    /// The binary logarithm of the number of entries.
    pub log: u8,
    /// Tells it from an earlier one.
    pub turn: u32,
}

impl Place {
    /// As a word.
    pub fn word(self) -> u64 {
        u64::from(self.unit) | u64::from(self.log & 63) << 32 | u64::from(self.turn) << 38 | 1 << 63
    }

    /// From a word; nothing where there are no entries.
    pub fn of(word: u64) -> Option<Place> {
        let turn = ((word >> 38) & 0x1FF_FFFF) as u32;
        (word >> 63 == 1).then_some(Place { unit: word as u32, log: (word >> 32) as u8 & 63, turn })
    }

    /// The number of the first entry, and how many there are; nothing for what lies outside.
    pub fn entries(self) -> Option<(usize, usize)> {
        let first = self.unit as usize * UNIT;
        let count = 1_usize.checked_shl(u32::from(self.log))?;
        let end = first.checked_add(count)?;
        (count <= ENTRIES_MAX && end <= ENTRIES_LEN / 8).then_some((first, count))
    }
}

/// What an entry says: the frame of a block, if it is in one, and how often the entry has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// The frame.
    pub fn frame(self) -> Option<u32> {
        (self.0 as u32).checked_sub(1)
    }

    /// The next one after this.
    pub fn next(self, frame: Option<u32>) -> Entry {
        let turn = (self.0 >> 32).wrapping_add(1) & 0xFFFF_FFFF;
        Entry(turn << 32 | u64::from(frame.map_or(0, |frame| frame + 1)))
    }
}

/// Where the counter of blocks read directly is, with so many frames.
pub fn count_at(frames: usize) -> usize {
    MARKS_AT + frames.next_multiple_of(PAGE)
}

/// Bytes of all of it, with so many frames.
pub fn table_len(frames: usize) -> usize {
    count_at(frames) + PAGE
}

/// A byte for a frame: whether it was read lately.
pub type Mark = AtomicU8;

/// `_IOR('o', 0xD1, u64)`: asks for a file to be read directly.
pub const ASK: u32 = 2 << 30 | 8 << 16 | 0x6F << 8 | 0xD1;
/// What the engine answers.
pub const ANSWER: u64 = u64::from_le_bytes(*b"directly");
