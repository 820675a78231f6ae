//! Background work: releasing dead trees, giving space back, compaction, checkpoints.

use crate::background::{Next, REST};
use crate::block::{name_of, verify};
use crate::frames;
use crate::journal::{RECORD_LEN, write_checkpoint};
use crate::pool::Pool;
use crate::segments::SegmentSummary;
use crate::table::{Move, Place};
use crate::{Error, Purpose, Result};
use offshoot_format::segment::{BlockKind, Codec, FRAME_LEN, Frame, Layout, PAGE_LEN};
use offshoot_types::BlockHash;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Dead nodes whose children one step releases: bounds how long a commit waits for it.
const DEAD_STEP: usize = 128;
/// Holes one step punches.
const PUNCH_STEP: usize = 256;
/// Bytes compaction reads at a time.
const WINDOW_LEN: u32 = 1 << 20;
/// Bytes compaction copies before it commits their new places, at most.
const MOVE_BATCH_LEN: u64 = 8 << 20;
/// Dead bytes of the open segment that are left there when room is short.
const SHORT_DEAD_MAX: u64 = 128 << 10;
/// Share of what a segment takes that must be dead for compaction, in 64ths: as long as there is
/// room, and when there is none. Each byte given back costs reading and writing 1 or 31.
const DEAD_SHARE_ROOMY: u64 = 32;
const DEAD_SHARE_SHORT: u64 = 2;
/// Compaction becomes thorough, step by step, when less than this share of the pool is left.
const ROOMY_SHARE: u64 = 10;
/// It no longer spares the device when less than this share is left: writers wait for it.
const HASTE_SHARE: u64 = 64;
/// Dead pages are kept to be overwritten when less than this share of the pool is left, and at most this share of
/// the pool.
const SPARE_BELOW_SHARE: u64 = 2;
const SPARE_SHARE: u64 = 64;
/// Rests without any write after which the pool counts as quiet: what is kept for new pages is given back.
const QUIET_RESTS: u32 = 20;

/// How a step goes about it.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// Somebody waits for it.
    Asked,
    /// In the background of others' work.
    Busy,
    /// Nobody has written anything for a while.
    Quiet,
}

impl Pool {
    /// Starts the thread that repeats [`Pool::reclaim_step`].
    pub(crate) fn start_reclaim(self: &Arc<Self>) -> Result<()> {
        let pool = Arc::downgrade(self);
        let (mut rests, mut added) = (0, 0);
        self.background.start(move || {
            let Some(pool) = pool.upgrade() else { return Next::Never };
            let before = std::mem::replace(&mut added, pool.segments.added());
            rests = if before == added { rests } else { 0 };
            let pace = if rests < QUIET_RESTS { Pace::Busy } else { Pace::Quiet };
            let more = pool.step(pace).unwrap_or_else(|error| {
                if pool.durable.check_usable().is_ok() {
                    tracing::warn!(%error, "reclaiming space failed; it is tried again");
                }
                false
            });
            rests += u32::from(!more);
            if more { Next::More } else { Next::Rest }
        })
    }

    /// One bounded piece of background work: releases children of dead nodes, punches holes, deletes
    /// dead segments, compacts one segment, writes a checkpoint when due. Whether more is left.
    pub fn reclaim_step(&self) -> Result<bool> {
        self.step(Pace::Asked)
    }

    /// A part that fails for lack of room does not stop the others: they may free some.
    fn step(&self, pace: Pace) -> Result<bool> {
        self.durable.check_usable()?;
        self.settle_root()?;
        let mut full = Ok(());
        let mut tried = |part: Result<bool>| match part {
            Err(error @ Error::Full { .. }) => {
                full = Err(error);
                Ok(false)
            }
            other => other,
        };
        let buried = tried(self.bury_next())?;
        let dead_left = self.dead.len() > 0;
        tried(self.checkpoint_if_due(!dead_left).map(|()| false))?;
        // In the reserve every byte counts.
        let short = self.available(Purpose::Growth) == 0;
        let dead_max = if short { SHORT_DEAD_MAX } else { u64::MAX };
        let min = (self.options.segment_size / 128).max(64 << 10) as u32;
        self.segments.seal_if_mostly_dead(min, dead_max);
        // Left by an abort: no commit has written it since.
        if self.segments.sealed_unwritten() {
            tried(self.flush_segments().map(|()| true))?;
        }
        let deleted = self.segments.delete_dead()?;
        self.segments.limit_spares(if short { 0 } else { self.spares_wanted(pace) });
        // A hole may itself need room, for the filesystem's records.
        let punch = || self.segments.punch(PUNCH_STEP);
        let punches_left = tried(self.space.with_ballast(punch))?;
        // What is buried first is then dead, and need not be moved.
        let compacted = !(buried && dead_left) && tried(self.compact_one(pace != Pace::Asked))?;
        self.space.correct(&self.segments);
        self.space.restore_ballast();
        full.map(|()| dead_left || punches_left || deleted || compacted)
    }

