//! Appending blocks to the open segment of their layout, and making them durable.
//!
//! A block goes into a buffer in memory. The thread that fills a buffer writes it, outside the lock; a
//! flush writes the rest and syncs. Until a buffer is written, reads are answered from it.

use super::files::{DIR, Files, Segment, SegmentState, path_of};
use crate::frames::Block;
use crate::table::Place;
use crate::{Error, Result};
use offshoot_format::segment::{Layout, encode_segment_header};
use offshoot_os::disk::{Disk, DiskFile};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Bytes after which the buffer is written.
const BUFFER_LEN: usize = 1 << 20;
/// Full buffers after which appending threads wait for the disk.
const PENDING_MAX: usize = 4;

/// A filled buffer on its way to the file.
#[derive(Clone)]
struct Pending {
    segment: Arc<Segment>,
    file: Arc<dyn DiskFile>,
    begin: u32,
    bytes: Arc<Vec<u8>>,
}

impl Pending {
    /// Writes it, or leaves a hole in the file if nothing in it is live: its commit has been undone, and
    /// what comes after it must not wait for room that only a deletion may free.
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
        // What is read together with earlier blocks ends here.
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

    fn seal(&mut self, layout: Layout, sealed: &mut Sealed) {
        self.push_buffer(layout);
        if let Some(open) = self.open[layout as usize].take() {
            let mut state = open.segment.state.lock();
            state.sealed = true;
            let (number, ranges) = (open.segment.number, state.dead.punchable());
            sealed.extend(ranges.map(|(begin, end)| (number, layout, begin, end)));
        }
    }

