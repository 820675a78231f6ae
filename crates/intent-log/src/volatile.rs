//! The volatile log of one dataset: what is acknowledged but not yet committed, in memory that
//! outlives the engine's process.
//!
//! A write is acknowledged when it is in the engine's memory. When the engine is killed while its clients
//! live on (see `crates/delivery`), databases continue and rely on those writes; so each operation is
//! copied here before it is acknowledged. The next engine replays it over the last commit. After a power
//! loss there is no volatile log, and no database that relied on one: then the intent log on disk
//! decides.
//!
//! ```text
//! head   0  magic                      ring   records, each a multiple of 16 bytes
//!        8  version                        0 4 length of the operation
//!       16  HEAD: end of the records       4 4 CRC32C of what follows
//!       24  TAIL: their begin              8 8 number of the operation
//!       32  LAST: number of the last op   16   the operation
//!       40  number of takeovers
//!       48  entries of open files used
//!     4096  slots: finished requests
//!    64 Ki  open files: inode, count; the count's highest bit: synchronous
//! ```
//!
//! Rules:
//! - V1: a record is copied completely before HEAD moves past it: a process killed in the middle of a
//!   copy leaves nothing that counts.
//! - V2: numbers are consecutive. An operation that is not kept ([`VolatileLog::skip`]) empties the
//!   log; with LAST the reader finds that something is missing until a commit has caught up.
//! - V3: records leave only when the root that holds them is durable.
//! - V4: a request's slot is written before HEAD moves past its operation, and nobody else uses it until its answer
//!   has been given (`requests.rs`). It counts only if its operation was recovered: so a repeated request is done
//!   exactly once.
//! - V5: a count of open files is never too low. A file with a count keeps its blocks even without a
//!   name.

use crate::Error;
use crate::requests::{Request, RequestId, SLOTS};
use offshoot_os::SharedMemory;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

/// Bytes of records a log can hold.
pub const CAPACITY: u64 = RING_LEN as u64 - PAGE;

const RING_LEN: usize = 256 << 20;
/// No log gets this far in bytes, so positions below can be added to.
const POSITION_MAX: u64 = 1 << 62;
/// Memory is given back by whole pages: the page that holds TAIL must not hold new records yet.
const PAGE: u64 = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"offshvol");
/// 1 had no [`SYNCHRONOUS`].
const VERSION: u64 = 2;

const AT_MAGIC: usize = 0;
const AT_VERSION: usize = 8;
const AT_HEAD: usize = 16;
const AT_TAIL: usize = 24;
const AT_LAST: usize = 32;
const AT_TAKEOVERS: usize = 40;
const AT_OPEN_USED: usize = 48;
const AT_SLOTS: usize = 4096;
const AT_OPEN: usize = 64 << 10;
const HEAD_LEN: usize = 1 << 20;

/// Bytes of a slot: request, number of its operation, outcome, unused.
const SLOT_LEN: usize = 32;
/// Each takeover uses slots of its own, so that slots of requests that may still come again stay.
const BANKS: u64 = 16;
const OPEN_LEN: usize = 16;
const OPEN_MAX: usize = (HEAD_LEN - AT_OPEN) / OPEN_LEN;
/// Set in a count: the inode was opened for synchronous writes since it was first opened.
const SYNCHRONOUS: u64 = 1 << 63;

/// No operation is longer: writes are cut at 1 MiB.
const OPERATION_LEN_MAX: usize = 2 << 20;
const RECORD_HEADER_LEN: usize = 16;
const RECORD_ALIGN: u64 = 16;

/// The log. One dataset's operations, appended by one thread at a time.
#[derive(Debug)]
pub struct VolatileLog {
    memory: SharedMemory,
    open: Mutex<OpenFiles>,
}

/// An inode that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFile {
    /// Its number.
    pub ino: u64,
    /// By how many.
    pub count: u64,
    /// Whether one of them opened it for synchronous writes.
    pub synchronous: bool,
}

/// Where in the head the count of an inode is.
#[derive(Debug, Default)]
struct OpenFiles {
    places: HashMap<u64, usize>,
    free: Vec<usize>,
}

impl VolatileLog {
    /// An empty one.
    ///
    /// # Errors
    /// The system's.
    pub fn create() -> io::Result<Self> {
        let memory = SharedMemory::create(HEAD_LEN, RING_LEN)?;
        memory.counter(AT_MAGIC).store(MAGIC, Ordering::Relaxed);
        memory.counter(AT_VERSION).store(VERSION, Ordering::Release);
        Ok(Self::of(memory))
    }

