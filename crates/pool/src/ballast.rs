//! A file that only holds room.
//!
//! The reserve keeps our own writers in check, not those of others: they may fill the device to its
//! last byte, and then neither what a database has acknowledged nor a deletion could be written. So
//! the reserve, or the first part of it, is kept in a file, which counts as free. Where the device
//! refuses, it is made shorter step by step, and longer again once there is room above the reserve.

use crate::pool::Pool;
use crate::{Error, Purpose, Result};
use offshoot_os::disk::Disk;
use parking_lot::Mutex;

/// Its path.
const PATH: &str = "ballast";
/// It is given up in this many steps: what is free on the device others may take.
const STEPS: u64 = 8;

/// The file's state.
pub(crate) struct Ballast {
    /// Bytes it should hold.
    wanted: u64,
    /// Bytes it holds.
    held: Mutex<u64>,
}

impl Ballast {
    /// Looks what the last run left of it.
    pub(crate) fn find(disk: &dyn Disk, wanted: u64) -> Ballast {
        let found = disk.open(PATH).and_then(|file| Ok(file.allocated()?.min(file.len()?)));
        Ballast { wanted, held: Mutex::new(found.unwrap_or(0)) }
    }
}

impl Pool {
    /// Bytes that the ballast holds.
    pub(crate) fn ballast(&self) -> u64 {
        *self.ballast.held.lock()
    }

    /// Gives a step of the ballast to whoever takes it next: before something is written that must
    /// be. Whether there was one.
    pub fn release_ballast(&self) -> bool {
        let mut held = self.ballast.held.lock();
        let step = (self.ballast.wanted / STEPS).max(1);
        let left = held.saturating_sub(step) / step * step;
        if *held == 0 {
            return false;
        }
        if let Err(error) = self.disk.open(PATH).and_then(|file| file.set_len(left)) {
            tracing::warn!(%error, "the ballast cannot be given up");
            return false;
        }
        tracing::warn!(left, "the device is full: a part of the ballast is given up");
        *held = left;
        true
    }

    /// Does what the device may have no room for; with a step of the ballast more as long as it refuses.
    pub(crate) fn with_ballast<T>(&self, attempt: impl Fn() -> Result<T>) -> Result<T> {
        loop {
            match attempt() {
                Err(Error::Full { .. }) if self.release_ballast() => {}
                other => return other,
            }
        }
    }

    /// Gives as much of the ballast as it takes for so many bytes to be free on the device. Whether they
    /// are; where all of it would not do, it is kept.
    pub(crate) fn make_device_room(&self, bytes: u64) -> bool {
        if self.device_free() + self.ballast() < bytes {
            return false;
        }
        while self.device_free() < bytes {
            if !self.release_ballast() {
                return false;
            }
        }
        true
    }

    /// Holds what the ballast should, where there is room for it.
    pub(crate) fn restore_ballast(&self) {
        let wanted = self.ballast.wanted;
        let mut held = self.ballast.held.lock();
        let missing = wanted.saturating_sub(*held);
        if missing == 0 || self.available(Purpose::Growth) < missing {
            return;
        }
        let file = match self.disk.open(PATH) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.disk.create(PATH),
            other => other,
        };
        match file.and_then(|file| file.allocate(0, wanted).and_then(|()| file.allocated())) {
            // Not every file system can hold room without writing; then it holds nothing.
            Ok(allocated) => *held = allocated.min(wanted),
            Err(error) => tracing::warn!(%error, "no room could be set aside in the ballast"),
        }
    }
}
