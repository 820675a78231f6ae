//! What a simulation did.

use std::fmt;

/// What was done, for those who count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Runs planned.
    pub seeds: u64,
    /// Losses of power.
    pub crashes: u64,
    /// Stores damaged by flipped bits.
    pub flips: u64,
    /// Steps taken on stores.
    pub steps: u64,
    /// Changing operations of disks.
    pub disk_operations: u64,
    /// Flushes that did less than they reported.
    pub weakened: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { seeds, crashes, flips, steps, disk_operations, .. } = self;
        write!(
            f,
            "{seeds} seeds, {crashes} crashes, {flips} with flipped bits, {steps} steps, \
             {disk_operations} disk operations"
        )
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.seeds += other.seeds;
        self.crashes += other.crashes;
        self.flips += other.flips;
        self.steps += other.steps;
        self.disk_operations += other.disk_operations;
        self.weakened += other.weakened;
    }
}
