//! The durable form of the block table and the root slots.
//!
//! The table is a checkpoint file plus delta logs; a root slot names all of them, with the length of
//! each log that counts. Each commit appends one chunk to the last log and then writes the other
//! root slot. When the logs outgrow the checkpoint a new log is begun, the table is written as a new
//! checkpoint while commits go on (records are absolute, so it does not matter on which side of a
//! commit an entry was copied), and a root then names the new checkpoint and the new log alone.

use crate::load::{Chunks, damaged, load};
use crate::table::Table;
use crate::{Error, Result};
use offshoot_format::DecodeError;
use offshoot_format::root::{self, LogExtent, RootSlot};
use offshoot_format::table::{CHUNK_LEN_MAX, Record, encode_chunk_header};
use offshoot_os::disk::{Disk, DiskFile, read_exact_at};
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

/// The root slot that a transaction group writes.
fn slot_path(slot: u64) -> &'static str {
    if slot.is_multiple_of(2) { "root.0" } else { "root.1" }
}

/// A failure of a commit: before anything durable changed, or with the outcome unknown.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The pool is as before.
    Undone(Error),
    /// Nobody knows what is on the device.
    Unknown(Error),
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
    slots: [Arc<dyn DiskFile>; 2],
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
pub(crate) fn create(disk: &dyn Disk) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let first = RootSlot {
            txg: Default::default(),
            hash: offshoot_types::BlockHash::ZERO,
            checkpoint: 0,
            logs: vec![LogExtent { number: 1, len: 0 }],
            zero_saved: 0,
            dedup_saved: 0,
            extra: Vec::new(),
        };
        let slot = first.encode().map_err(std::io::Error::other)?;
        for (number, content) in [(0, &slot), (1, &vec![0; root::LEN])] {
            let file = disk.create(slot_path(number))?;
            file.write_at(0, &content.repeat(root::COPIES))?;
            file.sync_data()?;
        }
        disk.create(&log_path(1))?.sync_data()?;
        disk.sync_dir(DIR)
    };
    write().map_err(|error| Error::io("create the pool's first root", &error))
}

/// The files of both slots.
pub(crate) fn open_slots(disk: &dyn Disk) -> Result<[Arc<dyn DiskFile>; 2]> {
    Ok([open_file(disk, slot_path(0))?, open_file(disk, slot_path(1))?])
}

/// Reads the valid root with the highest txg.
pub(crate) fn read_root(slots: &[Arc<dyn DiskFile>; 2]) -> Result<RootSlot> {
    let mut newest: Option<RootSlot> = None;
    let mut problems = Vec::new();
    for (number, file) in (0..).zip(slots) {
        for copy in 0..root::COPIES {
            match read_copy(&**file, slot_path(number), copy)? {
                Ok(slot) if newest.as_ref().is_none_or(|newest| slot.txg > newest.txg) => {
                    newest = Some(slot);
                }
                Ok(_) => {}
                Err(error) => problems.push(format!("{}: {error}", slot_path(number))),
            }
        }
    }
    newest.ok_or_else(|| Error::DamagedStructure { what: "root", detail: problems.join("; ") })
}

/// One copy of a slot, or why it does not count.
fn read_copy(
    file: &dyn DiskFile,
    path: &str,
    copy: usize,
) -> Result<std::result::Result<RootSlot, DecodeError>> {
    let mut bytes = vec![0; root::LEN];
    match read_exact_at(file, (copy * root::LEN) as u64, &mut bytes) {
        Ok(()) => {}
        // A pool of before there were copies has one.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {}
        // Not a torn slot but a device that does not answer: the older root may not be the last.
        Err(error) => return Err(Error::io(format!("read '{path}'"), &error)),
    }
    Ok(RootSlot::decode(&bytes))
}

/// Nothing durable changed where the device had no room to flush what no root counts.
fn unflushed(error: Error) -> CommitError {
    match error {
        Error::Full { .. } => CommitError::Undone(error),
        _ => CommitError::Unknown(error),
    }
}

