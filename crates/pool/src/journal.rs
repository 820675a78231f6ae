//! The durable form of the block table and the root slots.
//!
//! The table is a checkpoint file plus delta logs; a root slot names all of them, with the length of
//! each log that counts. Each commit appends one chunk to the last log and then writes the other
//! root slot. When the logs outgrow the checkpoint a new log is begun, the table is written as a new
//! checkpoint while commits continue (records are absolute, so it does not matter on which side of a
//! commit an entry was copied), and a root then names the new checkpoint and the new log alone.

use crate::invariants;
use crate::load::{Chunks, TABLE, context, damaged, load, open_file};
use crate::roots::{self, CommitError, FILES_LEN, Newest, Roots};
use crate::table::Table;
use crate::{Error, Result, Seals};
use offshoot_format::DecodeError;
use offshoot_format::root::{self, LogExtent, RootSlot};
use offshoot_format::seal;
use offshoot_format::table::{CHUNK_HEADER_LEN, CHUNK_LEN_MAX, Record, encode_chunk_header};
use offshoot_os::disk::{Disk, DiskFile};
use std::borrow::Cow;
use std::io::IoSlice;
use std::sync::Arc;

/// The directory of the table's files.
pub(crate) const DIR: &str = "table";
/// Bytes of a checkpoint for each block.
pub(crate) const RECORD_LEN: u64 = 54;
/// Records of a checkpoint are written in chunks of about this many bytes.
const CHECKPOINT_CHUNK_LEN: usize = 1 << 20;

fn log_path(number: u64) -> String {
    format!("{DIR}/{number:08}.log")
}

fn checkpoint_path(number: u64) -> String {
    format!("{DIR}/{number:08}.checkpoint")
}

/// A checkpoint that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CheckpointTicket {
    number: u64,
    /// The first log that has to be replayed after it.
    first_log: u64,
}

/// Writes the table's files and the root slots.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    seals: Seals,
    roots: Roots,
    log: Arc<dyn DiskFile>,
    /// What the last durable root says.
    pub(crate) root: RootSlot,
    next_number: u64,
    /// Length of the checkpoint file in bytes.
    checkpoint_len: u64,
    /// The device had no room when the root after `root` was flushed: nobody knows whether it is there.
    doubtful: bool,
}

/// Makes the files of an empty pool.
pub(crate) fn create(disk: &dyn Disk, seals: &Seals) -> Result<()> {
    let write = || -> std::io::Result<()> {
        roots::create(disk, seals, 1)?;
        disk.create(&log_path(1))?.sync_data()?;
        disk.sync_dir(DIR)
    };
    write().map_err(|error| Error::io("create the pool's first root", &error))
}

/// Nothing durable has changed if the device had no room to flush something that no root counts.
fn unflushed(error: Error) -> CommitError {
    match error {
        Error::Full { .. } => CommitError::Undone(error),
        _ => CommitError::Unknown(error),
    }
}

/// A number that no file has, and that the root does not name even if that file is gone.
fn unused_number(disk: &dyn Disk, root: &RootSlot) -> Result<u64> {
    let named = root.logs.iter().map(|log| log.number).chain([root.checkpoint]);
    let mut next = named.max().unwrap_or(0) + 1;
    let names = disk.list(DIR);
    for name in names.map_err(|error| Error::io(format!("list '{DIR}'"), &error))? {
        let number = name.split_once('.').and_then(|(number, _)| number.parse::<u64>().ok());
        next = next.max(number.map_or(0, |number| number.saturating_add(1)));
    }
    Ok(next)
}

/// Makes an empty log file.
fn create_log(disk: &dyn Disk, number: u64) -> Result<Arc<dyn DiskFile>> {
    let path = log_path(number);
    let log = disk.create(&path).and_then(|log| {
        // The name MUST be durable before a root that names it.
        disk.sync_dir(DIR)?;
        Ok(log)
    });
    log.map_err(|error| Error::io(format!("create '{path}'"), &error))
}

