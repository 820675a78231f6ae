//! A file that only holds room.
//!
//! The reserve keeps our own writers in check, not those of others: they may fill the device to its
//! last byte, and then neither acknowledged writes nor deletions could be written. So the reserve,
//! or the first part of it, is kept in a file, which counts as free. When the device refuses a
//! write, the file is shortened step by step, and extended again once there is room above the
//! reserve.

use offshoot_os::disk::Disk;
use parking_lot::Mutex;
use std::sync::Arc;

/// Its path.
const PATH: &str = "ballast";
/// It is given up in this many steps, because others may take what is free on the device.
const STEPS: u64 = 8;

/// The file's state.
pub(crate) struct Ballast {
    disk: Arc<dyn Disk>,
    /// Bytes it should hold.
    wanted: u64,
    /// Bytes it holds.
    held: Mutex<u64>,
}

impl Ballast {
    /// Checks what the last run left of it.
    pub(crate) fn find(disk: Arc<dyn Disk>, wanted: u64) -> Ballast {
        let found = disk.open(PATH).and_then(|file| Ok(file.allocated()?.min(file.len()?)));
        Ballast { disk, wanted, held: Mutex::new(found.unwrap_or(0)) }
    }

    /// Bytes that it holds.
    pub(crate) fn held(&self) -> u64 {
        *self.held.lock()
    }

    /// Frees a step of it for the next writer. Returns whether there was one.
    pub(crate) fn release(&self) -> bool {
        let mut held = self.held.lock();
        let step = (self.wanted / STEPS).max(1);
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

    /// Grows to its full size if so many bytes above the reserve are enough for that.
    pub(crate) fn restore(&self, available: u64) {
        let mut held = self.held.lock();
        let missing = self.wanted.saturating_sub(*held);
        if missing == 0 || available < missing {
            return;
        }
        let file = match self.disk.open(PATH) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => self.disk.create(PATH),
            other => other,
        };
        match file.and_then(|file| file.allocate(0, self.wanted).and_then(|()| file.allocated())) {
            // Not every file system can hold room without writing; then it holds nothing.
            Ok(allocated) => *held = allocated.min(self.wanted),
            Err(error) => tracing::warn!(%error, "no room could be set aside in the ballast"),
        }
    }
}
