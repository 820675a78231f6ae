//! Segment files: append blocks, read them back, and know what is dead in each file.
//!
//! ```text
//!            ┌───────────────────── Segments ────────────────────┐
//!   append ─▶│ Appending: buffers, flush   DeadSpace: holes,     │◀─ release
//!    flush ─▶│                             pages to write over   │◀─ punch
//!     read ─▶│ Reading: open files         Files: every segment  │
//!            └───────────────────────────────────────────────────┘
//! ```
//! Each part owns its state and knows of the others only `Files`; what needs several of them is here.
//!
//! A place that [`Segments::append`] returned counts as live until [`Segments::release`].

mod appending;
mod dead;
mod dead_space;
mod files;
mod reading;
mod spare;

pub(crate) use files::{DIR, number_of, path_of};

use crate::frames;
use crate::table::Place;
use crate::{Error, PoolOptions, Result, Seals};
use appending::{Appending, Sealed};
use dead_space::DeadSpace;
use files::{Files, Segment};
use offshoot_format::segment::{Frame, Layout};
use offshoot_os::disk::Disk;
use reading::Reading;
use std::borrow::Cow;
use std::sync::Arc;

/// What reclaim wants to know about a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentSummary {
    pub(crate) number: u32,
    pub(crate) layout: Layout,
    pub(crate) len: u32,
    pub(crate) live: u64,
    pub(crate) punched: u64,
    /// Bytes of dead pages that wait to be overwritten.
    pub(crate) spare: u64,
    pub(crate) sealed: bool,
    /// Whether compaction may have something to do.
    pub(crate) movable: bool,
}

/// All segment files of a pool.
pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    seals: Seals,
    files: Files,
    appending: Appending,
    reading: Reading,
    dead: DeadSpace,
}