impl Journal {
    /// Reads the newest root and loads its table. `rebuild` replaces a damaged table by filling an
    /// empty one with what the root reaches. Also returns what was found damaged.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        seals: &Seals,
        table: &Table,
        rebuild: impl FnOnce(&RootSlot) -> Result<()>,
    ) -> Result<(Journal, Vec<String>)> {
        let roots = Roots::open(&**disk, seals)?;
        let Newest { mut root, damage } = roots.read()?;
        let mut damage = Vec::from_iter(damage);
        // ORDER 3 for a root whose writer did not see its flush succeed: it is written again, because
        // after a failed flush the system may take it for clean.
        roots.write(&root, root.txg.0).map_err(CommitError::into_error)?;
        match damage.is_empty() {
            true => roots.write_older_again(&root)?,
            // Either slot may be the damaged one.
            false => roots.write(&root, root.txg.0 + 1).map_err(CommitError::into_error)?,
        }
        let mut next_number = unused_number(&**disk, &root)?;
        let (log, checkpoint_len, rebuilt) = match load_table(&**disk, seals, &root, table) {
            Ok((log, checkpoint_len)) => (log, checkpoint_len, false),
            Err(Error::DamagedStructure { what, detail }) => {
                tracing::error!(what, detail, "the table is rebuilt from the segments");
                damage.push("the block table was damaged; it was rebuilt from the segments".into());
                table.retain(|_, _| false);
                rebuild(&root)?;
                root.logs.push(LogExtent { number: next_number, len: 0 });
                next_number += 1;
                (create_log(&**disk, next_number - 1)?, 0, true)
            }
            Err(other) => return Err(other),
        };
        let mut journal = Journal {
            disk: disk.clone(),
            seals: seals.clone(),
            roots,
            log,
            root,
            next_number,
            checkpoint_len,
            doubtful: false,
        };
        if rebuilt {
            journal.replace_table(table)?;
        }
        journal.remove_unnamed()?;
        Ok((journal, damage))
    }

    /// Writes the whole table and a root that names nothing older than the last log.
    fn replace_table(&mut self, table: &Table) -> Result<()> {
        let (number, first_log) = (self.next_number, self.next_number - 1);
        let ticket = CheckpointTicket { number, first_log };
        self.next_number += 1;
        let len = write_checkpoint(&*self.disk, &self.seals, ticket, table)?;
        self.finish_checkpoint(ticket, len).map_err(CommitError::into_error)
    }

    /// Begins a new log file.
    fn begin_log(&mut self) -> Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        self.log = create_log(&*self.disk, number)?;
        self.root.logs.push(LogExtent { number, len: 0 });
        Ok(())
    }

    /// Removes table files that the durable root does not name.
    fn remove_unnamed(&mut self) -> Result<()> {
        let names = self.disk.list(DIR);
        for name in names.map_err(|error| Error::io(format!("list '{DIR}'"), &error))? {
            let Some((number, kind)) = name.split_once('.') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            self.next_number = self.next_number.max(number.saturating_add(1));
            let named = match kind {
                "log" => self.root.logs.iter().any(|log| log.number == number),
                "checkpoint" => self.root.checkpoint == number,
                _ => continue,
            };
            if !named {
                let path = format!("{DIR}/{name}");
                let removed = self.disk.remove(&path);
                removed.map_err(|error| Error::io(format!("remove '{path}'"), &error))?;
            }
        }
        Ok(())
    }

    /// Makes `next` durable together with `records`, changes of the table since the last root.
    /// `next.logs` and `next.checkpoint` are set here.
    pub(crate) fn commit(
        &mut self,
        mut next: RootSlot,
        records: &[u8],
    ) -> std::result::Result<(), CommitError> {
        if records.len() + self.seals.overhead() > CHUNK_LEN_MAX {
            let (what, len) = ("a commit's table changes", records.len());
            return Err(CommitError::Undone(Error::TooLarge { what, len, max: CHUNK_LEN_MAX }));
        }
        // Before the log is written: the part of it that a root in doubt counts must stay.
        self.settle()?;
        next.checkpoint = self.root.checkpoint;
        next.logs.clone_from(&self.root.logs);
        if !records.is_empty()
            && let Some(last) = next.logs.last_mut()
        {
            let path = log_path(last.number);
            let chunk = Chunk::of(&self.seals, &path, next.txg.0, records)
                .map_err(|error| CommitError::Undone(error.into()))?;
            let parts = [IoSlice::new(&chunk.header), IoSlice::new(&chunk.records)];
            self.log.write_vectored_at(last.len, &parts).map_err(|error| {
                CommitError::Undone(Error::io(format!("write '{path}'"), &error))
            })?;
            // ORDER 2: the table's log MUST be durable before the root that counts it.
            self.log
                .sync_data()
                .map_err(|error| unflushed(Error::io(format!("sync '{path}'"), &error)))?;
            last.len += (chunk.header.len() + chunk.records.len()) as u64;
        }
        self.write_root(next)
    }

    fn write_root(&mut self, next: RootSlot) -> std::result::Result<(), CommitError> {
        self.settle()?;
        invariants::assert_follows(&self.root, &next);
        match self.roots.write(&next, next.txg.0) {
            Err(CommitError::Unknown(error @ Error::Full { .. })) => {
                self.doubtful = true;
                Err(CommitError::Undone(error))
            }
            written => {
                written?;
                self.root = next;
                Ok(())
            }
        }
    }

    /// Whether the device may have a root newer than `root`.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// Writes `root` over a newer one that is in doubt. The other slot also holds it, so one of the
    /// two exists at any moment. Until this is done, everything the newer one needs MUST stay.
    pub(crate) fn settle(&mut self) -> std::result::Result<(), CommitError> {
        if self.doubtful {
            self.roots.write(&self.root, self.root.txg.0 + 1).map_err(|error| match error {
                CommitError::Unknown(error) => unflushed(error),
                undone => undone,
            })?;
            self.doubtful = false;
        }
        Ok(())
    }

    /// Bytes of logs to replay.
    pub(crate) fn logs_len(&self) -> u64 {
        self.root.logs.iter().map(|log| log.len).sum()
    }

    /// Whether a new checkpoint is worth writing.
    pub(crate) fn checkpoint_due(&self, log_min: u64) -> bool {
        self.logs_len() > log_min.max(self.checkpoint_len)
    }

    /// Bytes of the table's files.
    pub(crate) fn used(&self) -> u64 {
        self.checkpoint_len + self.logs_len() + FILES_LEN
    }

    /// Begins a new log, to which commits append from now on. From now on the checkpoint that is
    /// returned may be copied from the table.
    pub(crate) fn begin_checkpoint(&mut self) -> Result<CheckpointTicket> {
        let last = self.root.logs.last().copied().unwrap_or(LogExtent { number: 0, len: 0 });
        // After failures the last log may be used: replaying older records over a newer checkpoint
        // gives the same state, as a block's last record wins.
        let mut first_log = last.number;
        if last.len > 0 && self.root.logs.len() < root::LOGS_MAX {
            first_log = self.next_number;
            self.begin_log()?;
        }
        let number = self.next_number;
        self.next_number += 1;
        Ok(CheckpointTicket { number, first_log })
    }

    /// Names a checkpoint of `len` bytes, durable by now, instead of all that came before its log.
    pub(crate) fn finish_checkpoint(
        &mut self,
        ticket: CheckpointTicket,
        len: u64,
    ) -> std::result::Result<(), CommitError> {
        let mut next = self.root.clone();
        next.txg.0 += 1;
        next.checkpoint = ticket.number;
        next.logs.retain(|log| log.number >= ticket.first_log);
        self.write_root(next)?;
        self.checkpoint_len = len;
        // ORDER 4: what the old root needs MUST be kept until the new one is durable. It is now.
        self.remove_unnamed().map_err(CommitError::Undone)
    }
}

