//! The files and their reuse, group commit and replay.

use crate::files::{FILES_MIN, file_path, record_context};
use crate::replay::{LastRun, Replay};
use crate::scan::scan;
use crate::{Error, Result};
use offshoot_format::DecodeError;
use offshoot_format::log::{
    LOG_HEADER_LEN, LogFileHeader, SECTOR_BODY_LEN, SECTOR_LEN, SectorHeader,
};
use offshoot_format::seal::{Purpose, Seals};
use offshoot_os::Clock;
use offshoot_os::disk::{Disk, DiskFile};
use offshoot_types::{Latency, LatencyCounts};
use parking_lot::{Condvar, Mutex};
use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::Arc;

/// The unit of the page cache, in bytes; a file's size is a multiple of it.
const PAGE: u64 = 4096;

/// Larger buffers are not kept for the next records, in bytes.
const SPARE_LEN_MAX: usize = 4 << 20;

/// How full the log is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogUse {
    /// Bytes of files that cannot be reused yet.
    pub used: u64,
    /// Bytes of all files, including those that it may still make, until there was no room for one.
    pub total: u64,
}

struct RingFile {
    handle: Arc<dyn DiskFile>,
    /// Sequence of the last record in it; below `trimmed` the file is free.
    last_sequence: u64,
    begun: bool,
}

struct Chunk {
    file: usize,
    offset: u64,
    bytes: Vec<u8>,
}

impl Chunk {
    /// Zeros up to the end of a page, over records that are trimmed (R4): the system would first
    /// have to read the rest of a partly written page.
    fn fill_page(&mut self) {
        let end = self.offset + self.bytes.len() as u64;
        let missing = end.next_multiple_of(PAGE) - end;
        self.bytes.resize(self.bytes.len() + missing as usize, 0);
    }
}

struct State {
    files: Vec<RingFile>,
    current: usize,
    /// Where the next record goes in the current file, pending bytes included.
    offset: u64,
    next_sequence: u64,
    trimmed: u64,
    pending: Vec<Chunk>,
    /// Every record below this is on the device.
    synced: u64,
    /// Bytes of pending chunks that the device had no room to flush.
    refused_len: u64,
    flushing: bool,
    failed: Option<String>,
    /// The last try to add a file had no room, or failed.
    stunted: bool,
    /// Bytes of buffers to reuse, so that steady syncing allocates nothing.
    spare: Vec<u8>,
}

/// Where a growing log makes its files.
struct Growth {
    disk: Arc<dyn Disk>,
    /// Bytes of all files, in the end.
    size_max: u64,
    /// Bytes that the log may take now, without what commits need to make room in it.
    room: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// How long flushes take.
struct Timing {
    clock: Arc<dyn Clock>,
    flushes: Latency,
}

/// The log. All methods may be called from any thread.
pub struct IntentLog {
    state: Mutex<State>,
    flushed: Condvar,
    file_size: u64,
    generation: u64,
    growth: Option<Growth>,
    timing: Option<Timing>,
    seals: Seals,
}

/// A file that is not part of the log yet.
const NEW_FILE: &str = "log/new";

impl IntentLog {
    /// Makes the files of an empty log. `file_size` is a multiple of 4096, at least 64 KiB; at least three `files`.
    pub fn create(disk: &dyn Disk, file_size: u64, files: u32) -> Result<()> {
        let failed = |action: &str, error: &std::io::Error| Error::io(action, error);
        disk.create_dir("log").map_err(|error| failed("create log/", &error))?;
        for number in 0..(files as usize).max(FILES_MIN) {
            let path = file_path(number);
            make_file(disk, &path, file_size).map_err(|error| failed(&path, &error))?;
        }
        disk.sync_dir("log").map_err(|error| failed("sync log/", &error))?;
        disk.sync_dir("").map_err(|error| failed("sync the pool directory", &error))
    }

    /// Reads the log: every record since the last trim, in order, up to the first that is missing or
    /// torn, and which of it is damaged. Changes nothing on disk; call it as often as needed before
    /// [`IntentLog::open`].
    pub fn replay(disk: &dyn Disk) -> Result<Replay> {
        IntentLog::replay_sealed(disk, &Seals::default())
    }

    /// As [`IntentLog::replay`], with what opens the records of an encrypted pool. A record that does
    /// not open is damaged.
    pub fn replay_sealed(disk: &dyn Disk, seals: &Seals) -> Result<Replay> {
        Ok(scan(disk, seals)?.replay)
    }

    /// As [`IntentLog::replay_sealed`], to go on from there with [`IntentLog::begin`]: reading a long log takes a while.
    pub fn read(disk: &dyn Disk, seals: &Seals) -> Result<LastRun> {
        Ok(LastRun(scan(disk, seals)?))
    }

