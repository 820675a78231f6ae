//! The account of space: what is taken, what may still be taken, and the room kept for the worst
//! case.

use crate::ballast::Ballast;
use crate::room::Room;
use crate::segments::Segments;
use crate::{Error, PoolOptions, Purpose, Result};
use offshoot_os::disk::Disk;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Up to this many appended bytes, more is appended even if there seems to be no room for it.
const UNWRITTEN_MAX: u64 = 4 << 20;

/// Keeps the account. Segments report what they take.
pub(crate) struct Space {
    disk: Arc<dyn Disk>,
    room: Room,
    ballast: Ballast,
    /// Bytes of the table's files.
    table_used: AtomicU64,
}

impl Space {
    pub(crate) fn new(disk: Arc<dyn Disk>, options: &PoolOptions, table_used: u64) -> Space {
        Space {
            room: Room::new(options.reserve, options.capacity),
            ballast: Ballast::find(disk.clone(), options.ballast),
            table_used: AtomicU64::new(table_used),
            disk,
        }
    }

    /// See [`Room::available`].
    pub(crate) fn available(&self, purpose: Purpose) -> u64 {
        self.room.available(purpose)
    }

    pub(crate) fn reserve(&self) -> u64 {
        self.room.reserve()
    }

    /// What the pool may take in all.
    pub(crate) fn total(&self) -> u64 {
        self.room.total()
    }

    /// Bytes that are free on the device, the ballast not counted.
    pub(crate) fn device_free(&self) -> u64 {
        self.disk.space().map_or(0, |space| space.free)
    }

    /// What segments and table take.
    pub(crate) fn used(&self, segments: &Segments) -> u64 {
        segments.used() + self.table_used.load(Ordering::Relaxed)
    }

    /// Bytes of the table's files from now on.
    pub(crate) fn set_table(&self, bytes: u64) {
        self.table_used.store(bytes, Ordering::Relaxed);
    }

    /// Takes the device's word.
    pub(crate) fn correct(&self, segments: &Segments) {
        if let Ok(space) = self.disk.space() {
            let table = self.table_used.load(Ordering::Relaxed);
            let free = space.free + self.ballast.held();
            self.room.correct(free, segments.buffered(), self.used(segments), table);
        }
    }

    /// Takes room for what is about to be appended.
    pub(crate) fn take(&self, bytes: u64, purpose: Purpose, segments: &Segments) -> Result<()> {
        let again = |_| {
            // The estimate only shrinks between corrections.
            self.correct(segments);
            self.room.take(bytes, purpose)
        };
        self.room.take(bytes, purpose).or_else(again).or_else(|full| {
            if purpose < Purpose::Freeing {
                return Err(full);
            }
            // The device will say what there is, and then the ballast helps. What it refuses stays in memory until it
            // is written or given up, so that must not be much.
            if segments.buffered() <= UNWRITTEN_MAX { Ok(()) } else { Err(full) }
        })
    }

    /// See [`Ballast::release`].
    pub(crate) fn release_ballast(&self) -> bool {
        self.ballast.release()
    }

    /// Grows the ballast to its full size if there is room for it above the reserve.
    pub(crate) fn restore_ballast(&self) {
        self.ballast.restore(self.available(Purpose::Growth));
    }

    /// Does something that the device may have no room for, freeing another step of the ballast each
    /// time it refuses.
    pub(crate) fn with_ballast<T>(&self, attempt: impl Fn() -> Result<T>) -> Result<T> {
        loop {
            match attempt() {
                Err(Error::Full { .. }) if self.ballast.release() => {}
                other => return other,
            }
        }
    }

    /// Frees as much of the ballast as it takes for so many bytes to be free on the device. Returns
    /// whether they are; if all of it is not enough, it is kept.
    pub(crate) fn make_device_room(&self, bytes: u64) -> bool {
        if self.device_free() + self.ballast.held() < bytes {
            return false;
        }
        while self.device_free() < bytes {
            if !self.ballast.release() {
                return false;
            }
        }
        true
    }
}
