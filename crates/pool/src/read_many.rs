//! Reading many blocks at a time.
//!
//! Blocks that are near each other on disk are read together. If they are scattered over many places,
//! reading one after the other would mostly wait for the device, so parts of the work are offered to
//! other threads, which prefetch them. Nobody tracks who does what: the first thread to reach a block
//! claims it in the cache, so none is loaded twice, and a caller whose offer nobody takes does all of
//! it.
//!
//! While the device is slow (a disk, a volume with a limit of operations) a single block is read with
//! its neighbours: that costs more processor time, but no more of the device.

use crate::block::verify;
use crate::pool::Pool;
use crate::runs::{Run, runs};
use crate::table::Entry;
use crate::{BlockData, Result};
use offshoot_types::BlockHash;

/// The longest read that somebody waits for, in bytes: longer ones are no faster, and the reader waits
/// for all of it. From a slow device, and ahead of a reader, they are faster: there only the number of
/// reads counts.
const RUN_LEN_MAX: u32 = 240 << 10;
pub(crate) const RUN_LEN_MAX_AHEAD: u32 = 1 << 20;
/// Reads that a caller does one after the other instead of sharing them.
const RUNS_ALONE: usize = 8;
/// Fewest reads of a share, and most shares.
const SHARE_RUNS_MIN: usize = 4;
const SHARES_MAX: usize = 8;

impl Pool {
    /// Whether one of these blocks is not in memory.
    pub fn misses(&self, hashes: &[BlockHash]) -> bool {
        hashes.iter().any(|hash| !hash.is_zero() && !self.cache.contains(hash))
    }

    /// Whether [`Pool::read_around`] is the way to read a block: it is not in memory, and the device is
    /// slow or (`there_is_room`) its neighbours cost no other block its place.
    pub fn is_worth_its_neighbours(&self, hash: &BlockHash, there_is_room: bool) -> bool {
        (there_is_room || self.reads.are_slow()) && self.misses(&[*hash])
    }

    /// A block that is in memory. Counts nothing, and keeps it there no longer.
    pub fn in_memory(&self, hash: &BlockHash) -> Option<BlockData> {
        self.cache.peek(hash)
    }

    /// Hands a block to `take`, and brings those of `near` into the cache that are beside it on disk, with
    /// one read. Returns whether that was possible; otherwise read the block alone.
    pub fn read_around(
        &self,
        hash: &BlockHash,
        near: &[BlockHash],
        owner: u64,
        take: &mut dyn FnMut(&[u8]),
    ) -> bool {
        let wanted =
            |near: &&BlockHash| *near == hash || (!near.is_zero() && !self.cache.contains(near));
        let found = |hash: &BlockHash| Some((*hash, self.table.get(hash)?));
        let mut blocks: Vec<(BlockHash, Entry)> =
            near.iter().filter(wanted).filter_map(found).collect();
        blocks.sort_unstable_by_key(|(_, entry)| entry.place());
        let mut taken = false;
        let beside = |run: &Run<'_>| run.blocks.iter().any(|(of_run, _)| of_run == hash);
        let len_max = self.run_len_max();
        if let Some(run) = runs(&blocks, len_max).find(beside) {
            self.load_run(&run, len_max, &mut |at, content| {
                if run.blocks[at].0 == *hash {
                    taken = true;
                    self.cache.count_miss(owner);
                    take(content);
                }
            });
        }
        taken
    }

    /// Hands blocks with their indices to `take`, in no particular order; holes ([`BlockHash::ZERO`])
    /// are skipped. Blocks that are not in memory are read together where they are near each other on
    /// disk. `share` gets sets of scattered ones: if other threads [`Pool::prefetch`] them, the caller
    /// need not wait for one read after the other. `take` must not read blocks itself.
    ///
    /// # Errors
    /// As [`Pool::read`], of any of the blocks; others may have been handed out before.
    pub fn read_many(
        &self,
        hashes: &[BlockHash],
        owner: u64,
        share: &dyn Fn(Vec<BlockHash>),
        mut take: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let mut missing = Vec::new();
        for (index, hash) in hashes.iter().enumerate().filter(|(_, hash)| !hash.is_zero()) {
            match self.cache.get(hash, owner) {
                Some(block) => take(index, &block),
                None => missing.push(index),
            }
        }
        if missing.len() > 1 {
            let wanted = missing.iter().map(|index| (*index, hashes[*index]));
            let mut taken = vec![false; hashes.len()];
            self.load_many(wanted, self.run_len_max(), share, &mut |index, block| {
                self.cache.count_miss(owner);
                taken[index] = true;
                take(index, block);
            });
            missing.retain(|index| !taken[*index]);
        }
        for index in missing {
            let hash = &hashes[index];
            match self.cache.peek(hash) {
                // Others loaded it for this read.
                Some(block) => {
                    self.cache.count_miss(owner);
                    take(index, &block);
                }
                // Others load it now, there is something wrong with it, or it is the only one.
                None => take(index, &self.read(hash, owner)?),
            }
        }
        Ok(())
    }