    /// Starts a new generation after the last valid record. The caller has made everything that
    /// [`IntentLog::replay`] returned durable elsewhere: from here on old records are gone, and
    /// damage is forgotten.
    pub fn open(disk: &dyn Disk) -> Result<IntentLog> {
        IntentLog::open_sealed(disk, Seals::default())
    }

    /// As [`IntentLog::open`]; the payloads of all records are sealed, if the pool is encrypted.
    pub fn open_sealed(disk: &dyn Disk, seals: Seals) -> Result<IntentLog> {
        IntentLog::begin(IntentLog::read(disk, &seals)?, seals)
    }

    /// As [`IntentLog::open_sealed`], of a log that was read and that nobody has changed since.
    pub fn begin(LastRun(scan): LastRun, seals: Seals) -> Result<IntentLog> {
        let generation = scan.generation + 1;
        let first = scan.next_sequence;
        for (number, handle) in scan.unusable() {
            clear_file(&**handle, scan.file_size)
                .map_err(|error| Error::io(file_path(number), &error))?;
        }
        let mut files = Vec::new();
        for file in scan.files {
            files.push(RingFile { handle: file.handle, last_sequence: 0, begun: false });
        }
        // Not the file of the last records: if this header is torn, that file's records, although
        // durable elsewhere, should still chain with those of the files around them.
        let current = (scan.last_file + 1) % files.len();
        let header = LogFileHeader { generation, first_sequence: first, trimmed: first };
        let handle = &files[current].handle;
        // R2: the generation is on the device before any record carries it.
        handle
            .write_at(0, &header.encode())
            .and_then(|()| handle.sync_data())
            .map_err(|error| Error::io("begin the intent log", &error))?;
        files[current].begun = true;
        let state = State {
            files,
            current,
            offset: LOG_HEADER_LEN,
            next_sequence: first,
            trimmed: first,
            pending: Vec::new(),
            synced: first,
            refused_len: 0,
            flushing: false,
            failed: None,
            stunted: false,
            spare: Vec::new(),
        };
        let flushed = Condvar::new();
        let (state, file_size) = (Mutex::new(state), scan.file_size);
        let (growth, timing) = (None, None);
        Ok(IntentLog { state, flushed, file_size, generation, growth, timing, seals })
    }

