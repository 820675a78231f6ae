//! Reads and verifies everything while the pool is in use, and checks the counts.
//!
//! A scrub goes through the segments in the order of their numbers, so it reads the device in order,
//! and a place says how far it has got. What is written after it began goes into segments that it does
//! not reach: such blocks are new, or compaction moved and verified them.

use crate::block::verify;
use crate::check::recount;
use crate::frames;
use crate::pool::Pool;
use crate::runs::{Run, runs};
use crate::table::Entry;
use crate::{Error, Result, ScrubState};
use offshoot_types::BlockHash;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Blocks of the table processed together: bounds memory to about 13 MB.
const GROUP_BLOCKS: u64 = 1 << 18;
/// The longest read: a reader that arrives during it waits for it.
const RUN_LEN_MAX: u32 = 256 << 10;
/// How often a scrub waits for readers between two reads, at most: it must finish, too.
const YIELDS_MAX: usize = 50;
const YIELD: Duration = Duration::from_millis(1);

/// Progress of a running scrub; breaking stops it.
type Tell<'a> = dyn FnMut(&ScrubState) -> ControlFlow<()> + 'a;

/// What a scrub found of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Sound,
    /// It was damaged and is stored again.
    Healed,
    Damaged,
    /// Nothing refers to it any more.
    Gone,
}

/// Keeps to a rate.
struct Pace<'a> {
    pool: &'a Pool,
    bytes_per_s: u64,
    begun: Duration,
    bytes: u64,
}

impl Pace<'_> {
    /// Pauses after so many bytes, and while readers wait for the disk.
    fn rest(&mut self, bytes: u64) {
        let clock = &self.pool.clock;
        let mut yields = 0;
        while yields < YIELDS_MAX && self.pool.reads.are_waited_for() {
            clock.sleep(YIELD);
            yields += 1;
        }
        self.bytes += bytes;
        let micros = u128::from(self.bytes) * 1_000_000 / u128::from(self.bytes_per_s.max(1));
        let due = self.begun + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        let ahead = due.saturating_sub(clock.elapsed());
        if ahead > Duration::from_millis(2) {
            clock.sleep(ahead);
        }
    }
}

