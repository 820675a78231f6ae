//! Rows on their way: out of the table that is masked, through threads that mask them, into a new one.
//!
//! ```text
//!   server ──▶ reader ──▶ [worker, worker, …] ──▶ writer ──▶ server
//! ```
//! Between two of them there are a few chunks of rows, never a table. The writer puts chunks in their order, so that the
//! nth row it writes is the nth that was read: a row that the server refuses is found again by its number.

use super::plan::Reading;
use super::rows::{Counts, place};
use super::watch::Watch;
use crate::wire::Refusal;
use crate::wire::{Door, IN_ORDER, Wire};
use offshoot_types::{ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope};

/// Bytes of rows that go through threads together, at least.
const CHUNK_BYTES: usize = 256 << 10;

/// Rows that were read.
struct Chunk {
    number: u64,
    reading: usize,
    rows: Vec<u8>,
}

/// Rows that may be written, in the order of their numbers.
struct Masked {
    number: u64,
    rows: Result<(Vec<u8>, Counts), Failure>,
}

/// The rows of a job on their way.
pub(super) struct Flow<'a> {
    pub(super) door: &'a Door,
    pub(super) database: &'a str,
    /// The table as users name it.
    pub(super) table: String,
    /// Which of the named tables it belongs to, if to any.
    pub(super) named: Option<usize>,
    pub(super) readings: &'a [Reading],
    pub(super) workers: usize,
    pub(super) watch: &'a Watch,
    /// How many rows each of the readings had that have ended.
    pub(super) read: Mutex<Vec<u64>>,
}