    /// Takes back a root that may have become durable, before anything is given back.
    fn settle_root(&self) -> Result<()> {
        if !self.segments.holds_dead() {
            return Ok(());
        }
        let mut journal = self.durable.journal();
        let outcome = journal.settle();
        self.check_outcome(&journal, outcome)
    }

    /// Releases the children of the dead nodes at the front of the queue. Whether there were any.
    fn bury_next(&self) -> Result<bool> {
        self.dead.bury(DEAD_STEP, |dead| {
            // Reading them here keeps the commit lock short.
            self.prefetch(dead);
            self.bury(dead)
        })
    }

    /// Rewrites the table when its logs are longer than it is; in an `idle` pool, as soon as most of
    /// its files is about blocks that are gone.
    fn checkpoint_if_due(&self, idle: bool) -> Result<()> {
        let ticket = {
            let mut journal = self.durable.journal();
            let log_min = self.options.checkpoint_log_min;
            let needed = self.table.totals.blocks.load(Ordering::Relaxed) * RECORD_LEN;
            let wasted = journal.used().saturating_sub(needed) > needed.max(log_min / 8);
            let due = journal.checkpoint_due(log_min) || (idle && wasted);
            // Its logs may grow until there is room for both tables.
            let room = self.available(Purpose::Freeing) >= needed;
            if !due || !room || !self.space.make_device_room(needed) {
                return Ok(());
            }
            journal.begin_checkpoint()?
        };
        let len = write_checkpoint(&*self.disk, &self.seals, ticket, &self.table)?;
        let mut journal = self.durable.begin()?;
        let outcome = journal.finish_checkpoint(ticket, len);
        self.durable.publish_txg(journal.root.txg);
        self.space.set_table(journal.used());
        self.check_outcome(&journal, outcome)?;
        self.durable.count_checkpoint();
        Ok(())
    }

    /// Moves what is live out of the emptiest segment. Returns whether one was worth it.
    fn compact_one(&self, paced: bool) -> Result<bool> {
        let Some(_alone) = self.compaction.alone.try_lock() else {
            // Two threads would copy the same. A thread that waits here looks for room again
            // afterwards.
            drop(self.compaction.alone.lock());
            return Ok(true);
        };
        let room = self.available(Purpose::Freeing) / 2;
        let dead_share = self.dead_share_wanted();
        let punches = self.segments.can_punch();
        let worth = |of: &SegmentSummary| {
            // Holes and overwritten dead pages already give their space back; below an eighth the file itself is
            // a burden.
            let taken = u64::from(of.len).saturating_sub(of.punched + of.spare);
            let dead = taken.saturating_sub(of.live);
            // What was moved frees its room batch by batch.
            let needed = if punches { 0 } else { of.live };
            of.sealed
                && of.movable
                && of.live > 0
                && (dead * 2 > taken
                    || of.live * 8 < u64::from(of.len)
                    || (dead * 64 > taken * dead_share && needed < room))
        };
        let summaries = self.segments.summaries();
        let Some(emptiest) = summaries.iter().filter(|of| worth(of)).min_by_key(|of| of.live)
        else {
            return Ok(false);
        };
        let moved = self.compact(emptiest, paced)?;
        if !moved {
            self.segments.mark_stuck(emptiest.number);
        }
        let deleted = self.segments.delete_dead()?;
        Ok(moved || deleted)
    }

    /// Bytes of dead pages to be kept for new ones: if there is much room, it is better to write new pages side
    /// by side.
    fn spares_wanted(&self, pace: Pace) -> u64 {
        let total = self.space.total();
        let tight = self.available(Purpose::Growth) < total / SPARE_BELOW_SHARE;
        match pace {
            Pace::Busy if tight => self.options.spare.unwrap_or(total / SPARE_SHARE),
            // An explicit request wants all of it back.
            Pace::Busy | Pace::Asked => self.options.spare.unwrap_or(0),
            Pace::Quiet => 0,
        }
    }

    /// What share of a segment must be dead for compaction, in 64ths: the less room is left, the less.
    fn dead_share_wanted(&self) -> u64 {
        let roomy = (self.space.total() / ROOMY_SHARE).max(1);
        let left = self.available(Purpose::Growth).min(roomy);
        let range = DEAD_SHARE_ROOMY - DEAD_SHARE_SHORT;
        DEAD_SHARE_SHORT + (u128::from(range) * u128::from(left) / u128::from(roomy)) as u64
    }

    /// Moves the live blocks of a segment; whether any was.
    fn compact(&self, of: &SegmentSummary, paced: bool) -> Result<bool> {
        let mut moves = Vec::new();
        let moved = self.copy_live(of, paced, &mut moves);
        // After an error, copies that were not committed are useless.
        moves.iter().for_each(|(_, moved)| self.segments.release(moved.to));
        moved
    }