/// Writes a root to the slot of a transaction group, its own as a rule, durably.
///
/// ORDER 3: the root MUST be durable before a commit is reported. The other slot, with the root
/// before, stays as it is: a torn write of this one falls back to that. It lies in the slot more than
/// once, as later damage of a single copy could not be told from such a write.
fn write_slot(
    slots: &[Arc<dyn DiskFile>; 2],
    root: &RootSlot,
    txg: u64,
) -> std::result::Result<(), CommitError> {
    let path = slot_path(txg);
    let bytes = root.encode().map_err(|error| CommitError::Undone(error.into()))?;
    let bytes = bytes.repeat(root::COPIES);
    let file = &slots[usize::from(path == slot_path(1))];
    file.write_at(0, &bytes)
        .and_then(|()| file.sync_data())
        .map_err(|error| CommitError::Unknown(Error::io(format!("write '{path}'"), &error)))
}

/// Writes again what is read of a slot. Its last flush may have failed, too: the device would then hold a
/// newer root than is seen, one in doubt.
fn keep_slot(file: &dyn DiskFile) -> Result<()> {
    let mut bytes = vec![0; root::COPIES * root::LEN];
    let kept = file.read_at(0, &mut bytes).and_then(|len| {
        file.write_at(0, &bytes[..len])?;
        file.sync_data()
    });
    kept.map_err(|error| Error::io("write the older root again", &error))
}