    /// The same log, with more files whenever none is free, up to `size_max` bytes in all, as long as there are `room`
    /// bytes for them. These files stay.
    pub fn growing(
        self,
        disk: Arc<dyn Disk>,
        size_max: u64,
        room: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> IntentLog {
        IntentLog { growth: Some(Growth { disk, size_max, room: Box::new(room) }), ..self }
    }

    /// The same log, which measures how long its flushes take.
    pub fn timed(self, clock: Arc<dyn Clock>) -> IntentLog {
        IntentLog { timing: Some(Timing { clock, flushes: Latency::default() }), ..self }
    }

    /// How long flushes took, also those that failed, since the log was opened; none where it is not
    /// [`IntentLog::timed`].
    pub fn flush_latency(&self) -> LatencyCounts {
        self.timing.as_ref().map(|timing| timing.flushes.counts()).unwrap_or_default()
    }

    /// The longest payload of a record, in bytes.
    pub fn payload_max(&self) -> usize {
        (self.file_size - LOG_HEADER_LEN) as usize / SECTOR_LEN * SECTOR_BODY_LEN
            - self.seals.overhead()
    }

    /// Adds a record, in memory; the parts are its payload. Returns its sequence for
    /// [`IntentLog::sync`] and [`IntentLog::trim`]. If the record is damaged one day, `stream` and
    /// `position` say what was lost: whose record it is, and how far that stream comes with it.
    ///
    /// # Errors
    /// `Full`, `NoRoom`: commit instead. `TooLarge`, `Failed`.
    pub fn append(&self, stream: u64, position: u64, parts: &[IoSlice<'_>]) -> Result<u64> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > self.payload_max() {
            return Err(Error::TooLarge { len: length, max: self.payload_max() });
        }
        // Before the lock is taken.
        let sealed = match self.seals.are_on() {
            false => None,
            true => Some(self.seal(stream, position, parts)?),
        };
        let length = sealed.as_ref().map_or(length, Vec::len);
        let stored = SectorHeader::stored_len(length);
        let mut state = self.state.lock();
        if state.refused_len > self.file_size {
            // Trying bounds what has to be rewritten.
            let last = state.next_sequence - 1;
            drop(state);
            self.sync(last)?;
            state = self.state.lock();
        }
        if let Some(reason) = &state.failed {
            return Err(Error::Failed(reason.clone()));
        }
        if state.offset + stored > self.file_size {
            self.advance(&mut state)?;
        }
        let sequence = state.next_sequence;
        let header = SectorHeader {
            length: length as u32,
            index: 0,
            sequence,
            generation: self.generation as u32,
            unsynced: (sequence - state.synced).try_into().unwrap_or(u32::MAX),
            stream,
            position,
        };
        let (current, offset) = (state.current, state.offset);
        let bytes = state.pending_bytes(current, offset);
        match &sealed {
            None => header.encode_record(parts.iter().map(|part| &**part), bytes),
            Some(sealed) => header.encode_record(std::iter::once(&**sealed), bytes),
        }
        state.offset += stored;
        state.next_sequence += 1;
        state.files[current].last_sequence = sequence;
        Ok(sequence)
    }

    /// Seals a payload, for this place of its stream in this opening of the log.
    fn seal(&self, stream: u64, position: u64, parts: &[IoSlice<'_>]) -> Result<Vec<u8>> {
        let payload = parts.iter().map(|part| &**part).collect::<Vec<_>>().concat();
        let context = record_context(self.generation as u32, stream, position);
        let sealed = self.seals.seal(Purpose::Log, &context, &payload);
        let failed = |error: DecodeError| Error::Failed(error.to_string());
        sealed.map(Cow::into_owned).map_err(failed)
    }

    /// Continues in the file that has been free for longest, or in a new one.
    fn advance(&self, state: &mut State) -> Result<()> {
        // R4: no record that is still needed is overwritten.
        let free =
            |(_, file): &(usize, &RingFile)| !file.begun || file.last_sequence < state.trimmed;
        let others = state.files.iter().enumerate().filter(|(number, _)| *number != state.current);
        let longest = others.filter(free).min_by_key(|(_, file)| file.last_sequence);
        let next = match longest.map(|(number, _)| number) {
            Some(number) => number,
            None => self.grow(state)?,
        };
        let header = LogFileHeader {
            generation: self.generation,
            first_sequence: state.next_sequence,
            trimmed: state.trimmed,
        };
        state.current = next;
        state.offset = LOG_HEADER_LEN;
        state.files[next].begun = true;
        state.files[next].last_sequence = state.next_sequence;
        let mut bytes = header.encode().to_vec();
        bytes.resize(LOG_HEADER_LEN as usize, 0);
        state.pending.push(Chunk { file: next, offset: 0, bytes });
        Ok(())
    }

    /// Adds a file, one at a time: the next is not made before this one exists.
    fn grow(&self, state: &mut State) -> Result<usize> {
        let number = state.files.len();
        let size = self.file_size * (number as u64 + 1);
        let growth = self.growth.as_ref().filter(|growth| size <= growth.size_max);
        let growth = growth.ok_or(Error::Full)?;
        state.stunted = true;
        if (growth.room)() < self.file_size {
            return Err(Error::Full);
        }
        // R8: whole and durable before it gets its name, and that before its first record.
        let made = make_file(&*growth.disk, NEW_FILE, self.file_size).and_then(|handle| {
            growth.disk.rename(NEW_FILE, &file_path(number))?;
            growth.disk.sync_dir("log")?;
            Ok(handle)
        });
        let handle = made.map_err(|error| {
            tracing::warn!(%error, "the intent log cannot grow; commits make room in it instead");
            Error::Full
        })?;
        state.stunted = false;
        state.files.push(RingFile { handle, last_sequence: 0, begun: false });
        Ok(number)
    }

    /// Returns when the record and all before it are on the device. One thread writes and flushes
    /// for all that wait; later ones share the next flush.
    ///
    /// # Errors
    /// `NoRoom`: commit instead. `Failed` if a flush failed otherwise, and from then on.
    pub fn sync(&self, sequence: u64) -> Result<()> {
        let mut state = self.state.lock();
        let sequence = sequence.min(state.next_sequence - 1);
        loop {
            if state.synced > sequence {
                return Ok(());
            }
            if let Some(reason) = &state.failed {
                return Err(Error::Failed(reason.clone()));
            }
            if state.flushing {
                self.flushed.wait(&mut state);
                continue;
            }
            state.flushing = true;
            let mut chunks = std::mem::take(&mut state.pending);
            chunks.last_mut().into_iter().for_each(Chunk::fill_page);
            let end = state.next_sequence;
            let handles: Vec<_> =
                chunks.iter().map(|chunk| Arc::clone(&state.files[chunk.file].handle)).collect();
            drop(state);
            let outcome = self.timed_flush(&chunks, &handles);
            state = self.state.lock();
            state.flushing = false;
            match outcome {
                Ok(()) => (state.synced, state.refused_len) = (end, 0),
                Err(error @ Error::NoRoom(_)) => {
                    state.put_back(chunks);
                    self.flushed.notify_all();
                    return Err(error);
                }
                // R5
                Err(error) => state.failed = Some(error.to_string()),
            }
            if let Some(mut chunk) = chunks.into_iter().next_back()
                && chunk.bytes.capacity() <= SPARE_LEN_MAX
            {
                chunk.bytes.clear();
                state.spare = chunk.bytes;
            }
            self.flushed.notify_all();
        }
    }

    fn timed_flush(&self, chunks: &[Chunk], handles: &[Arc<dyn DiskFile>]) -> Result<()> {
        let Some(Timing { clock, flushes }) = &self.timing else { return flush(chunks, handles) };
        let began = clock.elapsed();
        let outcome = flush(chunks, handles);
        flushes.record(clock.elapsed().saturating_sub(began));
        outcome
    }

    /// Forgets all records before `sequence`: everything in them is durable elsewhere.
    pub fn trim(&self, sequence: u64) {
        let mut state = self.state.lock();
        let end = state.next_sequence;
        state.trimmed = state.trimmed.max(sequence.min(end));
    }

    /// The sequence the next record will get.
    pub fn next_sequence(&self) -> u64 {
        self.state.lock().next_sequence
    }

    /// Whether the log refuses records since a flush failed.
    pub fn has_failed(&self) -> bool {
        self.state.lock().failed.is_some()
    }

    /// How full the log is.
    pub fn space(&self) -> LogUse {
        let state = self.state.lock();
        let held = |(number, file): (usize, &RingFile)| {
            if number == state.current {
                state.offset
            } else if file.begun && file.last_sequence >= state.trimmed {
                self.file_size
            } else {
                0
            }
        };
        let used = state.files.iter().enumerate().map(held).sum();
        let size = self.file_size * state.files.len() as u64;
        let growth = self.growth.as_ref().filter(|_| !state.stunted);
        LogUse { used, total: growth.map_or(0, |growth| growth.size_max).max(size) }
    }
}

impl State {
    /// Has chunks rewritten by the next flush, before all that came after them (R7).
    fn put_back(&mut self, mut chunks: Vec<Chunk>) {
        self.refused_len = chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum();
        chunks.append(&mut self.pending);
        self.pending = chunks;
    }

    /// The buffer that goes to `offset` of a file: the last pending one, if it ends there.
    fn pending_bytes(&mut self, file: usize, offset: u64) -> &mut Vec<u8> {
        let fits = self.pending.last().is_some_and(|last| {
            last.file == file && last.offset + last.bytes.len() as u64 == offset
        });
        if !fits {
            let bytes = std::mem::take(&mut self.spare);
            self.pending.push(Chunk { file, offset, bytes });
        }
        let last = self.pending.len() - 1;
        &mut self.pending[last].bytes
    }
}

/// Makes a file filled with zeros, so that later flushes change no allocation.
fn make_file(disk: &dyn Disk, path: &str, len: u64) -> std::io::Result<Arc<dyn DiskFile>> {
    // An earlier try may have been cut short.
    match disk.remove(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = disk.create(path)?;
    file.allocate(0, len).and_then(|()| clear_file(&*file, len))?;
    Ok(file)
}

/// Fills a file with zeros, durably.
fn clear_file(file: &dyn DiskFile, len: u64) -> std::io::Result<()> {
    let zeros = vec![0; (1 << 20).min(len as usize)];
    let mut offset = 0;
    while offset < len {
        let part = zeros.len().min((len - offset) as usize);
        file.write_at(offset, &zeros[..part])?;
        offset += part as u64;
    }
    file.sync_data()
}

/// Writes chunks in order, each file flushed before the next is written (R3).
fn flush(chunks: &[Chunk], handles: &[Arc<dyn DiskFile>]) -> Result<()> {
    for (number, (chunk, handle)) in chunks.iter().zip(handles).enumerate() {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::StorageFull => Error::NoRoom(error.to_string()),
            _ => Error::io("write the intent log", &error),
        };
        let header_len = if chunk.offset == 0 { LOG_HEADER_LEN as usize } else { 0 };
        let (header, records) = chunk.bytes.split_at(header_len.min(chunk.bytes.len()));
        if !header.is_empty() {
            // R6
            handle.write_at(chunk.offset, header).map_err(failed)?;
            handle.sync_data().map_err(failed)?;
        }
        handle.write_at(chunk.offset + header.len() as u64, records).map_err(failed)?;
        if chunks.get(number + 1).is_none_or(|next| next.file != chunk.file) {
            handle.sync_data().map_err(failed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