    fn copy_live(
        &self,
        of: &SegmentSummary,
        paced: bool,
        moves: &mut Vec<(BlockHash, Move)>,
    ) -> Result<bool> {
        let (mut moved, mut batch) = (false, 0);
        let batch_max = MOVE_BATCH_LEN.min(self.available(Purpose::Freeing) / 4);
        let mut window = Window::default();
        let mut at = of.layout.begin();
        while at < of.len {
            if let Some(end) = self.segments.dead_until(of.number, at) {
                at = end;
                continue;
            }
            let Some(frame) = window.frame(self, of, at) else {
                // Without its header the next block cannot be found. Blocks moved so far are safe.
                self.segments.mark_damaged(of.number);
                let detail = format!("segment {} has no frame at byte {at}", of.number);
                self.faults.add_structure(BlockHash::ZERO, &detail);
                break;
            };
            let (stored_len, layout) = (frame.stored_len, of.layout);
            let place = Place { segment: of.number, offset: at, stored_len, layout };
            at = place.end();
            let frame_len = layout.frame_len();
            let block = window.get(self, of, place.offset, frame_len + stored_len);
            let Some((header, stored)) = block.map(|block| block.split_at(frame_len as usize))
            else {
                continue;
            };
            let Ok(stored) = self.segments.open(header, stored) else {
                // Reading it by its name, which nobody knows here, reports it as damaged.
                self.segments.mark_damaged(of.number);
                continue;
            };
            if let Some(to) = self.copy_block(&frame, place, &stored)? {
                moves.push((frame.hash, Move { from: place, to, codec: frame.codec }));
                batch += u64::from(place.room());
            }
            if batch >= batch_max {
                self.finish_moves(of, moves, &mut batch, paced)?;
                moved = true;
                if paced && self.background.stopped() {
                    return Ok(false);
                }
            }
        }
        moved |= !moves.is_empty();
        self.finish_moves(of, moves, &mut batch, paced)?;
        Ok(moved)
    }

    /// Appends a block again if it is live here and sound.
    fn copy_block(&self, frame: &Frame, place: Place, stored: &[u8]) -> Result<Option<Place>> {
        let Some(entry) = self.table.get(&frame.hash) else { return Ok(None) };
        if entry.place() != place || !entry.is_committed() || entry.is_dying() {
            return Ok(None);
        }
        if let Err(detail) = verify(&frame.hash, &entry, stored.to_vec()) {
            let error = Error::Damaged { hash: frame.hash, detail };
            self.faults.add(frame.hash, &entry, &error);
            self.segments.mark_damaged(place.segment);
            return Ok(None);
        }
        self.space.take(u64::from(place.room()), Purpose::Freeing, &self.segments)?;
        self.segments.append(frame, stored).map(Some)
    }

    fn finish_moves(
        &self,
        of: &SegmentSummary,
        moves: &mut Vec<(BlockHash, Move)>,
        batch: &mut u64,
        paced: bool,
    ) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        // ORDER 1 for the copies.
        self.flush_segments()?;
        self.move_blocks(&std::mem::take(moves))?;
        self.compaction.moved.fetch_add(*batch, Ordering::Relaxed);
        // A segment larger than the room that is left frees its own piece by piece; others free it
        // as a whole, which is cheaper.
        if of.live >= self.available(Purpose::Freeing) / 2 {
            self.space.with_ballast(|| self.segments.punch(usize::MAX))?;
            self.space.correct(&self.segments);
        }
        if paced && self.available(Purpose::Growth) > self.space.total() / HASTE_SHARE {
            let rate = self.options.compaction_rate.max(1);
            self.clock.sleep(Duration::from_micros(*batch * 1_000_000 / rate).min(REST));
        }
        *batch = 0;
        Ok(())
    }
}

/// A part of a segment in memory.
#[derive(Default)]
struct Window {
    begin: u32,
    bytes: Vec<u8>,
}

impl Window {
    /// What is known about the block that begins at `at`; for a page, the name of its present
    /// content.
    fn frame(&mut self, pool: &Pool, of: &SegmentSummary, at: u32) -> Option<Frame> {
        match of.layout {
            Layout::Frames => {
                let header: [u8; FRAME_LEN as usize] =
                    self.get(pool, of, at, FRAME_LEN)?.try_into().ok()?;
                frames::identify(&pool.seals, &header, |len| {
                    self.get(pool, of, at + FRAME_LEN, len)
                })
            }
            Layout::Pages => {
                let (kind, codec) = (BlockKind::Data, Codec::Page);
                let hash = name_of(kind, self.get(pool, of, at, PAGE_LEN)?);
                Some(Frame { hash, kind, codec, stored_len: PAGE_LEN, raw_len: PAGE_LEN })
            }
        }
    }

    /// `len` bytes at `at`, read ahead when they are not in memory.
    fn get(&mut self, pool: &Pool, of: &SegmentSummary, at: u32, len: u32) -> Option<&[u8]> {
        let end = at.checked_add(len).filter(|end| *end <= of.len)?;
        if at < self.begin || end > self.begin + self.bytes.len() as u32 {
            let until = of.len.min(at + WINDOW_LEN.max(len));
            self.bytes = pool.segments.read_run(of.number, at, until)?;
            self.begin = at;
        }
        let from = (at - self.begin) as usize;
        self.bytes.get(from..from + len as usize)
    }
}
