//! The ring of files, group commit and replay.

use crate::{Error, Result};
use offshoot_format::log::{
    LOG_HEADER_LEN, LogFileHeader, LogRecordHeader, RECORD_ALIGN, RECORD_HEADER_LEN,
};
use offshoot_os::disk::{Disk, DiskFile};
use parking_lot::{Condvar, Mutex};
use std::io::IoSlice;
use std::sync::Arc;

/// The fewest files a log can work with: one being written, one waiting, one being trimmed.
const FILES_MIN: usize = 3;

/// The unit of the page cache, in bytes; a file's size is a multiple of it.
const PAGE: u64 = 4096;

/// Larger buffers are not kept for the next records, in bytes.
const SPARE_LEN_MAX: usize = 4 << 20;

/// One record as replay finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its sequence.
    pub sequence: u64,
    /// What was appended.
    pub payload: Vec<u8>,
}

/// How full the log is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogUse {
    /// Bytes of files that cannot be reused yet.
    pub used: u64,
    /// Bytes of all files.
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
    /// Zeros up to the end of a page, over records that are trimmed (R4): of a page written in part,
    /// the system would first read the rest.
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
    flushing: bool,
    failed: Option<String>,
    /// Bytes of buffers to reuse, so that steady syncing allocates nothing.
    spare: Vec<u8>,
}

/// The log. All methods may be called from any thread.
pub struct IntentLog {
    state: Mutex<State>,
    flushed: Condvar,
    file_size: u64,
    generation: u64,
}

fn file_path(number: usize) -> String {
    format!("log/{number:02}.log")
}

impl IntentLog {
    /// Makes the files of an empty log, filled with zeros so that later flushes change no
    /// allocation. `file_size` is a multiple of 4096, at least 64 KiB; at least three `files`.
    pub fn create(disk: &dyn Disk, file_size: u64, files: u32) -> Result<()> {
        let failed = |action: &str, error: &std::io::Error| Error::io(action, error);
        disk.create_dir("log").map_err(|error| failed("create log/", &error))?;
        let zeros = vec![0; (1 << 20).min(file_size as usize)];
        for number in 0..(files as usize).max(FILES_MIN) {
            let path = file_path(number);
            // An earlier creation may have been cut short.
            match disk.remove(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(&path, &error));
                }
                _ => {}
            }
            let file = disk.create(&path).map_err(|error| failed(&path, &error))?;
            file.allocate(0, file_size).map_err(|error| failed(&path, &error))?;
            let mut offset = 0;
            while offset < file_size {
                let len = zeros.len().min((file_size - offset) as usize);
                file.write_at(offset, &zeros[..len]).map_err(|error| failed(&path, &error))?;
                offset += len as u64;
            }
            file.sync_data().map_err(|error| failed(&path, &error))?;
        }
        disk.sync_dir("log").map_err(|error| failed("sync log/", &error))?;
        disk.sync_dir("").map_err(|error| failed("sync the pool directory", &error))
    }

    /// Reads the log: every record since the last trim, in order, up to the first that is missing
    /// or torn. Changes nothing on disk; call it as often as needed before [`IntentLog::open`].
    pub fn replay(disk: &dyn Disk) -> Result<Vec<Record>> {
        Ok(scan(disk)?.records)
    }

    /// Starts a new generation behind the last valid record. The caller has made everything in
    /// [`IntentLog::replay`]'s answer durable elsewhere: old records are gone from here on.
    pub fn open(disk: &dyn Disk) -> Result<IntentLog> {
        let scan = scan(disk)?;
        let generation = scan.generation + 1;
        let first = scan.next_sequence;
        let mut files = Vec::new();
        for (_, handle) in scan.files {
            files.push(RingFile { handle, last_sequence: 0, begun: false });
        }
        // Not the file of the last records: were this header torn, that file's records, although
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
            flushing: false,
            failed: None,
            spare: Vec::new(),
        };
        let flushed = Condvar::new();
        Ok(IntentLog { state: Mutex::new(state), flushed, file_size: scan.file_size, generation })
    }

    /// The longest payload of a record, in bytes.
    pub fn payload_max(&self) -> usize {
        (self.file_size - LOG_HEADER_LEN) as usize - RECORD_HEADER_LEN
    }

    /// Adds a record, in memory; the parts are its payload. Answers its sequence for
    /// [`IntentLog::sync`] and [`IntentLog::trim`].
    ///
    /// # Errors
    /// `Full`: commit instead. `TooLarge`, `Failed`.
    pub fn append(&self, parts: &[IoSlice<'_>]) -> Result<u64> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > self.payload_max() {
            return Err(Error::TooLarge { len: length, max: self.payload_max() });
        }
        let stored = LogRecordHeader::stored_len(length);
        let mut state = self.state.lock();
        if let Some(reason) = &state.failed {
            return Err(Error::Failed(reason.clone()));
        }
        if state.offset + stored > self.file_size {
            self.advance(&mut state)?;
        }
        let sequence = state.next_sequence;
        let header =
            LogRecordHeader { length: length as u32, sequence, generation: self.generation };
        let checksum =
            parts.iter().fold(header.checksum_seed(), |sum, part| crc32c::crc32c_append(sum, part));
        let (current, offset) = (state.current, state.offset);
        let bytes = state.pending_bytes(current, offset);
        bytes.extend_from_slice(&header.encode(checksum));
        for part in parts {
            bytes.extend_from_slice(part);
        }
        bytes.resize(bytes.len().next_multiple_of(RECORD_ALIGN), 0);
        state.offset += stored;
        state.next_sequence += 1;
        state.files[current].last_sequence = sequence;
        Ok(sequence)
    }

    /// Goes on in the next file of the ring.
    fn advance(&self, state: &mut State) -> Result<()> {
        let next = (state.current + 1) % state.files.len();
        // R4: no record that is still needed is overwritten.
        if state.files[next].begun && state.files[next].last_sequence >= state.trimmed {
            return Err(Error::Full);
        }
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

    /// Returns when the record and all before it are on the device. One thread writes and flushes
    /// for all that wait; those that come meanwhile share the next flush.
    ///
    /// # Errors
    /// `Io` for those whose flush failed, `Failed` for all later ones: commit instead.
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
            let outcome = flush(&chunks, &handles);
            state = self.state.lock();
            state.flushing = false;
            match outcome {
                Ok(()) => state.synced = end,
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

    /// Forgets all records before `sequence`: everything they say is durable elsewhere.
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
        LogUse { used, total: self.file_size * state.files.len() as u64 }
    }
}

