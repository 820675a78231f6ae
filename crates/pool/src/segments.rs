//! Segment files: appending blocks, reading them back, knowing what of each file is dead.
//!
//! Blocks are appended to one open segment of their layout through a buffer in memory. A full buffer is
//! written by whoever filled it, outside the lock; [`Segments::flush`] writes the rest and syncs. Until a
//! buffer is written, reads are answered from it.
//!
//! A place that [`Segments::append`] returned counts as live until [`Segments::release`].

mod dead;
mod spare;

use crate::table::Place;
use crate::{Error, PoolOptions, Result};
use dead::DeadRanges;
use offshoot_format::segment::{Frame, Layout, encode_segment_header};
use offshoot_os::disk::{Disk, DiskFile, read_exact_at};
use parking_lot::{Mutex, RwLock};
use spare::Spares;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Bytes after which the buffer is written.
const BUFFER_LEN: usize = 1 << 20;
/// Full buffers after which appending threads wait for the disk.
const PENDING_MAX: usize = 4;

/// The directory of segment files.
pub(crate) const DIR: &str = "segments";

/// The path of a segment file.
pub(crate) fn path_of(number: u32) -> String {
    format!("{DIR}/{number:08}.seg")
}

/// The number in a segment file's name.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    name.strip_suffix(".seg")?.parse().ok()
}

/// One segment file.
pub(crate) struct Segment {
    pub(crate) number: u32,
    layout: Layout,
    /// Bytes that can be read from the file; what follows is in a buffer.
    written: AtomicU32,
    state: Mutex<SegmentState>,
}

#[derive(Default)]
struct SegmentState {
    /// Bytes appended.
    len: u32,
    /// Bytes of blocks that the table refers to.
    live: u64,
    dead: DeadRanges,
    /// Bytes given back by holes.
    punched: u64,
    sealed: bool,
    /// Nothing in it is live, and nothing will be.
    deleted: bool,
    /// Compaction met damage; it must not be tried again and again.
    damaged: bool,
    /// Live bytes when compaction found nothing it could move; it waits until that changes.
    stuck_at: Option<u64>,
    reader: Option<Arc<dyn DiskFile>>,
}

/// What reclaim wants to know about a segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentSummary {
    pub(crate) number: u32,
    pub(crate) layout: Layout,
    pub(crate) len: u32,
    pub(crate) live: u64,
    pub(crate) punched: u64,
    /// Bytes of dead pages that wait to be written over.
    pub(crate) spare: u64,
    pub(crate) sealed: bool,
    /// Whether compaction may have something to do.
    pub(crate) movable: bool,
}

/// A filled buffer on its way to the file.
#[derive(Clone)]
struct Pending {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    begin: u32,
    bytes: Arc<Vec<u8>>,
}

impl Pending {
    /// Writes it; leaves a hole in the file where nothing in it is live any more: the commit it was for has
    /// been undone, and what comes behind it must not wait for room that only a deletion may bring.
    fn write(&self) -> std::io::Result<()> {
        let end = self.begin + self.bytes.len() as u32;
        let first = self.begin.max(self.segment.layout.begin());
        let (dead_to, useless) = {
            let state = self.segment.state.lock();
            (state.dead.end_at(first), state.sealed && state.live == 0)
        };
        if dead_to.is_none_or(|to| to < end) {
            return self.file.write_at(u64::from(self.begin), &self.bytes);
        }
        // A file that is about to be deleted needs nothing.
        if useless {
            return Ok(());
        }
        let header = &self.bytes[..(first - self.begin) as usize];
        if !header.is_empty() {
            self.file.write_at(0, header)?;
        }
        // What is read together with blocks before it ends here.
        self.file.set_len(u64::from(end))
    }
}

struct Open {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    /// Where the buffer begins in the file.
    begin: u32,
    buffer: Vec<u8>,
}

/// Files by the numbers of their segments, each with a range.
type Unsynced = BTreeMap<u32, (Arc<dyn DiskFile>, u32, u32)>;

#[derive(Default)]
struct Appender {
    /// By layout.
    open: [Option<Open>; Layout::ALL.len()],
    pending: VecDeque<Pending>,
    /// Written but not synced: a file with the range.
    unsynced: Unsynced,
    /// A segment file was created whose name is not durable yet.
    new_names: bool,
    next_number: u32,
}