impl Flow<'_> {
    /// Takes all rows through; `copy` is the statement that writes. Every row that was read is written.
    pub(super) fn run(&self, writer: &mut Wire, copy: &str) -> Result<(), Failure> {
        writer.begin_copy_in(copy).map_err(|refusal| refusal.into_failure(&self.table))?;
        let (chunks, waiting) = sync_channel::<Chunk>(self.workers * 2);
        let (done, masked) = sync_channel::<Masked>(self.workers * 2);
        let waiting = Mutex::new(Some(waiting));
        std::thread::scope(|scope| {
            let reader = (chunks, done.clone());
            let written = match self.spawn(scope, reader, &waiting, done) {
                Ok(()) => self.write(masked, writer),
                Err(error) => {
                    Err(Failure::internal(format!("no thread to mask rows with: {error}")))
                }
            };
            // A reader whose rows nobody takes ends, as do workers.
            *waiting.lock() = None;
            written
        })?;
        let written = writer.end_copy_in().map_err(|refusal| self.refused(refusal))?;
        let read = self.read.lock().iter().sum::<u64>();
        if read != written {
            return Err(Failure::internal(format!(
                "{}: {read} rows were read and {written} written",
                self.table
            )));
        }
        self.named.into_iter().for_each(|named| self.watch.counted(named, read, written));
        Ok(())
    }

    /// Starts the reader and the workers.
    fn spawn<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        (chunks, failed): (SyncSender<Chunk>, SyncSender<Masked>),
        waiting: &'scope Mutex<Option<Receiver<Chunk>>>,
        done: SyncSender<Masked>,
    ) -> io::Result<()> {
        let thread = |name: &str| Builder::new().name(name.to_owned());
        thread("mask-read").spawn_scoped(scope, move || self.read(chunks, &failed))?;
        for _ in 0..self.workers {
            let done = done.clone();
            thread("mask-work").spawn_scoped(scope, move || self.work(waiting, &done))?;
        }
        Ok(())
    }

    fn read(&self, chunks: SyncSender<Chunk>, failed: &SyncSender<Masked>) {
        let mut number = 0;
        if let Err(failure) = self.read_all(&chunks, &mut number) {
            let _ = failed.send(Masked { number, rows: Err(failure) });
        }
    }

    fn read_all(&self, chunks: &SyncSender<Chunk>, number: &mut u64) -> Result<(), Failure> {
        let ended = || Failure::new(ErrorKind::Cancelled, "nobody takes the rows", "");
        let mut wire = Wire::connect(self.door, self.database)?;
        wire.execute(IN_ORDER).map_err(|refusal| refusal.into_failure(&self.table))?;
        for (reading, how) in self.readings.iter().enumerate() {
            let (mut rows, mut count) = (Vec::with_capacity(CHUNK_BYTES * 9 / 8), 0);
            let mut send = |rows: Vec<u8>| {
                let chunk = Chunk { number: *number, reading, rows };
                *number += 1;
                chunks.send(chunk).map_err(|_| ended())
            };
            let copy = format!("COPY ({}) TO STDOUT", how.query);
            let copied = wire.copy_out(&copy, &mut |row| {
                rows.extend_from_slice(row);
                count += 1;
                if rows.len() < CHUNK_BYTES {
                    return Ok(());
                }
                self.watch.go_on()?;
                send(std::mem::replace(&mut rows, Vec::with_capacity(CHUNK_BYTES * 9 / 8)))
            });
            copied.map_err(|error| match error {
                Ok(refusal) => refusal.into_failure(&self.table),
                Err(failure) => failure,
            })?;
            if !rows.is_empty() {
                send(rows)?;
            }
            self.read.lock().push(count);
        }
        Ok(())
    }

    fn work(&self, waiting: &Mutex<Option<Receiver<Chunk>>>, done: &SyncSender<Masked>) {
        loop {
            // Not held while rows are masked.
            let next = waiting.lock().as_ref().and_then(|waiting| waiting.recv().ok());
            let Some(chunk) = next else { return };
            let mut out = Vec::with_capacity(chunk.rows.len() * 9 / 8);
            let masked = match self.readings.get(chunk.reading) {
                Some(reading) => reading.rows.mask(&chunk.rows, &mut out),
                None => return,
            };
            let rows = masked.map(|counts| (out, counts));
            let rows = rows.map_err(|fault| fault.into_failure(&self.table));
            if done.send(Masked { number: chunk.number, rows }).is_err() {
                return;
            }
        }
    }

    fn write(&self, masked: Receiver<Masked>, writer: &mut Wire) -> Result<(), Failure> {
        let mut early = BTreeMap::new();
        let mut next = 0;
        for one in masked {
            early.insert(one.number, one.rows);
            while let Some(rows) = early.remove(&next) {
                let (rows, counts) = rows?;
                writer.send_rows(&rows).map_err(|refusal| self.refused(refusal))?;
                if let Some(named) = self.named {
                    self.watch.wrote(named, counts.rows, counts.values);
                }
                next += 1;
            }
        }
        match early.pop_first() {
            Some((_, Err(failure))) => Err(failure),
            Some(_) => Err(Failure::internal(format!("rows of {} are missing", self.table))),
            None => self.watch.go_on(),
        }
    }

    /// A row that the server refused, by its number.
    fn refused(&self, refusal: Refusal) -> Failure {
        if let Err(cancelled) = self.watch.go_on() {
            return cancelled;
        }
        let columns = self.readings.iter().flat_map(|reading| &reading.rows.written);
        let column = refusal.column_of(columns.map(|written| written.column.as_str()));
        let column = column.unwrap_or_default().to_owned();
        let row = refusal.line.and_then(|line| self.nth(line)).unwrap_or_default();
        refusal.into_failure(&place(&self.table, &column, &row))
    }

    /// What tells the row that was read as the nth, from 1.
    fn nth(&self, line: u64) -> Option<String> {
        let mut before = line.checked_sub(1)?;
        let mut reading = 0;
        for count in self.read.lock().iter() {
            if before < *count {
                break;
            }
            before -= count;
            reading += 1;
        }
        let sql =
            format!("{IN_ORDER} {} LIMIT 1 OFFSET {before}", self.readings.get(reading)?.told);
        let mut wire = Wire::connect(self.door, self.database).ok()?;
        wire.column(&sql).ok()?.into_iter().next()
    }
}
