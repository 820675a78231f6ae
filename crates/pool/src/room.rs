//! How much writers may still take.

use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// The least that is kept free by default, in bytes.
const RESERVE_MIN: u64 = 64 << 20;

/// An estimate of the room above the reserve, corrected from the device now and then.
pub(crate) struct Room {
    reserve: Option<u64>,
    capacity: Option<u64>,
    available: AtomicU64,
    /// What the pool may take in all, as last seen.
    total: AtomicU64,
}

impl Room {
    pub(crate) fn new(reserve: Option<u64>, capacity: Option<u64>) -> Room {
        Room { reserve, capacity, available: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// Takes the device's word: `free` bytes free on it, of which `buffered` are spoken for, and
    /// `used` (those included) taken by the pool.
    pub(crate) fn correct(&self, free: u64, buffered: u64, used: u64) {
        let mut free = free.saturating_sub(buffered);
        if let Some(capacity) = self.capacity {
            free = free.min(capacity.saturating_sub(used));
        }
        let total = used + free;
        let reserve = self.reserve.unwrap_or_else(|| RESERVE_MIN.max(total / 100));
        self.total.store(total, Ordering::Relaxed);
        self.available.store(free.saturating_sub(reserve), Ordering::Relaxed);
    }

    pub(crate) fn available(&self) -> u64 {
        self.available.load(Ordering::Relaxed)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Takes room. One that is `freeing` may go below what is available: into the reserve.
    pub(crate) fn take(&self, bytes: u64, freeing: bool) -> Result<()> {
        let taken = self.available.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            if freeing { Some(left.saturating_sub(bytes)) } else { left.checked_sub(bytes) }
        });
        match taken {
            Ok(_) => Ok(()),
            Err(available) => Err(Error::Full { needed: bytes, available }),
        }
    }
}