impl Appender {
    /// Hands the buffers over for writing.
    fn push_buffers(&mut self) {
        Layout::ALL.into_iter().for_each(|layout| self.push_buffer(layout));
    }

    fn push_buffer(&mut self, layout: Layout) {
        if let Some(open) = &mut self.open[layout as usize]
            && !open.buffer.is_empty()
        {
            let bytes = std::mem::take(&mut open.buffer);
            let begin = open.begin;
            open.begin += bytes.len() as u32;
            self.pending.push_back(Pending {
                segment: open.segment.clone(),
                file: open.file.clone(),
                begin,
                bytes: Arc::new(bytes),
            });
        }
    }

    fn find(&self, place: Place, buffer: &mut [u8]) -> bool {
        let copy = |begin: u32, bytes: &[u8], buffer: &mut [u8]| {
            let from = place.content().checked_sub(begin).map(|from| from as usize);
            let found = from.and_then(|from| bytes.get(from..from + buffer.len()));
            found.map(|found| buffer.copy_from_slice(found)).is_some()
        };
        let pending = self.pending.iter().filter(|pending| pending.segment.number == place.segment);
        for pending in pending {
            if copy(pending.begin, &pending.bytes, buffer) {
                return true;
            }
        }
        self.open[place.layout as usize].as_ref().is_some_and(|open| {
            open.segment.number == place.segment && copy(open.begin, &open.buffer, buffer)
        })
    }
}

/// All segment files of a pool.
pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    pool_id: [u8; 16],
    segment_size: u32,
    readers_max: usize,
    all: RwLock<BTreeMap<u32, Arc<Segment>>>,
    appender: Mutex<Appender>,
    /// Held while buffers are written and synced, so that a flush waits for one begun before it.
    writing: Mutex<()>,
    /// Segments with an open reading handle, oldest first.
    readers: Mutex<VecDeque<u32>>,
    /// Dead ranges whose pages can be given back: (segment, begin, end), merged and aligned. None of them is
    /// among the spare pages.
    punches: Mutex<Vec<(u32, u32, u32)>>,
    /// Dead pages that may be written over, and how many bytes of them are kept for it.
    spares: Mutex<Spares>,
    spare_max: AtomicU64,
    /// Segments whose blocks, but for the committed ones, are not to be relied upon: the device had no room
    /// when they were flushed.
    unkept: RwLock<BTreeSet<u32>>,
    /// The device makes no holes.
    no_holes: AtomicBool,
    /// Nothing is given back to the device now: it is unknown whether the newest root needs it.
    pub(crate) keep_dead: AtomicBool,
    /// Bytes of blocks added since the pool was opened, and of those that were written over dead ones.
    added: AtomicU64,
    written_over: AtomicU64,
}

impl Segments {
    pub(crate) fn new(disk: Arc<dyn Disk>, pool_id: [u8; 16], options: &PoolOptions) -> Segments {
        let segment_size =
            options.segment_size.clamp(256 << 10, offshoot_format::segment::SEGMENT_LEN_MAX);
        Segments {
            disk,
            pool_id,
            segment_size: segment_size as u32,
            readers_max: options.open_segments_max.max(4),
            all: RwLock::default(),
            appender: Mutex::new(Appender { next_number: 1, ..Appender::default() }),
            writing: Mutex::new(()),
            readers: Mutex::default(),
            punches: Mutex::default(),
            spares: Mutex::default(),
            spare_max: AtomicU64::new(0),
            unkept: RwLock::default(),
            no_holes: AtomicBool::new(false),
            keep_dead: AtomicBool::new(false),
            added: AtomicU64::new(0),
            written_over: AtomicU64::new(0),
        }
    }

    fn get(&self, number: u32) -> Option<Arc<Segment>> {
        self.all.read().get(&number).cloned()
    }