impl Pool {
    /// Reads and verifies every block that was there when the scrub began, at most `bytes_per_s` fast, and
    /// heals what is damaged where there is a sound copy. `state` is where it continues: the default for a
    /// new scrub, otherwise what `tell` got last, even in an earlier run of the pool. Returns the state at
    /// the end, which is [`finished`](ScrubState::finished) unless `tell` stopped it.
    ///
    /// # Errors
    /// If a sound copy could not be stored. Damage is no error: it is in the state and in
    /// [`Pool::faults`].
    pub fn scrub(
        &self,
        mut state: ScrubState,
        bytes_per_s: u64,
        tell: &mut Tell<'_>,
    ) -> Result<ScrubState> {
        self.begin_scrub(&mut state);
        let mut pace = Pace { pool: self, bytes_per_s, begun: self.clock.elapsed(), bytes: 0 };
        'groups: loop {
            let group = self.table.by_segment(state.segment, GROUP_BLOCKS);
            if group.is_empty() {
                break;
            }
            for (segment, mut blocks) in group {
                if segment > state.until {
                    break 'groups;
                }
                if segment == state.segment {
                    blocks.retain(|(_, entry)| entry.place().offset >= state.offset);
                }
                for run in runs(&blocks, RUN_LEN_MAX) {
                    self.scrub_run(&run, &mut state)?;
                    (state.segment, state.offset) = (segment, run.end);
                    if tell(&state).is_break() {
                        return Ok(state);
                    }
                    pace.rest(u64::from(run.end - run.begin));
                }
                (state.segment, state.offset) = (segment.saturating_add(1), 0);
            }
        }
        let mut stopped = false;
        let healed = self.heal_from_dead_copies(&mut |bytes| {
            pace.rest(bytes);
            stopped = tell(&state).is_break();
            if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        state.healed += healed;
        state.damaged = state.damaged.saturating_sub(healed);
        state.finished = !stopped;
        if state.finished {
            // What went since was not to be read.
            state.total = state.bytes;
            // Everything was found: what was reported about a structure no longer holds.
            if state.damaged == 0 {
                self.faults.forget(&BlockHash::ZERO);
            }
        }
        Ok(state)
    }

    /// Says how much is to be done.
    fn begin_scrub(&self, state: &mut ScrubState) {
        let begins = *state == ScrubState::default();
        let (mut left, mut last) = (0, 0);
        self.table.visit(|_, entry| {
            let place = entry.place();
            let ahead = (place.segment, place.offset) >= (state.segment, state.offset);
            if ahead && (begins || place.segment <= state.until) {
                left += entry.room();
            }
            last = last.max(place.segment);
        });
        if begins {
            state.until = last;
        }
        state.total = state.bytes + left;
    }

    fn scrub_run(&self, run: &Run<'_>, state: &mut ScrubState) -> Result<()> {
        let bytes = self.segments.read_run(run.segment, run.begin, run.end).unwrap_or_default();
        for (hash, entry) in run.blocks {
            let sound = run.cut(&bytes, entry.place()).is_some_and(|(frame, stored)| {
                frames::check(&self.seals, frame, hash, entry).is_ok()
                    && self
                        .segments
                        .open(frame, stored)
                        .is_ok_and(|stored| verify(hash, entry, stored).is_ok())
            });
            let condition = match sound {
                true => self.found_sound(hash),
                false => self.scrub_block(hash, entry)?,
            };
            match condition {
                Condition::Gone => continue,
                Condition::Sound => {}
                Condition::Healed => state.healed += 1,
                Condition::Damaged => state.damaged += 1,
            }
            state.blocks += 1;
            state.bytes += entry.room();
        }
        Ok(())
    }

    fn found_sound(&self, hash: &BlockHash) -> Condition {
        self.faults.forget(hash);
        Condition::Sound
    }

    /// Looks at one block that could not be read with others: it may be moved, unwritten, gone or
    /// damaged.
    pub(crate) fn scrub_block(&self, hash: &BlockHash, entry: &Entry) -> Result<Condition> {
        let content = match self.load(hash) {
            Ok(content) => content,
            Err(Error::Missing(_)) => {
                self.faults.forget(hash);
                return Ok(Condition::Gone);
            }
            Err(_) => match self.cache.peek(hash) {
                Some(content) if self.heal(hash, &content)? => return Ok(Condition::Healed),
                _ => return Ok(Condition::Damaged),
            },
        };
        // Its content is right. Is its frame, which a rebuild of the table needs to find it?
        let frame = self.segments.read_frame(entry.place());
        let moved = || self.table.get(hash).is_none_or(|now| now.place() != entry.place());
        let right = |frame: Vec<u8>| frames::check(&self.seals, &frame, hash, entry).is_ok();
        if frame.is_none_or(right) || moved() {
            return Ok(self.found_sound(hash));
        }
        match self.heal(hash, &content)? {
            true => Ok(Condition::Healed),
            false => Ok(self.found_sound(hash)),
        }
    }

    /// Walks everything the root reaches and compares with the table: references, live bytes, nothing
    /// missing, nothing left over. Returns the differences. For a pool at rest: running transactions,
    /// pins and queued dead nodes count only as blocks without references.
    pub fn check(&self) -> Result<Vec<String>> {
        let journal = self.durable.journal();
        let mut problems = recount(&self.table, journal.root.hash, &|hash| self.children_of(hash));
        let (mut live, mut in_table) = (0, 0);
        self.table.visit(|_, entry| {
            in_table += entry.room();
            if entry.is_committed() && entry.refs > 0 {
                live += entry.room();
            }
        });
        let counted = self.table.totals.live.load(Ordering::Relaxed);
        if live != counted {
            problems.push(format!("{live} bytes are live, {counted} are counted"));
        }
        let in_segments: u64 = self.segments.summaries().iter().map(|of| of.live).sum();
        if in_segments != in_table {
            problems.push(format!("segments count {in_segments} bytes, the table {in_table}"));
        }
        Ok(problems)
    }
}
