//! How much writers may still take, and who may use the reserve.
//!
//! The reserve is the last room of the device, or of what the pool may take of it. It is used up in
//! slices, so that what matters most continues when the rest has been stopped:
//!
//! ```text
//!   free  ────────────────┬───────────┬───────────┬───────────┬───────────┐ 0
//!         everything      │ Rewrite   │ Log       │ Stream    │ Freeing   │
//!                         └ reserve   └ 3/4       └ 1/2       └ 1/4       ┘
//! ```
//! A [`Purpose`] may use what is left of it, down to where the next one's slice begins.

use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// The least that is kept free by default, in bytes.
const RESERVE_MIN: u64 = 64 << 20;

/// What room is needed for. Each may go deeper into the reserve than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Files that grow, and everything new.
    Growth,
    /// Content instead of other content.
    Rewrite,
    /// What a running server cannot continue without.
    Log,
    /// What a source sends and will not keep for ever.
    Stream,
    /// What was admitted before, deletions, and whatever frees room.
    Freeing,
}

impl Purpose {
    /// What it must leave of a reserve of `reserve` bytes.
    fn floor(self, reserve: u64) -> u64 {
        match self {
            Purpose::Growth => reserve,
            Purpose::Rewrite => reserve / 4 * 3,
            Purpose::Log => reserve / 2,
            Purpose::Stream => reserve / 4,
            Purpose::Freeing => 0,
        }
    }
}

/// An estimate of the room that is free, corrected from the device now and then.
pub(crate) struct Room {
    wanted_reserve: Option<u64>,
    capacity: Option<u64>,
    free: AtomicU64,
    reserve: AtomicU64,
    /// What the pool may take in all, as last seen.
    total: AtomicU64,
}

impl Room {
    pub(crate) fn new(reserve: Option<u64>, capacity: Option<u64>) -> Room {
        Room {
            wanted_reserve: reserve,
            capacity,
            free: AtomicU64::new(0),
            reserve: AtomicU64::new(0),
            total: AtomicU64::new(0),
        }
    }

    /// Updates from the device: `free` bytes are free on it, of which `buffered` are already
    /// promised; the pool takes `used` (including those), `table` of them for the table's files.
    pub(crate) fn correct(&self, free: u64, buffered: u64, used: u64, table: u64) {
        let mut free = free.saturating_sub(buffered);
        if let Some(capacity) = self.capacity {
            free = free.min(capacity.saturating_sub(used));
        }
        let total = used + free;
        // A new checkpoint of the table is written beside the old one.
        let default = || RESERVE_MIN.max(total / 100) + table;
        self.total.store(total, Ordering::Relaxed);
        self.reserve.store(self.wanted_reserve.unwrap_or_else(default), Ordering::Relaxed);
        self.free.store(free, Ordering::Relaxed);
    }

    pub(crate) fn available(&self, purpose: Purpose) -> u64 {
        let floor = purpose.floor(self.reserve.load(Ordering::Relaxed));
        self.free.load(Ordering::Relaxed).saturating_sub(floor)
    }

    pub(crate) fn reserve(&self) -> u64 {
        self.reserve.load(Ordering::Relaxed)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes room.
    pub(crate) fn take(&self, bytes: u64, purpose: Purpose) -> Result<()> {
        let floor = purpose.floor(self.reserve.load(Ordering::Relaxed));
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
            free.checked_sub(bytes).filter(|left| *left >= floor)
        });
        match taken {
            Ok(_) => Ok(()),
            Err(free) => Err(Error::Full { needed: bytes, available: free.saturating_sub(floor) }),
        }
    }
}