impl State {
    /// The buffer that goes to `offset` of a file: the last pending one when it ends there.
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

/// Writes chunks in order, each file flushed before the next is written (R3).
fn flush(chunks: &[Chunk], handles: &[Arc<dyn DiskFile>]) -> Result<()> {
    for (number, (chunk, handle)) in chunks.iter().zip(handles).enumerate() {
        let failed = |error: std::io::Error| Error::io("write the intent log", &error);
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

struct Scan {
    files: Vec<(Option<LogFileHeader>, Arc<dyn DiskFile>)>,
    file_size: u64,
    records: Vec<Record>,
    next_sequence: u64,
    generation: u64,
    last_file: usize,
}

/// Reads all headers and the chain of records from the latest trim on.
fn scan(disk: &dyn Disk) -> Result<Scan> {
    let names = disk.list("log").map_err(|error| Error::io("list log/", &error))?;
    let mut files = Vec::new();
    let mut file_size = u64::MAX;
    for (number, name) in names.iter().filter(|name| name.ends_with(".log")).enumerate() {
        let path = file_path(number);
        if path != format!("log/{name}") {
            return Err(Error::Missing(format!("{path} is not there")));
        }
        let failed = |error: std::io::Error| Error::io(format!("read {path}"), &error);
        let handle = disk.open(&path).map_err(failed)?;
        file_size = file_size.min(handle.len().map_err(failed)?);
        let mut bytes = [0; 512];
        handle.read_at(0, &mut bytes).map_err(failed)?;
        files.push((LogFileHeader::decode(&bytes).ok(), handle));
    }
    if files.len() < FILES_MIN || file_size < 16 * LOG_HEADER_LEN {
        return Err(Error::Missing(format!("{} files of {file_size} bytes", files.len())));
    }
    let headers = || files.iter().filter_map(|(header, _)| *header);
    let trimmed = headers().map(|header| header.trimmed).max().unwrap_or(1);
    let generation = headers().map(|header| header.generation).max().unwrap_or(0);
    let start = start_file(&files, trimmed);
    let mut scan = Scan {
        file_size,
        records: Vec::new(),
        next_sequence: trimmed,
        generation,
        last_file: start.unwrap_or(0),
        files,
    };
    if let Some(start) = start {
        read_chain(&mut scan, start, trimmed)?;
    }
    Ok(scan)
}

/// The file that holds the record `trimmed`, or would: the one with the largest first sequence not
/// above it, of those the newest.
fn start_file(files: &[(Option<LogFileHeader>, Arc<dyn DiskFile>)], trimmed: u64) -> Option<usize> {
    files
        .iter()
        .enumerate()
        .filter_map(|(number, (header, _))| header.map(|header| (number, header)))
        .filter(|(_, header)| header.first_sequence <= trimmed)
        .max_by_key(|(_, header)| (header.first_sequence, header.generation))
        .map(|(number, _)| number)
}

fn read_chain(scan: &mut Scan, start: usize, trimmed: u64) -> Result<()> {
    let Some(header) = scan.files[start].0 else { return Ok(()) };
    let (mut current, mut expected, mut generation) =
        (start, header.first_sequence, header.generation);
    loop {
        scan.last_file = current;
        let bytes = read_file(&*scan.files[current].1, scan.file_size)?;
        let mut offset = LOG_HEADER_LEN as usize;
        // R1
        while let Some((header, payload)) =
            bytes.get(offset..).and_then(|rest| LogRecordHeader::decode(rest).ok())
        {
            if header.sequence != expected || header.generation < generation {
                break;
            }
            if expected >= trimmed {
                scan.records.push(Record { sequence: expected, payload: payload.to_vec() });
            }
            generation = header.generation;
            expected += 1;
            offset += LogRecordHeader::stored_len(payload.len()) as usize;
        }
        scan.next_sequence = scan.next_sequence.max(expected);
        let follows = |header: &LogFileHeader| {
            header.first_sequence == expected && header.generation >= generation
        };
        let next = scan
            .files
            .iter()
            .enumerate()
            .filter(|(number, _)| *number != current)
            .filter_map(|(number, (header, _))| {
                header.filter(follows).map(|header| (number, header))
            })
            .max_by_key(|(_, header)| header.generation);
        // A file that holds no record ends the chain: going on could only turn in a circle.
        let empty = offset == LOG_HEADER_LEN as usize;
        match next {
            Some((number, header)) if !empty => (current, generation) = (number, header.generation),
            _ => return Ok(()),
        }
    }
}

fn read_file(file: &dyn DiskFile, len: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len as usize];
    offshoot_os::disk::read_exact_at(file, 0, &mut bytes)
        .map_err(|error| Error::io("read the intent log", &error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
