//! Reading many blocks at a time.
//!
//! Blocks that are near each other on disk are read together. Where they are scattered over many
//! places, one read after the other would wait for the device most of the time: parts of the work are
//! offered to others, who prefetch them meanwhile. Nobody keeps account of who does what: each block
//! is claimed in the cache by whoever comes to it first, so none is loaded twice, and a caller whose
//! offer nobody takes does it all by itself.

use crate::pool::{Pool, Run, runs, verify};
use crate::table::Entry;
use crate::{BlockData, Result};
use offshoot_cache::Claim;
use offshoot_types::BlockHash;
use std::sync::atomic::Ordering;

/// The longest read, in bytes: longer ones are no faster, and others wait for all of it.
const RUN_LEN_MAX: u32 = 240 << 10;
/// Reads that a caller does one after the other rather than share them.
const RUNS_ALONE: usize = 8;
/// Fewest reads of a share, and most shares.
const SHARE_RUNS_MIN: usize = 4;
const SHARES_MAX: usize = 8;

impl Pool {
    /// Hands blocks with their indices to `take`, in no particular order; holes ([`BlockHash::ZERO`])
    /// are passed over. Blocks that are not in memory are read together where they are near each other
    /// on disk. Of scattered ones `share` gets sets: to [`Pool::prefetch`] them on other threads saves
    /// the caller waiting for one read after the other.
    ///
    /// # Errors
    /// As [`Pool::read`], of any of the blocks; others may have been handed out before.
    pub fn read_many(
        &self,
        hashes: &[BlockHash],
        owner: u64,
        share: &dyn Fn(Vec<BlockHash>),
        mut take: impl FnMut(usize, &BlockData),
    ) -> Result<()> {
        let mut missing = Vec::new();
        for (index, hash) in hashes.iter().enumerate().filter(|(_, hash)| !hash.is_zero()) {
            match self.cache.get(hash, owner) {
                Some(block) => take(index, &block),
                None => missing.push(index),
            }
        }
        if missing.len() > 1 {
            self.load_missing(missing.iter().map(|index| hashes[*index]), share);
        }
        for index in missing {
            let hash = &hashes[index];
            match self.cache.take_loaded(hash, owner) {
                Some(block) => take(index, &block),
                // Others load it, there is something wrong with it, or the cache is too small.
                None => take(index, &self.read(hash, owner)?),
            }
        }
        Ok(())
    }

    /// Brings blocks into the cache, neighbours on disk with one read. Holes, cached, missing and
    /// damaged blocks are passed over. Runs on the caller's thread; not counted as hits or misses.
    pub fn prefetch(&self, hashes: &[BlockHash]) {
        let wanted = hashes.iter().filter(|hash| !hash.is_zero() && !self.cache.contains(hash));
        self.load_missing(wanted.copied(), &|_| {});
    }

    fn load_missing(
        &self,
        hashes: impl Iterator<Item = BlockHash>,
        share: &dyn Fn(Vec<BlockHash>),
    ) {
        let mut wanted: Vec<(BlockHash, Entry)> =
            hashes.filter_map(|hash| Some((hash, self.table.get(&hash)?))).collect();
        wanted.sort_unstable_by_key(|(_, entry)| entry.place());
        let runs: Vec<Run<'_>> = runs(&wanted, RUN_LEN_MAX).collect();
        if runs.len() > RUNS_ALONE {
            let share_runs = runs.len().div_ceil(SHARES_MAX).max(SHARE_RUNS_MIN);
            // The first share is the caller's own.
            for others in runs.chunks(share_runs).skip(1) {
                let blocks = others.iter().flat_map(|run| run.blocks);
                share(blocks.map(|(hash, _)| *hash).collect());
            }
        }
        self.readers.fetch_add(1, Ordering::Relaxed);
        runs.iter().for_each(|run| self.load_run(run));
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Brings those blocks of a run into the cache that nobody else loads.
    fn load_run(&self, run: &Run<'_>) {
        let claim = |of: &(BlockHash, Entry)| Some((*of, self.cache.claim(&of.0)?));
        let (ours, claims): (Vec<(BlockHash, Entry)>, Vec<Claim<'_>>) =
            run.blocks.iter().filter_map(claim).unzip();
        let mut claims = claims.into_iter();
        // Again into runs: where others have taken the middle, there is less to read.
        for run in runs(&ours, RUN_LEN_MAX) {
            let bytes = self.segments.read_run(run.segment, run.begin, run.end);
            for ((hash, entry), claim) in run.blocks.iter().zip(claims.by_ref()) {
                let stored = bytes.as_ref().and_then(|bytes| run.cut(bytes, entry.place()));
                // One that does not verify was moved, or is damaged: the read will tell.
                let content = stored.and_then(|(_, stored)| verify(hash, entry, stored).ok());
                if let Some(content) = content {
                    claim.fill(BlockData::new(content));
                }
            }
        }
    }
}
