//! The root slots.
//!
//! A root fits one sector, which devices write whole or not at all: a copy that cannot be read is damaged, never
//! torn. A slot is two copies side by side; a spare one is in the file of the other slot.

use crate::load::open_file;
use crate::{Error, Result, Seals};
use offshoot_format::DecodeError;
use offshoot_format::root::{self, LogExtent, RootSlot};
use offshoot_os::disk::{Disk, DiskFile, read_exact_at};
use std::io;
use std::sync::Arc;

/// Bytes of both files.
pub(crate) const FILES_LEN: u64 = 2 * (SPARE_AT + root::LEN as u64);
/// Where the spare copy of the other slot's root is, after the copies of a slot.
const SPARE_AT: u64 = (root::COPIES * root::LEN) as u64;
const PATHS: [&str; 2] = ["root.0", "root.1"];

/// A failure of a commit: before anything durable changed, or with the outcome unknown.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The pool is as before.
    Undone(Error),
    /// Nobody knows what is on the device.
    Unknown(Error),
}

impl CommitError {
    pub(crate) fn into_error(self) -> Error {
        match self {
            CommitError::Undone(error) | CommitError::Unknown(error) => error,
        }
    }
}

/// The files of both slots.
pub(crate) struct Roots {
    slots: [Arc<dyn DiskFile>; 2],
    seals: Seals,
}

/// What the slots say.
pub(crate) struct Newest {
    /// The valid root with the highest txg.
    pub(crate) root: RootSlot,
    /// Of a slot that is damaged in all its copies.
    pub(crate) damage: Option<String>,
}

enum Copy {
    Valid(RootSlot),
    /// Never written.
    Blank,
    Damaged(DecodeError),
}

/// The slot of a transaction group.
fn slot_of(txg: u64) -> usize {
    usize::from(!txg.is_multiple_of(2))
}

/// Makes the slots of an empty pool, whose first log is that number.
pub(crate) fn create(disk: &dyn Disk, seals: &Seals, log: u64) -> io::Result<()> {
    let first = RootSlot {
        txg: Default::default(),
        hash: offshoot_types::BlockHash::ZERO,
        checkpoint: 0,
        logs: vec![LogExtent { number: log, len: 0 }],
        zero_saved: 0,
        dedup_saved: 0,
        extra: Vec::new(),
    };
    let slot = first.encode().and_then(|slot| root::seal(seals, slot)).map_err(io::Error::other)?;
    let blank = vec![0; root::LEN];
    for (path, content) in PATHS.iter().zip([[&slot[..], &slot, &blank], [&blank, &blank, &slot]]) {
        let file = disk.create(path)?;
        file.write_at(0, &content.concat())?;
        file.sync_data()?;
    }
    Ok(())
}

impl Roots {
    pub(crate) fn open(disk: &dyn Disk, seals: &Seals) -> Result<Roots> {
        let open = |path| open_file(disk, path, "root");
        Ok(Roots { slots: [open(PATHS[0])?, open(PATHS[1])?], seals: seals.clone() })
    }

    /// Reads the newest root. Spare copies count only where a slot is damaged.
    pub(crate) fn read(&self) -> Result<Newest> {
        let (mut newest, mut spare) = (None, None);
        let mut damaged = Vec::new();
        for (path, file) in PATHS.iter().zip(&self.slots) {
            let (mut valid, mut problem) = (false, None);
            for copy in 0..root::COPIES {
                match self.read_copy(&**file, path, (copy * root::LEN) as u64)? {
                    Copy::Valid(root) => {
                        valid = true;
                        newest = newer(newest, Some(root));
                    }
                    Copy::Blank => {}
                    Copy::Damaged(error) => problem = Some(format!("'{path}': {error}")),
                }
            }
            damaged.extend(problem.filter(|_| !valid));
            if let Copy::Valid(root) = self.read_copy(&**file, path, SPARE_AT)? {
                spare = newer(spare, Some(root));
            }
        }
        let detail = damaged.join("; ");
        if let (Some(root), true) = (&newest, damaged.is_empty()) {
            return Ok(Newest { root: root.clone(), damage: None });
        }
        let txg = |root: &RootSlot| root.txg;
        let complete = spare.as_ref().map(txg) >= newest.as_ref().map(txg);
        let Some(root) = newer(newest, spare) else {
            return Err(Error::DamagedStructure { what: "root", detail });
        };
        let outcome = match complete {
            true => "nothing is lost".to_owned(),
            false => format!("what came after commit {} may be lost", root.txg.0),
        };
        let damage = format!("both copies of a root are damaged, {detail}: {outcome}");
        Ok(Newest { root, damage: Some(damage) })
    }

    /// Writes a root to the slot of a transaction group, its own as a rule, durably.
    ///
    /// ORDER 3: the root MUST be durable before a commit is reported. The other slot, with the root
    /// before, stays as it is: one of the two exists, whatever happens to this write.
    pub(crate) fn write(&self, root: &RootSlot, txg: u64) -> std::result::Result<(), CommitError> {
        let bytes = root.encode().and_then(|slot| root::seal(&self.seals, slot));
        let bytes = bytes.map_err(|error| CommitError::Undone(error.into()))?;
        let (slot, other) = (slot_of(txg), slot_of(txg + 1));
        // The spare copy MUST also be durable, but not earlier: it would outlive a commit that is cut
        // off.
        self.put(slot, 0, &bytes.repeat(root::COPIES))
            .and_then(|()| self.put(other, SPARE_AT, &bytes))
            .map_err(CommitError::Unknown)
    }

    /// Rewrites what is read of the slot that the next root goes to. Its last flush may also have
    /// failed: the device would then hold a newer root in doubt, which we do not see.
    pub(crate) fn write_older_again(&self, newest: &RootSlot) -> Result<()> {
        let other = slot_of(newest.txg.0 + 1);
        let mut bytes = vec![0; root::COPIES * root::LEN];
        let read = self.slots[other].read_at(0, &mut bytes);
        let len = read.map_err(|error| Error::io(format!("read '{}'", PATHS[other]), &error))?;
        self.put(other, 0, &bytes[..len])
    }

    fn read_copy(&self, file: &dyn DiskFile, path: &str, at: u64) -> Result<Copy> {
        let mut bytes = vec![0; root::LEN];
        match read_exact_at(file, at, &mut bytes) {
            Ok(()) => {}
            // A pool from before there were copies has one or two.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            // If a device does not answer, the older root may not be the last.
            Err(error) => return Err(Error::io(format!("read '{path}'"), &error)),
        }
        Ok(match root::open(&self.seals, &bytes).and_then(|slot| RootSlot::decode(&slot)) {
            Ok(root) => Copy::Valid(root),
            Err(_) if bytes.iter().all(|byte| *byte == 0) => Copy::Blank,
            Err(error) => Copy::Damaged(error),
        })
    }

    fn put(&self, slot: usize, at: u64, bytes: &[u8]) -> Result<()> {
        let file = &self.slots[slot];
        let written = file.write_at(at, bytes).and_then(|()| file.sync_data());
        written.map_err(|error| Error::io(format!("write '{}'", PATHS[slot]), &error))
    }
}

fn newer(one: Option<RootSlot>, other: Option<RootSlot>) -> Option<RootSlot> {
    one.into_iter().chain(other).max_by_key(|root| root.txg)
}
