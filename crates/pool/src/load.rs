//! Loads the table's files into memory: most of the time it takes to open a large pool.
//!
//! One thread reads the files and checks their chunks. It hands them on in batches to threads that each apply the
//! records of their own parts of the table: the records of one name are applied in the order they were written. A
//! batch is applied part by part, since a part fits a processor's cache and the table does not.

use crate::table::{PARTS, Table};
use crate::threads::threads_for;
use crate::{Error, Result, Seals};
use offshoot_format::seal::Purpose;
use offshoot_format::table::{CHUNK_HEADER_LEN, Record, check_chunk, decode_chunk_header};
use offshoot_format::{DecodeError, Reader};
use offshoot_os::disk::{Disk, DiskFile, read_exact_at};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Bytes of records that are applied together.
const BATCH_LEN: usize = 4 << 20;
/// Batches that may wait for each thread: bounds memory.
const BATCHES_WAITING: usize = 2;

/// What errors call the table.
pub(crate) const TABLE: &str = "block table";

pub(crate) fn damaged(detail: impl Into<String>) -> Error {
    Error::DamagedStructure { what: TABLE, detail: detail.into() }
}

/// Opens a file of a structure, which is damaged without it.
pub(crate) fn open_file(
    disk: &dyn Disk,
    path: &str,
    what: &'static str,
) -> Result<Arc<dyn DiskFile>> {
    disk.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::DamagedStructure { what, detail: format!("'{path}' is missing") }
        }
        _ => Error::io(format!("open '{path}'"), &error),
    })
}

/// A file of chunks, of which the first `len` bytes count.
pub(crate) struct Chunks {
    pub(crate) path: String,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) len: u64,
}

/// Where a chunk belongs: it opens nowhere else.
pub(crate) fn context(path: &str, number: u64) -> Vec<u8> {
    [&number.to_le_bytes(), path.as_bytes()].concat()
}

/// Applies the records of all files, one file after the other, to the table.
pub(crate) fn load(seals: &Seals, files: &[Chunks], table: &Table) -> Result<()> {
    let bytes: u64 = files.iter().map(|file| file.len).sum();
    match threads_for(bytes / BATCH_LEN as u64) {
        1 => {
            let mut worker = Worker::new(table, 0, 1);
            read(seals, files, |batch| worker.apply(&batch))
        }
        threads => load_on(threads, seals, files, table),
    }
}

fn load_on(threads: usize, seals: &Seals, files: &[Chunks], table: &Table) -> Result<()> {
    std::thread::scope(|scope| {
        let start = |share| {
            let (sender, batches) = sync_channel::<Arc<Batch>>(BATCHES_WAITING);
            let work = move || {
                let mut worker = Worker::new(table, share, threads);
                batches.iter().try_for_each(|batch| worker.apply(&batch))
            };
            let worker = std::thread::Builder::new().spawn_scoped(scope, work);
            worker.map(|worker| (sender, worker))
        };
        let started: std::io::Result<Vec<_>> = (0..threads).map(start).collect();
        let started = started.map_err(|error| Error::io("start a thread", &error))?;
        let (senders, workers): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        let mut result = read(seals, files, |batch| {
            let batch = Arc::new(batch);
            // A thread that has met an error takes no more, and reports it in the end.
            senders.iter().for_each(|sender| drop(sender.send(batch.clone())));
            Ok(())
        });
        drop(senders);
        for worker in workers {
            let applied = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(applied);
        }
        result
    })
}

/// Records of one file, checked.
struct Batch {
    path: String,
    /// Where its first chunk begins in the file.
    at: u64,
    records: Vec<u8>,
}

/// Reads files batch by batch.
fn read(seals: &Seals, files: &[Chunks], mut done: impl FnMut(Batch) -> Result<()>) -> Result<()> {
    for chunks in files {
        let path = &chunks.path;
        let there = chunks.file.len();
        if there.map_err(|error| Error::io(format!("read '{path}'"), &error))? < chunks.len {
            // Before memory is allocated for what does not exist.
            return Err(damaged(format!("'{path}' ends too early")));
        }
        let mut at = 0;
        while at < chunks.len {
            let room = (chunks.len - at).min(BATCH_LEN as u64) as usize;
            let records = Vec::with_capacity(room);
            let mut batch = Batch { path: path.clone(), at, records };
            while at < chunks.len && batch.records.len() < BATCH_LEN {
                at = read_chunk(seals, chunks, at, &mut batch.records)?;
            }
            done(batch)?;
        }
    }
    Ok(())
}

/// Appends the records of the chunk that begins at `at`; returns where the next one does.
fn read_chunk(seals: &Seals, chunks: &Chunks, at: u64, records: &mut Vec<u8>) -> Result<u64> {
    let Chunks { path, file, len } = chunks;
    let read = |offset: u64, bytes: &mut [u8]| {
        read_exact_at(&**file, offset, bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => damaged(format!("'{path}' ends too early")),
            _ => Error::io(format!("read '{path}'"), &error),
        })
    };
    let explain = |error| damaged(format!("'{path}' at byte {at}: {error}"));
    let mut header = [0; CHUNK_HEADER_LEN];
    read(at, &mut header)?;
    let (number, payload_len, checksum) = decode_chunk_header(&header).map_err(explain)?;
    let end = at + (CHUNK_HEADER_LEN + payload_len) as u64;
    if end > *len {
        return Err(damaged(format!("'{path}' at byte {at}: a chunk passes the end")));
    }
    let begin = records.len();
    records.resize(begin + payload_len, 0);
    let payload = &mut records[begin..];
    read(at + CHUNK_HEADER_LEN as u64, payload)?;
    check_chunk(&header, payload, checksum).map_err(explain)?;
    if let Cow::Owned(opened) =
        seals.open(Purpose::Table, &context(path, number), payload).map_err(explain)?
    {
        records.truncate(begin);
        records.extend_from_slice(&opened);
    }
    Ok(end)
}

/// Applies the records that belong to a share of the table's parts.
struct Worker<'a> {
    table: &'a Table,
    share: usize,
    shares: usize,
    /// The records of a batch by part; kept to reuse the memory.
    by_part: Vec<Vec<Record>>,
}

impl Worker<'_> {
    fn new(table: &Table, share: usize, shares: usize) -> Worker<'_> {
        Worker { table, share, shares, by_part: vec![Vec::new(); PARTS] }
    }

    fn apply(&mut self, batch: &Batch) -> Result<()> {
        let explain = |error: DecodeError| {
            damaged(format!("'{}' after byte {}: {error}", batch.path, batch.at))
        };
        let mut rest = batch.records.as_slice();
        while !rest.is_empty() {
            let (name, len) = Record::peek(rest).map_err(explain)?;
            let part = Table::part_of(&name);
            if part % self.shares == self.share {
                let mut reader = Reader::new("table record", rest);
                self.by_part[part].push(Record::decode(&mut reader).map_err(explain)?);
            }
            rest = rest.get(len..).unwrap_or_default();
        }
        for (part, records) in self.by_part.iter_mut().enumerate() {
            if !records.is_empty() {
                self.table.load_part(part, records.drain(..));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