/// What is written of some records.
struct Chunk<'a> {
    header: [u8; CHUNK_HEADER_LEN],
    records: Cow<'a, [u8]>,
}

impl Chunk<'_> {
    /// `number`: the commit's, or that of the chunk in its checkpoint.
    fn of<'a>(
        seals: &Seals,
        path: &str,
        number: u64,
        records: &'a [u8],
    ) -> std::result::Result<Chunk<'a>, DecodeError> {
        let records = seals.seal(seal::Purpose::Table, &context(path, number), records)?;
        Ok(Chunk { header: encode_chunk_header(number, &records), records })
    }
}

/// Writes the committed entries of the table to a new, durable checkpoint file; returns its length.
pub(crate) fn write_checkpoint(
    disk: &dyn Disk,
    seals: &Seals,
    ticket: CheckpointTicket,
    table: &Table,
) -> Result<u64> {
    let path = checkpoint_path(ticket.number);
    let mut len = 0;
    let mut write = || -> std::io::Result<()> {
        let file = disk.create(&path)?;
        let mut chunks = 0;
        let mut payload = Vec::new();
        let mut put = |payload: &mut Vec<u8>| {
            let chunk = Chunk::of(seals, &path, chunks, payload);
            let Chunk { header, records } = chunk.map_err(std::io::Error::other)?;
            file.write_vectored_at(len, &[IoSlice::new(&header), IoSlice::new(&records)])?;
            len += (header.len() + records.len()) as u64;
            drop(records);
            chunks += 1;
            payload.clear();
            Ok::<_, std::io::Error>(())
        };
        let mut index = 0;
        while let Some(entries) = table.part(index) {
            index += 1;
            for (hash, entry) in entries.iter().filter(|(_, entry)| entry.is_committed()) {
                Record::Put(*hash, entry.durable(entry.refs)).encode(&mut payload);
                if payload.len() >= CHECKPOINT_CHUNK_LEN {
                    put(&mut payload)?;
                }
            }
        }
        if !payload.is_empty() {
            put(&mut payload)?;
        }
        // ORDER 2 also holds for checkpoints: content and name before the root that names it.
        file.sync_data()?;
        disk.sync_dir(DIR)
    };
    write().map_err(|error| {
        // What was written of it is useless, and may be what the device has no room for.
        let _ = disk.remove(&path);
        Error::io(format!("write '{path}'"), &error)
    })?;
    Ok(len)
}