impl Segments {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        pool_id: [u8; 16],
        seals: &Seals,
        options: &PoolOptions,
    ) -> Segments {
        let size =
            options.segment_size.clamp(256 << 10, offshoot_format::segment::SEGMENT_LEN_MAX) as u32;
        Segments {
            seals: seals.clone(),
            files: Files::default(),
            appending: Appending::new(disk.clone(), pool_id, size),
            reading: Reading::new(disk.clone(), options.open_segments_max.max(4)),
            dead: DeadSpace::new(disk.clone(), size),
            disk,
        }
    }

    /// Adds a block; its place counts as live from now on.
    pub(crate) fn append(&self, frame: &Frame, stored: &[u8]) -> Result<Place> {
        let layout = frame.codec.layout();
        self.appending.count(layout.room(frame.stored_len));
        if layout == Layout::Pages
            && let Some(place) = self.write_over(stored)
        {
            return Ok(place);
        }
        // Before any lock is taken.
        let block = frames::seal(&self.seals, frame, stored)?;
        self.sealing(|sealed| self.appending.append(&self.files, &block, sealed))
    }

    /// Does something that may seal segments, and offers their dead space.
    fn sealing<T>(&self, work: impl FnOnce(&mut Sealed) -> T) -> T {
        let mut sealed = Sealed::new();
        let result = work(&mut sealed);
        for (number, layout, begin, end) in sealed {
            self.dead.offer(number, layout, begin, end);
        }
        result
    }

    /// Writes a page over a dead one; `None` when there is none, or it could not be written.
    fn write_over(&self, page: &[u8]) -> Option<Place> {
        let (place, file) = self.dead.take_spare(&self.files)?;
        if file.write_at(u64::from(place.offset), page).is_err() {
            // A copy-on-write filesystem may have no room. Not retried.
            self.files.count_dead(place);
            self.dead.give_back(place.segment, place.offset, place.end());
            return None;
        }
        // Before anybody knows the place: a flush that begins from now on syncs it.
        self.appending.must_sync(file, place);
        self.dead.count_written_over(place);
        Some(place)
    }

    /// Seals an open segment when at least half of it, and `min` bytes, or more than `dead_max` of
    /// it are dead: its space is given back only then.
    pub(crate) fn seal_if_mostly_dead(&self, min: u32, dead_max: u64) {
        self.sealing(|sealed| self.appending.seal_if_mostly_dead(min, dead_max, sealed));
    }

    /// Makes everything appended before durable.
    ///
    /// ORDER 1: blocks MUST be durable before any pointer to them is. A commit calls this before it
    /// writes the table's log and the root.
    ///
    /// # Errors
    /// `Ok(Err(_))` when writing failed (it can be tried again) or the device had no room to sync (what was
    /// to be synced is not [reliable](Segments::is_reliable) and has to be appended again), `Err(_)` if
    /// syncing failed otherwise: then nobody knows what is on the device.
    pub(crate) fn flush(&self) -> std::result::Result<Result<()>, Error> {
        self.sealing(|sealed| self.appending.flush(&self.files, sealed))
    }

    /// Whether a successful flush has made durable a block that was appended and is not committed yet.
    pub(crate) fn is_reliable(&self, place: Place) -> bool {
        self.files.is_reliable(place.segment)
    }

    /// Invariant 2 for a block that is not committed yet: a successful flush has made it durable.
    pub(crate) fn is_durable(&self, place: Place) -> bool {
        let Some(segment) = self.files.get(place.segment) else { return false };
        // Overwritten pages wait for a flush as one range, including what is between them.
        let waits = || self.appending.awaits_flush(place.segment, place.end());
        let sealed = segment.state.lock().sealed;
        self.is_reliable(place) && segment.has_written(place.end()) && (sealed || !waits())
    }

    /// Invariant 4: what does not add up.
    pub(crate) fn accounts_that_do_not_add_up(&self) -> Vec<String> {
        self.files.accounts_that_do_not_add_up()
    }

    /// Whether that is so for all blocks.
    pub(crate) fn all_reliable(&self) -> bool {
        self.files.all_reliable()
    }

    /// The pool that they are of.
    pub(crate) fn pool_id(&self) -> [u8; 16] {
        self.appending.pool_id
    }

    /// Reads what is stored of a block; the caller verifies it.
    ///
    /// # Errors
    /// `InvalidData` if it is sealed and does not open.
    pub(crate) fn read(&self, place: Place) -> std::io::Result<Vec<u8>> {
        if !self.seals.are_on() {
            let mut stored = vec![0; place.stored_len as usize];
            self.read_range(place, place.content(), &mut stored)?;
            return Ok(stored);
        }
        let frame_len = place.layout.frame_len();
        let mut bytes = vec![0; (frame_len + place.stored_len) as usize];
        self.read_range(place, place.offset, &mut bytes)?;
        let (frame, stored) = bytes.split_at(frame_len as usize);
        let opened = self.open(frame, stored);
        let invalid = |detail| std::io::Error::new(std::io::ErrorKind::InvalidData, detail);
        opened.map(Cow::into_owned).map_err(invalid)
    }

    /// What was stored of a block, given the bytes of its segment.
    pub(crate) fn open<'a>(
        &self,
        frame: &[u8],
        stored: &'a [u8],
    ) -> std::result::Result<Cow<'a, [u8]>, String> {
        frames::open(&self.seals, frame, stored)
    }

    /// Reads bytes of a block from `from` on.
    fn read_range(&self, place: Place, from: u32, buffer: &mut [u8]) -> std::io::Result<()> {
        let segment = self.files.get(place.segment).ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::NotFound, "the segment file is missing")
        })?;
        if !segment.has_written(place.end()) && self.appending.find(place, from, buffer) {
            return Ok(());
        }
        self.reading.read(&self.files, &segment, from, buffer)
    }

    /// Reads a range of a file whose blocks are all written; `None` if they are not, or on errors.
    pub(crate) fn read_run(&self, number: u32, begin: u32, end: u32) -> Option<Vec<u8>> {
        self.reading.read_run(&self.files, number, begin, end)
    }

    /// Hands a range of a file whose blocks are all written to `take`, which must not read others.
    /// Does nothing if they are not all written, or on errors.
    pub(crate) fn with_run(&self, number: u32, begin: u32, end: u32, take: &mut dyn FnMut(&[u8])) {
        self.reading.with_run(&self.files, (number, begin, end), take);
    }

    /// A block's frame, empty if it has none; `None` if it is not written yet or cannot be read.
    pub(crate) fn read_frame(&self, place: Place) -> Option<Vec<u8>> {
        self.read_run(place.segment, place.offset, place.content())
    }

    /// Gives a place back. Nothing durable may refer to it any more (see ORDER 4 in `commit`).
    pub(crate) fn release(&self, place: Place) {
        if let Some((begin, end)) = self.files.count_dead(place) {
            self.dead.offer(place.segment, place.layout, begin, end);
        }
    }

    /// Whether [`Segments::punch`] gives room back.
    pub(crate) fn can_punch(&self) -> bool {
        self.dead.can_punch()
    }

    /// Gives dead pages back to the device, at most `max` ranges. Returns whether more are left.
    pub(crate) fn punch(&self, max: usize) -> Result<bool> {
        self.dead.punch(&self.files, &self.reading, max)
    }

    /// While it is unknown whether the newest root needs what is dead, nothing is given back to the device.
    pub(crate) fn hold_dead(&self, yes: bool) {
        self.dead.hold(yes);
    }

    pub(crate) fn holds_dead(&self) -> bool {
        self.dead.is_held()
    }

    /// Keeps at most so many bytes of dead pages to be overwritten, and gives the rest back to the device. With 0
    /// none is overwritten.
    pub(crate) fn limit_spares(&self, max: u64) {
        self.dead.limit_spares(max);
    }

    /// Whether a sealed segment has blocks that are not in its file yet.
    pub(crate) fn sealed_unwritten(&self) -> bool {
        self.appending.sealed_unwritten()
    }

    /// Deletes sealed segments in which nothing is live. Whether there was one.
    pub(crate) fn delete_dead(&self) -> Result<bool> {
        let number_of_dead = |segment: &Arc<Segment>| {
            let state = segment.state.lock();
            let dead = state.sealed && state.live == 0 && segment.has_written(state.len);
            dead.then_some(segment.number)
        };
        let dead: Vec<u32> = self.files.map(number_of_dead).into_iter().flatten().collect();
        if self.dead.is_held() {
            return Ok(false);
        }
        let mut deleted = false;
        for number in dead {
            // Unless one of its pages has been overwritten since.
            let still_dead = self.files.get(number).is_some_and(|segment| {
                let mut state = segment.state.lock();
                // Invariant 4: deleting a file deletes what lives in it. If the accounts of a wrong table do not add
                // up, the file stays.
                let dead = state.dead.bytes() + u64::from(segment.layout.begin());
                state.deleted = state.live == 0 && dead >= u64::from(state.len);
                state.deleted
            });
            if !still_dead {
                continue;
            }
            deleted = true;
            let path = path_of(number);
            self.files.remove(number);
            self.appending.forget(number);
            self.reading.forget(number);
            match self.disk.remove(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::io(format!("remove '{path}'"), &error));
                }
                _ => {}
            }
        }
        Ok(deleted)
    }

    /// Takes over a file found at open: `len` bytes of it are referred to by the table, `live` of them
    /// in use. The dead ranges are given by [`Segments::add_dead`].
    pub(crate) fn adopt(&self, number: u32, layout: Layout, len: u32, live: u64) {
        self.appending.adopt(&self.files, number, layout, len, live);
    }

    /// Numbers below this are not used for new segments.
    pub(crate) fn skip_numbers(&self, next: u32) {
        self.appending.skip_numbers(next);
    }

    /// Continues appending to an adopted segment that has room, after cutting off what follows its
    /// end.
    pub(crate) fn reopen(&self, number: u32) -> Result<()> {
        self.appending.reopen(&self.files, number)
    }

    /// A dead range found at open. It becomes a hole: at open nobody knows what is worth overwriting.
    pub(crate) fn add_dead(&self, number: u32, begin: u32, end: u32) {
        if let Some((begin, end)) = self.files.add_dead(number, begin, end) {
            self.dead.give_back(number, begin, end);
        }
    }

    /// Bytes of blocks added since the pool was opened.
    pub(crate) fn added(&self) -> u64 {
        self.appending.added()
    }

    /// Of these, bytes of pages that were written over dead ones.
    pub(crate) fn written_over(&self) -> u64 {
        self.dead.written_over()
    }

    /// All dead ranges of the files: (segment, its layout, begin, end).
    pub(crate) fn dead_ranges(&self) -> Vec<(u32, Layout, u32, u32)> {
        let segments = self.files.map(Arc::clone);
        let of = |segment: Arc<Segment>| -> Vec<(u32, Layout, u32, u32)> {
            let (number, layout) = (segment.number, segment.layout);
            let state = segment.state.lock();
            let ranges = state.dead.ranges();
            ranges.map(|(begin, end)| (number, layout, begin, end)).collect()
        };
        segments.into_iter().flat_map(of).collect()
    }

    /// The end of the dead range that covers `offset`, if one does.
    pub(crate) fn dead_until(&self, number: u32, offset: u32) -> Option<u32> {
        self.files.get(number)?.state.lock().dead.end_at(offset)
    }

    /// Compaction could not move anything: running transactions use what is live.
    pub(crate) fn mark_stuck(&self, number: u32) {
        if let Some(segment) = self.files.get(number) {
            let mut state = segment.state.lock();
            state.stuck_at = Some(state.live);
        }
    }

    /// Compaction met something it cannot read.
    pub(crate) fn mark_damaged(&self, number: u32) {
        if let Some(segment) = self.files.get(number) {
            segment.state.lock().damaged = true;
        }
    }

    pub(crate) fn summaries(&self) -> Vec<SegmentSummary> {
        self.dead.with_spares(|spares| {
            self.files.map(|segment| {
                let state = segment.state.lock();
                SegmentSummary {
                    number: segment.number,
                    layout: segment.layout,
                    len: state.len,
                    live: state.live,
                    punched: state.punched,
                    spare: spares.bytes_of(segment.number),
                    sealed: state.sealed,
                    movable: !state.damaged && state.stuck_at != Some(state.live),
                }
            })
        })
    }

    /// Bytes of the device that the files take or will take: lengths less the holes.
    pub(crate) fn used(&self) -> u64 {
        self.files.sum(|segment| {
            let state = segment.state.lock();
            u64::from(state.len).next_multiple_of(4096).saturating_sub(state.punched)
        })
    }

    /// Appended bytes that the device does not have yet.
    pub(crate) fn buffered(&self) -> u64 {
        self.appending.buffered()
    }
}