    /// Adds a block; its place counts as live from now on.
    pub(crate) fn append(&self, frame: &Frame, stored: &[u8]) -> Result<Place> {
        let layout = frame.codec.layout();
        let room = layout.room(frame.stored_len);
        self.added.fetch_add(u64::from(room), Ordering::Relaxed);
        if layout == Layout::Pages
            && let Some(place) = self.write_over(stored)
        {
            return Ok(place);
        }
        let (place, full) = {
            let mut appender = self.appender.lock();
            let fits = appender.open[layout as usize].as_ref().is_some_and(|open| {
                open.begin + open.buffer.len() as u32 + room <= self.segment_size
            });
            if !fits {
                self.begin_segment(&mut appender, layout)?;
            }
            let Some(open) = &mut appender.open[layout as usize] else {
                return Err(Error::Failed("no segment is open".into()));
            };
            let offset = open.begin + open.buffer.len() as u32;
            if layout == Layout::Frames {
                open.buffer.extend_from_slice(&frame.encode());
            }
            open.buffer.extend_from_slice(stored);
            let padded = (offset + room - open.begin) as usize;
            open.buffer.resize(padded, 0);
            {
                let mut state = open.segment.state.lock();
                state.len = offset + room;
                state.live += u64::from(room);
            }
            let (segment, stored_len) = (open.segment.number, frame.stored_len);
            let place = Place { segment, offset, stored_len, layout };
            let full = open.buffer.len() >= BUFFER_LEN;
            if full {
                appender.push_buffer(layout);
            }
            (place, full.then_some(appender.pending.len()))
        };
        if let Some(pending) = full {
            let writing = if pending > PENDING_MAX {
                Some(self.writing.lock())
            } else {
                self.writing.try_lock()
            };
            if writing.is_some() {
                // An error (no room) leaves the buffer pending: the commit's flush meets it again.
                let _ = self.write_pending();
            }
        }
        Ok(place)
    }

