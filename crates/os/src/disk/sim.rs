//! A disk in memory that loses what it was not told to keep.

use std::sync::Arc;

/// A simulated disk (bodies follow). Coerces to `Arc<dyn Disk>`.
pub struct SimDisk {
    _private: (),
}

impl SimDisk {
    /// An empty disk; the seed decides what a crash keeps of unsynced writes.
    pub fn new(seed: u64) -> Arc<SimDisk> {
        let _ = seed;
        todo!()
    }

    /// Loses power now: every open handle and lock is dead, unsynced writes are kept, lost, reordered
    /// or torn at 512 bytes as the seed says. The disk can be opened anew at once.
    pub fn crash(&self) {
        todo!()
    }

    /// Fails every operation from the `n`-th changing operation on (write, sync, punch, create, …),
    /// counted from now, as a device does that lost power; [`SimDisk::crash`] ends that.
    pub fn crash_after(&self, n: u64) {
        let _ = n;
        todo!()
    }

    /// Changing operations done so far.
    pub fn operations(&self) -> u64 {
        todo!()
    }

    /// Limits the disk's size, in bytes; writes beyond get `StorageFull`. `None`: no limit.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        let _ = capacity;
        todo!()
    }

    /// Flips one bit, on the medium.
    pub fn flip_bit(&self, path: &str, offset: u64, bit: u8) {
        let _ = (path, offset, bit);
        todo!()
    }

    /// From now on syncs of files (and directories) whose path starts with `prefix` do nothing but
    /// say they did: what a missing flush would be. For checks that crash tests can fail.
    pub fn ignore_syncs(&self, prefix: &str) {
        let _ = prefix;
        todo!()
    }
}