    /// Brings blocks into the cache, neighbours on disk with one read. Holes, cached, missing and
    /// damaged blocks are skipped. Runs on the caller's thread; not counted as hits or misses.
    pub fn prefetch(&self, hashes: &[BlockHash]) {
        self.prefetch_with(hashes, &|_| {});
    }

    /// The same; of blocks in many places `share` gets sets, as in [`Pool::read_many`].
    pub fn prefetch_with(&self, hashes: &[BlockHash], share: &dyn Fn(Vec<BlockHash>)) {
        let wanted = hashes.iter().filter(|hash| !hash.is_zero() && !self.cache.contains(hash));
        let wanted = wanted.map(|hash| (0, *hash));
        self.load_many(wanted, RUN_LEN_MAX_AHEAD, share, &mut |_, _| {});
    }

    fn run_len_max(&self) -> u32 {
        if self.reads.are_slow() { RUN_LEN_MAX_AHEAD } else { RUN_LEN_MAX }
    }

    /// Brings blocks into the cache that nobody else loads, and hands them out with their numbers.
    fn load_many(
        &self,
        wanted: impl Iterator<Item = (usize, BlockHash)>,
        len_max: u32,
        share: &dyn Fn(Vec<BlockHash>),
        take: &mut dyn FnMut(usize, &[u8]),
    ) {
        let found = |(number, hash)| Some((number, (hash, self.table.get(&hash)?)));
        let mut found: Vec<(usize, (BlockHash, Entry))> = wanted.filter_map(found).collect();
        found.sort_unstable_by_key(|(_, (_, entry))| entry.place());
        let (numbers, blocks): (Vec<usize>, Vec<(BlockHash, Entry)>) = found.into_iter().unzip();
        let runs: Vec<Run<'_>> = runs(&blocks, len_max).collect();
        if runs.len() > RUNS_ALONE {
            let share_runs = runs.len().div_ceil(SHARES_MAX).max(SHARE_RUNS_MIN);
            // The first share is the caller's own.
            for others in runs.chunks(share_runs).skip(1) {
                let blocks = others.iter().flat_map(|run| run.blocks);
                share(blocks.map(|(hash, _)| *hash).collect());
            }
        }
        let mut numbers = numbers.as_slice();
        for run in &runs {
            let (of_run, others) = numbers.split_at(run.blocks.len());
            self.load_run(run, len_max, &mut |at, block| take(of_run[at], block));
            numbers = others;
        }
    }

    /// Brings those blocks of a run into the cache that nobody else loads, and hands them out with
    /// where in the run they are.
    fn load_run(&self, run: &Run<'_>, len_max: u32, take: &mut dyn FnMut(usize, &[u8])) {
        let (mut claims, mut ours) = (Vec::new(), Vec::new());
        for (at, block) in run.blocks.iter().enumerate() {
            if let Some(claim) = self.cache.claim(&block.0) {
                claims.push((at, claim));
                ours.push(*block);
            }
        }
        let mut claims = claims.into_iter();
        // Cut into runs again: if others have taken the middle, there is less to read.
        let read = || {
            for run in runs(&ours, len_max) {
                let mut claims: Vec<_> = claims.by_ref().take(run.blocks.len()).collect();
                let began = self.reads.begin();
                self.segments.with_run(run.segment, run.begin, run.end, &mut |bytes| {
                    self.reads.note(began);
                    for ((hash, entry), (at, claim)) in run.blocks.iter().zip(claims.drain(..)) {
                        let Some((frame, stored)) = run.cut(bytes, entry.place()) else { continue };
                        let Ok(stored) = self.segments.open(frame, stored) else { continue };
                        // A block that does not verify was moved or is damaged: the read will show.
                        if let Ok(content) = verify(hash, entry, stored) {
                            take(at, &content);
                            claim.fill(BlockData::new(content));
                        }
                    }
                });
            }
        };
        self.reads.urgently(read);
    }
}