    /// Seals the open segment of this layout and begins the next.
    fn begin_segment(&self, appender: &mut Appender, layout: Layout) -> Result<()> {
        self.seal(appender, layout);
        let number = appender.next_number;
        let path = path_of(number);
        let file = match self.disk.create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // Left over from a creation whose answer was an error; nothing can refer to it.
                self.disk.remove(&path).and_then(|()| self.disk.create(&path))
            }
            other => other,
        };
        let file = file.map_err(|error| Error::io(format!("create '{path}'"), &error))?;
        appender.next_number = number + 1;
        appender.new_names = true;
        let segment = Arc::new(Segment {
            number,
            layout,
            written: AtomicU32::new(0),
            state: Mutex::new(SegmentState { len: layout.begin(), ..SegmentState::default() }),
        });
        let buffer = encode_segment_header(&self.pool_id, number, layout);
        self.all.write().insert(number, segment.clone());
        appender.open[layout as usize] = Some(Open { segment, file, begin: 0, buffer });
        Ok(())
    }

    fn seal(&self, appender: &mut Appender, layout: Layout) {
        appender.push_buffer(layout);
        if let Some(open) = appender.open[layout as usize].take() {
            let mut state = open.segment.state.lock();
            state.sealed = true;
            let ranges = state.dead.punchable();
            drop(state);
            let number = open.segment.number;
            ranges.for_each(|(begin, end)| self.offer(number, layout, begin, end));
        }
    }

    /// Seals an open segment when at least half of it, and `min` bytes, or more than `dead_max` of
    /// it are dead: its space is given back only then.
    pub(crate) fn seal_if_mostly_dead(&self, min: u32, dead_max: u64) {
        let mut appender = self.appender.lock();
        for layout in Layout::ALL {
            let Some(open) = &appender.open[layout as usize] else { continue };
            let state = open.segment.state.lock();
            let (len, live) = (u64::from(state.len - layout.begin()), state.live);
            drop(state);
            if len > 0
                && (live == 0 || (len >= u64::from(min) && live * 2 < len) || len - live > dead_max)
            {
                self.seal(&mut appender, layout);
            }
        }
    }

    /// Writes the filled buffers in order; the caller holds `writing`.
    fn write_pending(&self) -> Result<()> {
        loop {
            let Some(pending) = self.appender.lock().pending.front().cloned() else {
                return Ok(());
            };
            let number = pending.segment.number;
            let written = pending.write();
            written.map_err(|error| Error::io(format!("write '{}'", path_of(number)), &error))?;
            let end = pending.begin + pending.bytes.len() as u32;
            // Readable in the file before it leaves the queue: a reader looks here, then there.
            pending.segment.written.store(end, Ordering::Release);
            let mut appender = self.appender.lock();
            appender.pending.pop_front();
            let range = appender.unsynced.entry(number).or_insert((
                pending.file.clone(),
                pending.begin,
                end,
            ));
            range.2 = end;
        }
    }

    /// Makes everything appended before durable.
    ///
    /// ORDER 1: blocks MUST be durable before any pointer to them is. A commit calls this before it
    /// writes the table's log and the root.
    ///
    /// # Errors
    /// `Ok(Err(_))` when writing failed (it can be tried again) or the device had no room to sync (what
    /// was to be synced is not [kept](Segments::is_kept) and has to be appended anew), `Err(_)` when
    /// syncing failed otherwise: what is on the device is then unknown.
    pub(crate) fn flush(&self) -> std::result::Result<Result<()>, Error> {
        let _writing = self.writing.lock();
        self.appender.lock().push_buffers();
        if let Err(error) = self.write_pending() {
            return Ok(Err(error));
        }
        let (unsynced, new_names) = {
            let mut appender = self.appender.lock();
            (std::mem::take(&mut appender.unsynced), std::mem::take(&mut appender.new_names))
        };
        match self.sync(&unsynced, new_names) {
            Err(error @ Error::Full { .. }) => {
                self.give_up(&unsynced);
                Ok(Err(error))
            }
            other => other.map(Ok),
        }
    }

    fn sync(&self, unsynced: &Unsynced, new_names: bool) -> Result<()> {
        for (number, (file, begin, end)) in unsynced {
            let synced = file.sync_data();
            synced.map_err(|error| Error::io(format!("sync '{}'", path_of(*number)), &error))?;
            // The block cache holds what is worth holding.
            file.forget_cached(u64::from(*begin), u64::from(end - begin));
        }
        if new_names {
            // ORDER 1 holds for the name of a new segment, too.
            let synced = self.disk.sync_dir(DIR);
            synced.map_err(|error| Error::io(format!("sync directory '{DIR}'"), &error))?;
        }
        Ok(())
    }

    /// What was to be synced may be lost, and a later sync would not tell: nothing that was appended
    /// until now and not synced before is relied upon, and a new segment is begun.
    fn give_up(&self, unsynced: &Unsynced) {
        let mut appender = self.appender.lock();
        Layout::ALL.into_iter().for_each(|layout| self.seal(&mut appender, layout));
        let pending = appender.pending.iter().map(|of| of.segment.number);
        // As a whole: of a page that is being written over, nobody here knows yet.
        self.unkept.write().extend(unsynced.keys().copied().chain(pending));
    }

    /// Whether a flush that returned well after a block, not committed yet, was appended has made it durable.
    pub(crate) fn is_kept(&self, place: Place) -> bool {
        !self.unkept.read().contains(&place.segment)
    }

    /// Whether that is so for all blocks.
    pub(crate) fn all_kept(&self) -> bool {
        self.unkept.read().is_empty()
    }

    /// Reads a block's stored bytes; the caller verifies them.
    pub(crate) fn read(&self, place: Place) -> std::io::Result<Vec<u8>> {
        let mut stored = vec![0; place.stored_len as usize];
        self.read_range(place, &mut stored)?;
        Ok(stored)
    }

    fn read_range(&self, place: Place, buffer: &mut [u8]) -> std::io::Result<()> {
        let segment = self.get(place.segment).ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::NotFound, "the segment file is missing")
        })?;
        if place.end() > segment.written.load(Ordering::Acquire)
            && self.appender.lock().find(place, buffer)
        {
            return Ok(());
        }
        let file = self.reader(&segment)?;
        read_exact_at(&*file, u64::from(place.content()), buffer)
    }

    /// Reads a range of a file whose blocks are all written; `None` when they are not, or on errors.
    pub(crate) fn read_run(&self, number: u32, begin: u32, end: u32) -> Option<Vec<u8>> {
        let segment = self.get(number)?;
        if end > segment.written.load(Ordering::Acquire) {
            return None;
        }
        let mut buffer = vec![0; (end - begin) as usize];
        let file = self.reader(&segment).ok()?;
        read_exact_at(&*file, u64::from(begin), &mut buffer).ok()?;
        Some(buffer)
    }

    /// Hands a range of a file whose blocks are all written to `take`, which must not read others; not
    /// when they are not, or on errors.
    pub(crate) fn with_run(&self, number: u32, begin: u32, end: u32, take: &mut dyn FnMut(&[u8])) {
        let Some(segment) = self.get(number) else { return };
        if end <= segment.written.load(Ordering::Acquire)
            && let Ok(file) = self.reader(&segment)
        {
            // Whoever reads the blocks one by one meets the error.
            let _ = file.read_with(u64::from(begin), (end - begin) as usize, take);
        }
    }

    /// A block's frame, nothing if it has none; `None` when it is not written yet, or cannot be read.
    pub(crate) fn read_frame(&self, place: Place) -> Option<Vec<u8>> {
        self.read_run(place.segment, place.offset, place.content())
    }

    fn reader(&self, segment: &Segment) -> std::io::Result<Arc<dyn DiskFile>> {
        if let Some(reader) = &segment.state.lock().reader {
            return Ok(reader.clone());
        }
        let reader = self.disk.open_uncached(&path_of(segment.number))?;
        segment.state.lock().reader = Some(reader.clone());
        let oldest = {
            let mut readers = self.readers.lock();
            readers.push_back(segment.number);
            if readers.len() > self.readers_max { readers.pop_front() } else { None }
        };
        if let Some(oldest) = oldest.and_then(|number| self.get(number)) {
            oldest.state.lock().reader = None;
        }
        Ok(reader)
    }

    /// Gives a place back. Nothing durable may refer to it any more (see ORDER 4 in `commit`).
    pub(crate) fn release(&self, place: Place) {
        if let Some((begin, end)) = self.count_dead(place) {
            self.offer(place.segment, place.layout, begin, end);
        }
    }

    /// Counts a place as dead. What may be given back to the device for it.
    fn count_dead(&self, place: Place) -> Option<(u32, u32)> {
        let segment = self.get(place.segment)?;
        let mut state = segment.state.lock();
        state.live = state.live.saturating_sub(u64::from(place.room()));
        let whole_pages = state.dead.add(place.offset, place.end());
        whole_pages.filter(|_| state.sealed)
    }

    /// Whether [`Segments::punch`] gives room back.
    pub(crate) fn can_punch(&self) -> bool {
        !self.no_holes.load(Ordering::Relaxed)
    }

    /// Gives dead pages back to the device; at most `max` ranges. Whether more are left.
    pub(crate) fn punch(&self, max: usize) -> Result<bool> {
        let (mut batch, more) = {
            let mut punches = self.punches.lock();
            let keep = punches.len().saturating_sub(max);
            (punches.split_off(keep), keep > 0)
        };
        // Asked only now: what is released later is not in the batch.
        if self.keep_dead.load(Ordering::Acquire) {
            self.punches.lock().append(&mut batch);
        }
        batch.sort_unstable();
        // Each range is there once; those that touch are one hole.
        batch.dedup_by(|next, hole| {
            let touches = next.0 == hole.0 && next.1 == hole.2;
            if touches {
                hole.2 = next.2;
            }
            touches
        });
        let mut first_failure = Ok(());
        for (number, begin, end) in batch {
            let Some(segment) = self.get(number) else { continue };
            if end > segment.written.load(Ordering::Acquire) {
                // Not in the file yet; it will be after the next flush.
                self.punches.lock().push((number, begin, end));
                continue;
            }
            // What is here is not among the spare pages, so nothing came to life again; should it ever, it must not be lost.
            if segment.state.lock().dead.end_at(begin).is_none_or(|to| to < end) {
                tracing::error!(number, begin, end, "not made a hole: something lives there");
                continue;
            }
            let len = u64::from(end - begin);
            let file = self.reader(&segment);
            match file.and_then(|file| file.punch_hole(u64::from(begin), len)) {
                Ok(()) => segment.state.lock().punched += len,
                // Compaction and deletion of whole segments still give space back.
                Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                    self.no_holes.store(true, Ordering::Relaxed);
                }
                Err(error) => {
                    // A hole may need room itself, on a device that has none.
                    self.punches.lock().push((number, begin, end));
                    let action = format!("punch a hole into '{}'", path_of(number));
                    first_failure = first_failure.and(Err(Error::io(action, &error)));
                }
            }
        }
        first_failure.map(|()| more)
    }

    /// Whether a sealed segment has blocks that are not in its file yet.
    pub(crate) fn sealed_unwritten(&self) -> bool {
        self.appender.lock().pending.iter().any(|pending| pending.segment.state.lock().sealed)
    }

    /// Deletes sealed segments in which nothing is live. Whether there was one.
    pub(crate) fn delete_dead(&self) -> Result<bool> {
        let dead: Vec<u32> = {
            let all = self.all.read();
            let written = |segment: &Segment, len| segment.written.load(Ordering::Acquire) >= len;
            let dead = all.values().filter(|segment| {
                let state = segment.state.lock();
                state.sealed && state.live == 0 && written(segment, state.len)
            });
            dead.map(|segment| segment.number).collect()
        };
        if self.keep_dead.load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut deleted = false;
        for number in dead {
            // Unless a page of it was written over meanwhile.
            let still_dead = self.get(number).is_some_and(|segment| {
                let mut state = segment.state.lock();
                state.deleted = state.live == 0;
                state.deleted
            });
            if !still_dead {
                continue;
            }
            deleted = true;
            let path = path_of(number);
            self.all.write().remove(&number);
            self.unkept.write().remove(&number);
            self.appender.lock().unsynced.remove(&number);
            self.readers.lock().retain(|&reader| reader != number);
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
        let state = SegmentState { len, live, sealed: true, ..SegmentState::default() };
        let (written, state) = (AtomicU32::new(len), Mutex::new(state));
        let segment = Segment { number, layout, written, state };
        self.all.write().insert(number, Arc::new(segment));
        let mut appender = self.appender.lock();
        appender.next_number = appender.next_number.max(number.saturating_add(1));
    }

    /// Numbers below this are not used for new segments.
    pub(crate) fn skip_numbers(&self, next: u32) {
        let mut appender = self.appender.lock();
        appender.next_number = appender.next_number.max(next);
    }

    /// Goes on appending to an adopted segment that has room, after cutting what follows its end.
    pub(crate) fn reopen(&self, number: u32) -> Result<()> {
        let Some(segment) = self.get(number) else { return Ok(()) };
        let len = segment.state.lock().len;
        if len >= self.segment_size / 4 * 3 {
            return Ok(());
        }
        let path = path_of(number);
        let file = self.disk.open(&path);
        let file = file.map_err(|error| Error::io(format!("open '{path}'"), &error))?;
        segment.state.lock().sealed = false;
        let layout = segment.layout as usize;
        let open = Open { segment, file, begin: len, buffer: Vec::new() };
        self.appender.lock().open[layout] = Some(open);
        Ok(())
    }

    /// A dead range found at open.
    pub(crate) fn add_dead(&self, number: u32, begin: u32, end: u32) {
        let Some(segment) = self.get(number) else { return };
        let mut state = segment.state.lock();
        let punch = state.dead.add(begin, end);
        if state.sealed
            && let Some((begin, end)) = punch
        {
            drop(state);
            self.punches.lock().push((number, begin, end));
        }
    }

    /// Bytes of blocks added since the pool was opened.
    pub(crate) fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// Of these, bytes of pages that were written over dead ones.
    pub(crate) fn written_over(&self) -> u64 {
        self.written_over.load(Ordering::Relaxed)
    }

    /// All dead ranges of the files: (segment, its layout, begin, end).
    pub(crate) fn dead_ranges(&self) -> Vec<(u32, Layout, u32, u32)> {
        let segments: Vec<Arc<Segment>> = self.all.read().values().cloned().collect();
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
        self.get(number)?.state.lock().dead.end_at(offset)
    }

    /// Compaction could not move anything: running transactions use what is live.
    pub(crate) fn mark_stuck(&self, number: u32) {
        if let Some(segment) = self.get(number) {
            let mut state = segment.state.lock();
            state.stuck_at = Some(state.live);
        }
    }

    /// Compaction met something it cannot read.
    pub(crate) fn mark_damaged(&self, number: u32) {
        if let Some(segment) = self.get(number) {
            segment.state.lock().damaged = true;
        }
    }

    pub(crate) fn summaries(&self) -> Vec<SegmentSummary> {
        let spares = self.spares.lock();
        let all = self.all.read();
        let summary = |segment: &Arc<Segment>| {
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
        };
        all.values().map(summary).collect()
    }

    /// Bytes of the device that the files take or will take: lengths less the holes.
    pub(crate) fn used(&self) -> u64 {
        let all = self.all.read();
        let used = all.values().map(|segment| {
            let state = segment.state.lock();
            u64::from(state.len).next_multiple_of(4096).saturating_sub(state.punched)
        });
        used.sum()
    }

    /// Bytes appended that the device does not know of yet.
    pub(crate) fn buffered(&self) -> u64 {
        let appender = self.appender.lock();
        let pending: usize = appender.pending.iter().map(|pending| pending.bytes.len()).sum();
        let open = appender.open.iter().flatten().map(|open| open.buffer.len());
        (pending + open.sum::<usize>()) as u64
    }
}