    /// The one that an earlier engine wrote.
    ///
    /// # Errors
    /// `InvalidData` for anything else; the system's.
    pub fn open(fd: OwnedFd) -> io::Result<Self> {
        let memory = SharedMemory::open(fd, HEAD_LEN, RING_LEN)?;
        let (head, tail) = (memory.counter(AT_HEAD), memory.counter(AT_TAIL));
        let (head, tail) = (head.load(Ordering::Acquire), tail.load(Ordering::Acquire));
        let known = memory.counter(AT_MAGIC).load(Ordering::Relaxed) == MAGIC
            && (1..=VERSION).contains(&memory.counter(AT_VERSION).load(Ordering::Acquire));
        if !known || tail > head || head - tail > CAPACITY || head > POSITION_MAX {
            let reason = "no volatile log of this version";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        memory.counter(AT_VERSION).store(VERSION, Ordering::Release);
        memory.counter(AT_TAKEOVERS).fetch_add(1, Ordering::AcqRel);
        let log = Self::of(memory);
        log.read_open_files();
        Ok(log)
    }

    fn of(memory: SharedMemory) -> Self {
        VolatileLog { memory, open: Mutex::default() }
    }

    fn get(&self, at: usize) -> u64 {
        self.memory.counter(at).load(Ordering::Acquire)
    }

    fn put(&self, at: usize, value: u64) {
        self.memory.counter(at).store(value, Ordering::Release);
    }

    /// Bytes of records kept.
    pub fn used(&self) -> u64 {
        self.get(AT_HEAD).saturating_sub(self.get(AT_TAIL))
    }

    /// Keeps an operation, given in parts; if a request that must be done once asked for it, `asked` is that
    /// request and what its answer is made of. One thread at a time, in the order of numbers.
    pub fn append<'a>(
        &self,
        number: u64,
        parts: impl Iterator<Item = &'a [u8]> + Clone,
        asked: Option<(&Request<'_>, u64)>,
    ) {
        let length: usize = parts.clone().map(<[u8]>::len).sum();
        let stored = (RECORD_HEADER_LEN + length) as u64;
        let stored = stored.next_multiple_of(RECORD_ALIGN);
        let head = self.get(AT_HEAD);
        if length > OPERATION_LEN_MAX || stored > CAPACITY - (head - self.get(AT_TAIL)) {
            return self.skip(number);
        }
        let mut checksum = crc32c::crc32c(&number.to_le_bytes());
        let mut at = head + RECORD_HEADER_LEN as u64;
        for part in parts {
            checksum = crc32c::crc32c_append(checksum, part);
            self.memory.write(at, part);
            at += part.len() as u64;
        }
        let mut header = [0; RECORD_HEADER_LEN];
        header[..4].copy_from_slice(&(length as u32).to_le_bytes());
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        header[8..].copy_from_slice(&number.to_le_bytes());
        self.memory.write(head, &header);
        if let Some((request, outcome)) = asked {
            self.note_request(request, number, outcome);
        }
        // V1: now it counts.
        self.put(AT_HEAD, head + stored);
        self.put(AT_LAST, number);
    }

    /// Records that an operation is not kept: until it is committed, nobody can take over (V2).
    pub fn skip(&self, number: u64) {
        self.put(AT_LAST, number);
        self.put(AT_TAIL, self.get(AT_HEAD));
    }

    /// Forgets operations up to this number: a durable root holds them (V3). One thread at a time.
    pub fn trim(&self, applied: u64) {
        let (tail, head) = (self.get(AT_TAIL), self.get(AT_HEAD));
        let mut at = tail;
        while at < head {
            let header = self.memory.read(at, RECORD_HEADER_LEN);
            let (length, _, number) = split_header(&header);
            if number > applied {
                break;
            }
            at += ((RECORD_HEADER_LEN + length) as u64).next_multiple_of(RECORD_ALIGN);
        }
        if at == tail {
            return;
        }
        // Before new records get the room, or they would be punched out with the old ones.
        if let Err(error) = self.memory.release(tail, at) {
            tracing::debug!(%error, "memory of the volatile log is not given back");
        }
        // `skip` may have emptied it meanwhile.
        let tail = self.memory.counter(AT_TAIL);
        tail.fetch_max(at, Ordering::AcqRel);
    }

    /// Calls `apply` for every operation kept, in order.
    ///
    /// # Errors
    /// `Missing` for a damaged record, and what `apply` returns.
    pub fn replay<E: From<Error>>(
        &self,
        mut apply: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut at, head) = (self.get(AT_TAIL), self.get(AT_HEAD));
        while at < head {
            let header = self.memory.read(at, RECORD_HEADER_LEN);
            let (length, checksum, number) = split_header(&header);
            let stored = ((RECORD_HEADER_LEN + length) as u64).next_multiple_of(RECORD_ALIGN);
            if length > OPERATION_LEN_MAX || stored > head - at {
                let reason = "a volatile record has an impossible length";
                return Err(Error::Missing(reason.into()).into());
            }
            let bytes = self.memory.read(at + RECORD_HEADER_LEN as u64, length);
            let found = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &bytes);
            if found != checksum {
                return Err(Error::Missing("a volatile record is damaged".into()).into());
            }
            apply(number, &bytes)?;
            at += stored;
        }
        Ok(())
    }

    /// Number of the last operation the dataset was ever given; larger than where a replay ends if
    /// operations are missing.
    pub fn last_number(&self) -> u64 {
        self.get(AT_LAST)
    }

    /// V4.
    fn note_request(&self, request: &Request<'_>, number: u64, outcome: u64) {
        let slot = request.slot();
        let bank = (self.get(AT_TAKEOVERS) % BANKS) as usize;
        let at = AT_SLOTS + (bank * SLOTS + slot) * SLOT_LEN;
        self.put(at, 0);
        self.put(at + 8, number);
        self.put(at + 16, outcome);
        self.put(at, request.id().number());
    }

    /// Forgets requests whose operations were not recovered (V4): their numbers are reused.
    pub fn settle(&self, recovered: u64) {
        for at in slots().filter(|at| self.get(*at + 8) > recovered) {
            self.put(at, 0);
        }
    }

    /// Requests that are done but may be repeated, each with what its answer is made of.
    pub fn finished(&self) -> HashMap<RequestId, u64> {
        slots().filter_map(|at| Some((RequestId::new(self.get(at))?, self.get(at + 16)))).collect()
    }

    /// Counts one more user of an inode, who may have opened it for synchronous writes.
    pub fn opened(&self, ino: u64, synchronous: bool) {
        let mut open = self.open.lock();
        let flag = if synchronous { SYNCHRONOUS } else { 0 };
        if let Some(place) = open.places.get(&ino) {
            let count = self.memory.counter(place + 8);
            count.fetch_add(1, Ordering::AcqRel);
            count.fetch_or(flag, Ordering::AcqRel);
            return;
        }
        let place = open.free.pop().or_else(|| {
            let used = self.get(AT_OPEN_USED) as usize;
            if used >= OPEN_MAX {
                return None;
            }
            self.put(AT_OPEN_USED, used as u64 + 1);
            Some(AT_OPEN + used * OPEN_LEN)
        });
        let Some(place) = place else {
            // More files than can be counted: nobody may take over any more (V5).
            tracing::warn!("too many open files to survive the engine's end");
            return self.put(AT_OPEN_USED, u64::MAX);
        };
        self.put(place + 8, 1 | flag);
        self.put(place, ino);
        open.places.insert(ino, place);
    }

    /// Gives back one [`VolatileLog::opened`].
    pub fn closed(&self, ino: u64) {
        let mut open = self.open.lock();
        let Some(place) = open.places.get(&ino).copied() else { return };
        if self.get(place + 8) & !SYNCHRONOUS > 1 {
            self.memory.counter(place + 8).fetch_sub(1, Ordering::AcqRel);
            return;
        }
        self.put(place, 0);
        open.places.remove(&ino);
        open.free.push(place);
    }

    fn read_open_files(&self) {
        let mut open = self.open.lock();
        let used = (self.get(AT_OPEN_USED) as usize).min(OPEN_MAX);
        for place in (0..used).map(|entry| AT_OPEN + entry * OPEN_LEN) {
            match self.get(place) {
                0 => open.free.push(place),
                ino => drop(open.places.insert(ino, place)),
            }
        }
    }

    /// The inodes in use; `None` when there were more than can be counted.
    pub fn open_files(&self) -> Option<Vec<OpenFile>> {
        let open = self.open.lock();
        let counted = self.get(AT_OPEN_USED) <= OPEN_MAX as u64;
        let files = open.places.iter().map(|(ino, place)| {
            let count = self.get(place + 8);
            let synchronous = count & SYNCHRONOUS != 0;
            OpenFile { ino: *ino, count: count & !SYNCHRONOUS, synchronous }
        });
        counted.then(|| files.collect())
    }
}

impl AsFd for VolatileLog {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }
}

/// Where the slots of all takeovers are.
fn slots() -> impl Iterator<Item = usize> {
    (0..BANKS as usize * SLOTS).map(|slot| AT_SLOTS + slot * SLOT_LEN)
}

fn split_header(header: &[u8]) -> (usize, u32, u64) {
    let word = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let number = u64::from(word(8)) | u64::from(word(12)) << 32;
    (word(0) as usize, word(4), number)
}

#[cfg(test)]
mod tests;