/// Loads what a root names; returns the last log, its length, and the checkpoint's length.
pub(crate) fn read_table(
    disk: &dyn Disk,
    seals: &Seals,
    root: &RootSlot,
    table: &Table,
) -> Result<(Arc<dyn DiskFile>, u64, u64)> {
    let mut files = Vec::new();
    let mut checkpoint_len = 0;
    if root.checkpoint != 0 {
        let path = checkpoint_path(root.checkpoint);
        let file = open_file(disk, &path, TABLE)?;
        checkpoint_len = file.len().map_err(|error| Error::io(format!("read '{path}'"), &error))?;
        files.push(Chunks { path, file, len: checkpoint_len });
    }
    for log in &root.logs {
        let path = log_path(log.number);
        let file = open_file(disk, &path, TABLE)?;
        files.push(Chunks { path, file, len: log.len });
    }
    let last =
        root.logs.last().and(files.last()).ok_or_else(|| damaged("the root names no log"))?;
    let (log, len) = (last.file.clone(), last.len);
    table.reserve(checkpoint_len / RECORD_LEN);
    load(seals, &files, table)?;
    Ok((log, len, checkpoint_len))
}

/// The same, to continue with: what follows the last log's committed length is left over from a commit
/// that was cut off.
fn load_table(
    disk: &dyn Disk,
    seals: &Seals,
    root: &RootSlot,
    table: &Table,
) -> Result<(Arc<dyn DiskFile>, u64)> {
    let (log, len, checkpoint_len) = read_table(disk, seals, root, table)?;
    log.set_len(len).map_err(|error| Error::io("cut the block table's log", &error))?;
    Ok((log, checkpoint_len))
}