impl Journal {
    /// Reads the newest root and loads its table. A damaged table is made anew by `rebuild`, which
    /// fills an empty table with what the root reaches.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        table: &Table,
        rebuild: impl FnOnce(&RootSlot) -> Result<()>,
    ) -> Result<Journal> {
        let slots = open_slots(&**disk)?;
        let root = read_root(&slots)?;
        // ORDER 3 for a root whose writer did not see its flush succeed: it is written again, as after
        // a failed flush the system may hold it for clean.
        write_slot(&slots, &root, root.txg.0).map_err(|error| match error {
            CommitError::Undone(error) | CommitError::Unknown(error) => error,
        })?;
        keep_slot(&*slots[usize::from(slot_path(root.txg.0 + 1) == slot_path(1))])?;
        // Not a number the root still names, even if that file is gone.
        let named = root.logs.iter().map(|log| log.number).chain([root.checkpoint]);
        let mut next_number = named.max().unwrap_or(0) + 1;
        let names = disk.list(DIR);
        for name in names.map_err(|error| Error::io(format!("list '{DIR}'"), &error))? {
            let number = name.split_once('.').and_then(|(number, _)| number.parse::<u64>().ok());
            next_number = next_number.max(number.map_or(0, |number| number.saturating_add(1)));
        }
        let (log, checkpoint_len, rebuilt) = match load_table(&**disk, &root, table) {
            Ok((log, checkpoint_len)) => (log, checkpoint_len, false),
            Err(Error::DamagedStructure { what, detail }) => {
                tracing::error!(what, detail, "the table is rebuilt from the segments");
                table.retain(|_, _| false);
                rebuild(&root)?;
                // Any handle will do: the new table's log takes its place before it is used.
                (slots[0].clone(), 0, true)
            }
            Err(other) => return Err(other),
        };
        let mut journal = Journal {
            disk: disk.clone(),
            slots,
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
        Ok(journal)
    }

    /// Writes the whole table and a root that names nothing older.
    fn replace_table(&mut self, table: &Table) -> Result<()> {
        self.begin_log()?;
        let first_log = self.next_number - 1;
        let ticket = CheckpointTicket { number: self.next_number, first_log };
        self.next_number += 1;
        let len = write_checkpoint(&*self.disk, ticket, table)?;
        self.finish_checkpoint(ticket, len).map_err(|error| match error {
            CommitError::Undone(error) | CommitError::Unknown(error) => error,
        })
    }

    /// Begins a new log file.
    fn begin_log(&mut self) -> Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        let path = log_path(number);
        let log = self.disk.create(&path).and_then(|log| {
            // The name MUST be durable before a root that names it.
            self.disk.sync_dir(DIR)?;
            Ok(log)
        });
        self.log = log.map_err(|error| Error::io(format!("create '{path}'"), &error))?;
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
        if records.len() > CHUNK_LEN_MAX {
            let (what, len) = ("a commit's table changes", records.len());
            return Err(CommitError::Undone(Error::TooLarge { what, len, max: CHUNK_LEN_MAX }));
        }
        // Before the log is written: what a root in doubt counts of it must stay.
        self.settle()?;
        next.checkpoint = self.root.checkpoint;
        next.logs.clone_from(&self.root.logs);
        if !records.is_empty()
            && let Some(last) = next.logs.last_mut()
        {
            let path = log_path(last.number);
            let header = encode_chunk_header(next.txg.0, records);
            let parts = [IoSlice::new(&header), IoSlice::new(records)];
            self.log.write_vectored_at(last.len, &parts).map_err(|error| {
                CommitError::Undone(Error::io(format!("write '{path}'"), &error))
            })?;
            // ORDER 2: the table's log MUST be durable before the root that counts it.
            self.log
                .sync_data()
                .map_err(|error| unflushed(Error::io(format!("sync '{path}'"), &error)))?;
            last.len += (header.len() + records.len()) as u64;
        }
        self.write_root(next)
    }

    fn write_root(&mut self, next: RootSlot) -> std::result::Result<(), CommitError> {
        self.settle()?;
        match write_slot(&self.slots, &next, next.txg.0) {
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

    /// Writes `root` over a newer one that is in doubt. The other slot holds it, too, so that there is
    /// one of the two at any moment; until then all that the newer one needs MUST stay.
    pub(crate) fn settle(&mut self) -> std::result::Result<(), CommitError> {
        if self.doubtful {
            write_slot(&self.slots, &self.root, self.root.txg.0 + 1).map_err(
                |error| match error {
                    CommitError::Unknown(error) => unflushed(error),
                    undone => undone,
                },
            )?;
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
        self.checkpoint_len + self.logs_len() + 2 * (root::COPIES * root::LEN) as u64
    }

    /// Begins a new log, to which commits append from now on. The checkpoint that the answer names may
    /// be copied from the table from now on.
    pub(crate) fn begin_checkpoint(&mut self) -> Result<CheckpointTicket> {
        let last = self.root.logs.last().copied().unwrap_or(LogExtent { number: 0, len: 0 });
        // After failures the last log may do: replaying older records over a newer checkpoint ends
        // in the same state, as a block's last record wins.
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

/// Writes the committed entries of the table to a new, durable checkpoint file; returns its length.
pub(crate) fn write_checkpoint(
    disk: &dyn Disk,
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
            let header = encode_chunk_header(chunks, payload);
            file.write_vectored_at(len, &[IoSlice::new(&header), IoSlice::new(payload)])?;
            len += (header.len() + payload.len()) as u64;
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
        // ORDER 2 holds for checkpoints, too: content and name before the root that names it.
        file.sync_data()?;
        disk.sync_dir(DIR)
    };
    write().map_err(|error| {
        // What was written of it is of no use, and may be what the device has no room for.
        let _ = disk.remove(&path);
        Error::io(format!("write '{path}'"), &error)
    })?;
    Ok(len)
}

fn open_file(disk: &dyn Disk, path: &str) -> Result<Arc<dyn DiskFile>> {
    disk.open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => damaged(format!("'{path}' is missing")),
        _ => Error::io(format!("open '{path}'"), &error),
    })
}

/// Loads what a root names; returns the last log, its length, and the checkpoint's length.
pub(crate) fn read_table(
    disk: &dyn Disk,
    root: &RootSlot,
    table: &Table,
) -> Result<(Arc<dyn DiskFile>, u64, u64)> {
    let mut files = Vec::new();
    let mut checkpoint_len = 0;
    if root.checkpoint != 0 {
        let path = checkpoint_path(root.checkpoint);
        let file = open_file(disk, &path)?;
        checkpoint_len = file.len().map_err(|error| Error::io(format!("read '{path}'"), &error))?;
        files.push(Chunks { path, file, len: checkpoint_len });
    }
    for log in &root.logs {
        let path = log_path(log.number);
        let file = open_file(disk, &path)?;
        files.push(Chunks { path, file, len: log.len });
    }
    let last =
        root.logs.last().and(files.last()).ok_or_else(|| damaged("the root names no log"))?;
    let (log, len) = (last.file.clone(), last.len);
    table.reserve(checkpoint_len / RECORD_LEN);
    load(&files, table)?;
    Ok((log, len, checkpoint_len))
}

/// The same, to go on with: what follows the last log's committed length is left over from a commit that
/// was cut off.
fn load_table(disk: &dyn Disk, root: &RootSlot, table: &Table) -> Result<(Arc<dyn DiskFile>, u64)> {
    let (log, len, checkpoint_len) = read_table(disk, root, table)?;
    log.set_len(len).map_err(|error| Error::io("cut the block table's log", &error))?;
    Ok((log, checkpoint_len))
}