    fn find(&self, place: Place, from: u32, buffer: &mut [u8]) -> bool {
        let copy = |begin: u32, bytes: &[u8], buffer: &mut [u8]| {
            let from = from.checked_sub(begin).map(|from| from as usize);
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

/// Whole pages that were dead already when their segment was sealed: (segment, layout, begin, end).
pub(super) type Sealed = Vec<(u32, Layout, u32, u32)>;

/// The side of the segments that blocks are added to.
pub(super) struct Appending {
    disk: Arc<dyn Disk>,
    pub(super) pool_id: [u8; 16],
    segment_size: u32,
    appender: Mutex<Appender>,
    /// Held while buffers are written and synced, so that a flush waits for one begun before it.
    writing: Mutex<()>,
    /// Bytes of blocks added since the pool was opened.
    added: AtomicU64,
}

impl Appending {
    pub(super) fn new(disk: Arc<dyn Disk>, pool_id: [u8; 16], segment_size: u32) -> Appending {
        Appending {
            disk,
            pool_id,
            segment_size,
            appender: Mutex::new(Appender { next_number: 1, ..Appender::default() }),
            writing: Mutex::new(()),
            added: AtomicU64::new(0),
        }
    }

    /// Counts a block that is added, here or over a dead page.
    pub(super) fn count(&self, room: u32) {
        self.added.fetch_add(u64::from(room), Ordering::Relaxed);
    }

    pub(super) fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }

    /// Adds a block; its place counts as live from now on. `sealed` gets the dead space of a segment that
    /// this sealed, even if an error follows.
    pub(super) fn append(
        &self,
        files: &Files,
        block: &Block<'_>,
        sealed: &mut Sealed,
    ) -> Result<Place> {
        let (layout, stored_len) = (block.layout, block.stored_len);
        let room = layout.room(stored_len);
        let (place, full) = {
            let mut appender = self.appender.lock();
            let fits = appender.open[layout as usize].as_ref().is_some_and(|open| {
                open.begin + open.buffer.len() as u32 + room <= self.segment_size
            });
            if !fits {
                self.begin_segment(files, &mut appender, layout, sealed)?;
            }
            let Some(open) = &mut appender.open[layout as usize] else {
                return Err(Error::Failed("no segment is open".into()));
            };
            let offset = open.begin + open.buffer.len() as u32;
            if layout == Layout::Frames {
                open.buffer.extend_from_slice(&block.header);
            }
            open.buffer.extend_from_slice(&block.content);
            let padded = (offset + room - open.begin) as usize;
            open.buffer.resize(padded, 0);
            {
                let mut state = open.segment.state.lock();
                state.len = offset + room;
                state.live += u64::from(room);
            }
            let segment = open.segment.number;
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
                // An error (no room) leaves the buffer pending: the commit's flush tries it again.
                let _ = self.write_pending();
            }
        }
        Ok(place)
    }

    /// Seals the open segment of this layout and begins the next.
    fn begin_segment(
        &self,
        files: &Files,
        appender: &mut Appender,
        layout: Layout,
        sealed: &mut Sealed,
    ) -> Result<()> {
        appender.seal(layout, sealed);
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
        files.insert(segment.clone());
        appender.open[layout as usize] = Some(Open { segment, file, begin: 0, buffer });
        Ok(())
    }

    /// Seals an open segment when at least half of it, and `min` bytes, or more than `dead_max` of
    /// it are dead: its space is given back only then.
    pub(super) fn seal_if_mostly_dead(&self, min: u32, dead_max: u64, sealed: &mut Sealed) {
        let mut appender = self.appender.lock();
        for layout in Layout::ALL {
            let Some(open) = &appender.open[layout as usize] else { continue };
            let state = open.segment.state.lock();
            let (len, live) = (u64::from(state.len - layout.begin()), state.live);
            drop(state);
            if len > 0
                && (live == 0 || (len >= u64::from(min) && live * 2 < len) || len - live > dead_max)
            {
                appender.seal(layout, sealed);
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
            // Readable in the file before it leaves the queue: a reader looks in the queue, then in
            // the file.
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

    /// See [`super::Segments::flush`].
    pub(super) fn flush(&self, files: &Files, sealed: &mut Sealed) -> Result<Result<()>> {
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
                self.give_up(files, &unsynced, sealed);
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

    /// What was to be synced may be lost, and a later sync would not report it. So nothing that was
    /// appended and not synced before is relied upon, and a new segment is begun.
    fn give_up(&self, files: &Files, unsynced: &Unsynced, sealed: &mut Sealed) {
        let mut appender = self.appender.lock();
        Layout::ALL.into_iter().for_each(|layout| appender.seal(layout, sealed));
        let pending = appender.pending.iter().map(|of| of.segment.number);
        // As a whole: a page that is being overwritten is not known here yet.
        files.give_up(unsynced.keys().copied().chain(pending));
    }

    /// Copies bytes of a block, from `from` on, that is in a buffer; whether it is.
    pub(super) fn find(&self, place: Place, from: u32, buffer: &mut [u8]) -> bool {
        self.appender.lock().find(place, from, buffer)
    }

    /// A range of a file was written past the buffers: the next flush syncs it.
    pub(super) fn must_sync(&self, file: Arc<dyn DiskFile>, place: Place) {
        let mut appender = self.appender.lock();
        let first = (file, place.offset, place.end());
        let (_, begin, end) = appender.unsynced.entry(place.segment).or_insert(first);
        (*begin, *end) = (place.offset.min(*begin), place.end().max(*end));
    }

    /// Whether bytes of a segment that end at `end`, and are in its file, may still wait for a flush.
    pub(super) fn awaits_flush(&self, number: u32, end: u32) -> bool {
        let appender = self.appender.lock();
        appender.unsynced.get(&number).is_some_and(|(_, begin, _)| end > *begin)
    }

    /// Nothing of a deleted segment is synced.
    pub(super) fn forget(&self, number: u32) {
        self.appender.lock().unsynced.remove(&number);
    }

    /// Whether a sealed segment has blocks that are not in its file yet.
    pub(super) fn sealed_unwritten(&self) -> bool {
        self.appender.lock().pending.iter().any(|pending| pending.segment.state.lock().sealed)
    }

    /// Takes over a file found at open: `len` bytes of it are referred to by the table, `live` of them
    /// in use. The dead ranges are given by [`super::Segments::add_dead`].
    pub(super) fn adopt(&self, files: &Files, number: u32, layout: Layout, len: u32, live: u64) {
        let state = SegmentState { len, live, sealed: true, ..SegmentState::default() };
        let (written, state) = (AtomicU32::new(len), Mutex::new(state));
        let segment = Segment { number, layout, written, state };
        files.insert(Arc::new(segment));
        let mut appender = self.appender.lock();
        appender.next_number = appender.next_number.max(number.saturating_add(1));
    }

    /// Numbers below this are not used for new segments.
    pub(super) fn skip_numbers(&self, next: u32) {
        let mut appender = self.appender.lock();
        appender.next_number = appender.next_number.max(next);
    }

    /// Continues appending to an adopted segment that has room, after cutting off what follows its
    /// end.
    pub(super) fn reopen(&self, files: &Files, number: u32) -> Result<()> {
        let Some(segment) = files.get(number) else { return Ok(()) };
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

    /// Appended bytes that the device does not have yet.
    pub(super) fn buffered(&self) -> u64 {
        let appender = self.appender.lock();
        let pending: usize = appender.pending.iter().map(|pending| pending.bytes.len()).sum();
        let open = appender.open.iter().flatten().map(|open| open.buffer.len());
        (pending + open.sum::<usize>()) as u64
    }
}
