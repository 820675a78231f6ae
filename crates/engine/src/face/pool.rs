//! What can be asked of the pool.

use crate::core::encryption;
use crate::jobs::pool;
use crate::jobs::scrub::{self, ScrubReport};
use crate::parts::Parts;
use crate::space::inventory::logical_bytes;
use crate::space::ledger::{self, Deletion, LedgerEntry};
use offshoot_pool::PoolStats;
use offshoot_types::{Failure, JobId};
use std::sync::Arc;

/// The pool's figures.
#[derive(Debug, Clone)]
pub struct PoolView {
    /// The store's own.
    pub stats: PoolStats,
    /// What the files of the pool directory take, in bytes; without the ballast, which is room kept free.
    pub used_bytes: u64,
    /// What all datasets would take outside the pool, in bytes.
    pub logical_bytes: u64,
    /// The id of the key that wraps that of an encrypted pool.
    pub encrypted_by: Option<String>,
    /// How many datasets there are, known to the catalog or not.
    pub datasets: u64,
    /// How many images of them.
    pub images: u64,
}

fn encrypted_by(parts: &Parts) -> Option<String> {
    let id = encryption::file::wrapped_by(&parts.paths).ok().flatten()?;
    parts.store.pool().seals().are_on().then(|| id.to_string())
}

/// The pool, as a user works with it.
pub struct Pool<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Pool<'_> {
    /// The pool's figures.
    pub fn view(&self) -> PoolView {
        let (store, datasets) = (&self.parts.store, self.parts.store.datasets());
        PoolView {
            stats: store.stats(),
            used_bytes: used_bytes(self.parts.paths.pool()),
            logical_bytes: datasets.iter().map(|one| logical_bytes(store, Some(one.id))).sum(),
            encrypted_by: encrypted_by(self.parts),
            datasets: datasets.len() as u64,
            images: store.snapshots().len() as u64,
        }
    }

    /// Gives space that nothing needs back, as a job.
    ///
    /// # Errors
    /// `Busy` if one is running.
    pub fn reclaim(&self) -> Result<JobId, Failure> {
        pool::submit_reclaim(self.parts)
    }

    /// Reads and verifies everything in the pool, as a job, at most this many bytes per second.
    ///
    /// # Errors
    /// `InvalidInput` for the rate; `Busy` if one is running.
    pub fn scrub(&self, bytes_per_s: Option<u64>) -> Result<JobId, Failure> {
        scrub::submit(self.parts, bytes_per_s)
    }

    /// The last scrub, and the known damage.
    ///
    /// # Errors
    /// The catalog's.
    pub fn last_scrub(&self) -> Result<ScrubReport, Failure> {
        scrub::report(self.parts)
    }

    /// What all objects hold of the pool, or one object and its snapshots.
    ///
    /// # Errors
    /// `NotFound` for the object.
    pub fn ledger(&self, object: Option<&str>) -> Result<Vec<LedgerEntry>, Failure> {
        ledger::list(self.parts, object)
    }

    /// What deleting objects together would free.
    ///
    /// # Errors
    /// `NotFound` for one of them.
    pub fn deletion(&self, objects: &[String]) -> Result<Deletion, Failure> {
        ledger::deletion(self.parts, objects)
    }
}

/// What the files of a directory take on disk; without mounts, the ballast and files that vanish in the
/// meantime.
fn used_bytes(dir: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name() != "run" && entry.file_name() != "ballast")
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            let below = if metadata.is_dir() { used_bytes(&entry.path()) } else { 0 };
            Some(metadata.blocks() * 512 + below)
        })
        .sum()
}
