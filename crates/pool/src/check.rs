//! Verifying a pool that no engine has open, without changing it.

use crate::block::{NodeChildren, verify};
use crate::frames;
use crate::journal::read_table;
use crate::rebuild::rebuild;
use crate::recovery::{read_label, seals_of, take_lock};
use crate::roots::{Newest, Roots};
use crate::segments;
use crate::table::{Entry, LOST, Table};
use crate::{DataKey, Error, Result, Seals};
use offshoot_cache::BlockHashBuilder;
use offshoot_format::root::RootSlot;
use offshoot_format::segment::{BlockKind, HEADER_LEN, Layout, decode_segment_header};
use offshoot_os::disk::{Disk, DiskFile, DiskLock, read_exact_at};
use offshoot_types::BlockHash;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Blocks of the table processed together: bounds memory to about 60 MB.
const GROUP_BLOCKS: u64 = 1 << 20;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The structure.
    pub object: String,
    /// What is wrong.
    pub detail: String,
}

/// A pool open for verification, and locked. Nothing is written, not even what an opening would fix.
pub struct PoolCheck {
    disk: Arc<dyn Disk>,
    seals: Seals,
    nodes: Arc<dyn NodeChildren>,
    pool_id: [u8; 16],
    root: RootSlot,
    table: Table,
    files: Mutex<HashMap<u32, Arc<dyn DiskFile>>>,
    damaged: HashSet<BlockHash, BlockHashBuilder>,
    findings: Vec<Finding>,
    /// Blocks verified.
    pub blocks: u64,
    /// Their stored bytes, frames included.
    pub bytes: u64,
    _lock: Box<dyn DiskLock>,
}

impl PoolCheck {
    /// Reads label, roots and table. A damaged table is a finding; it is rebuilt in memory.
    ///
    /// # Errors
    /// `NoPool`, `InUse`, `UnknownFormat`; `DamagedStructure` if nothing can be checked without it:
    /// the label, both roots.
    pub fn open(
        disk: Arc<dyn Disk>,
        nodes: Arc<dyn NodeChildren>,
        data_key: Option<&DataKey>,
    ) -> Result<PoolCheck> {
        let label = read_label(&*disk)?;
        let seals = seals_of(&label, data_key)?;
        let lock = take_lock(&*disk)?;
        let Newest { root, damage } = Roots::open(&*disk, &seals)?.read()?;
        let table = Table::new();
        let finding = |detail| Finding { object: "root".to_owned(), detail };
        let mut findings: Vec<Finding> = damage.into_iter().map(finding).collect();
        match read_table(&*disk, &seals, &root, &table) {
            Ok(_) => {}
            Err(Error::DamagedStructure { what, detail }) => {
                let detail = format!("{detail}; the next start rebuilds it from the segments");
                findings.push(Finding { object: what.to_owned(), detail });
                table.retain(|_, _| false);
                rebuild(&*disk, &label.pool_id, &seals, &*nodes, root.hash, &table)?;
            }
            Err(other) => return Err(other),
        }
        // A data block without references is dropped by the next opening.
        table.retain(|_, entry| entry.refs > 0 || entry.kind() == BlockKind::Node);
        Ok(PoolCheck {
            disk,
            seals,
            nodes,
            pool_id: label.pool_id,
            root,
            table,
            files: Mutex::default(),
            damaged: HashSet::default(),
            findings,
            blocks: 0,
            bytes: 0,
            _lock: lock,
        })
    }

    /// The pool's files.
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    /// What opens the other structures of the pool.
    pub fn seals(&self) -> &Seals {
        &self.seals
    }

    /// The root node; zero when the pool is empty.
    pub fn root(&self) -> BlockHash {
        self.root.hash
    }

    /// The bytes beside the root.
    pub fn extra(&self) -> &[u8] {
        &self.root.extra
    }

    /// Adds something the caller found.
    pub fn add(&mut self, object: impl Into<String>, detail: impl Into<String>) {
        self.findings.push(Finding { object: object.into(), detail: detail.into() });
    }

    /// What was found so far.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// Reads and verifies one block.
    ///
    /// # Errors
    /// `Missing`, `Damaged`, `Io`.
    pub fn read(&self, hash: &BlockHash) -> Result<Vec<u8>> {
        let entry = self.table.get(hash).ok_or(Error::Missing(*hash))?;
        if self.damaged.contains(hash) {
            return Err(Error::Damaged { hash: *hash, detail: "it was found damaged".into() });
        }
        self.file(entry.place().segment)
            .map_err(|error| error.to_string())
            .and_then(|file| Ok(read_verified(&self.seals, &*file, hash, &entry)?.1))
            .map_err(|detail| Error::Damaged { hash: *hash, detail })
    }

    fn file(&self, segment: u32) -> std::io::Result<Arc<dyn DiskFile>> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(&segment) {
            return Ok(file.clone());
        }
        let file = self.disk.open_uncached(&segments::path_of(segment))?;
        files.insert(segment, file.clone());
        Ok(file)
    }

    /// Reads every segment: headers, frames, contents. `progress` gets (bytes done, bytes in all).
    pub fn verify_segments(&mut self, progress: &mut dyn FnMut(u64, u64)) {
        let mut total = 0;
        let mut lost = Vec::new();
        self.table.visit(|hash, entry| {
            total += entry.room();
            if entry.is_lost() {
                lost.push(*hash);
            }
        });
        self.damaged.extend(lost);
        let mut next = 0;
        loop {
            let group = self.table.by_segment(next, GROUP_BLOCKS);
            let Some((last, _)) = group.last_key_value() else { return };
            next = last.saturating_add(1);
            for (segment, entries) in group {
                self.verify_segment(segment, &entries);
                self.files.lock().remove(&segment);
                progress(self.bytes, total);
            }
        }
    }

    /// Blocks found damaged or lost so far.
    pub fn damaged(&self) -> Vec<BlockHash> {
        self.damaged.iter().copied().collect()
    }

    fn verify_segment(&mut self, number: u32, entries: &[(BlockHash, Entry)]) {
        let object = format!("segment {number}");
        let mut header = vec![0; HEADER_LEN as usize];
        let read = self.file(number).and_then(|file| {
            read_exact_at(&*file, 0, &mut header)?;
            Ok(file)
        });
        let file = match read {
            Ok(file) => file,
            Err(error) => {
                self.add(&object, format!("{error}; {} blocks are lost", entries.len()));
                self.damaged.extend(entries.iter().map(|(hash, _)| *hash));
                return;
            }
        };
        let layout = entries.first().map_or(Layout::Frames, |(_, entry)| entry.place().layout);
        match decode_segment_header(&header) {
            Ok(found) if found == (self.pool_id, number, layout) => {}
            Ok(_) => self.add(&object, "its header is that of another segment or pool"),
            Err(error) => self.add(&object, error.to_string()),
        }
        let mut end = layout.begin();
        for (hash, entry) in entries {
            let place = entry.place();
            if place.offset < end {
                self.add(&object, format!("block {hash} at byte {} is in another", place.offset));
            }
            end = end.max(place.end());
            self.blocks += 1;
            self.bytes += u64::from(place.room());
            if let Err(detail) = verify_frame(&self.seals, &*file, hash, entry) {
                let detail = format!("block {hash} at byte {}: {detail}", place.offset);
                self.add(&object, detail);
                self.damaged.insert(*hash);
            }
        }
    }

    /// Walks all that the root reaches, and what dead nodes still count, and compares with the table.
    pub fn count_references(&mut self) {
        let children = |hash: &BlockHash| -> Result<Vec<BlockHash>> {
            let mut children = self.nodes.children(&self.read(hash)?)?;
            children.retain(|child| !child.is_zero());
            Ok(children)
        };
        for problem in recount(&self.table, self.root.hash, &children) {
            self.findings.push(Finding { object: "block table".to_owned(), detail: problem });
        }
    }
}

/// Compares a frame with what the table says of it, and its content with its name.
fn verify_frame(
    seals: &Seals,
    file: &dyn DiskFile,
    hash: &BlockHash,
    entry: &Entry,
) -> std::result::Result<(), String> {
    let (frame, _) = read_verified(seals, file, hash, entry)?;
    frames::check(seals, &frame, hash, entry)
}

/// A block's frame and its content, which has its name.
fn read_verified(
    seals: &Seals,
    file: &dyn DiskFile,
    hash: &BlockHash,
    entry: &Entry,
) -> std::result::Result<(Vec<u8>, Vec<u8>), String> {
    let place = entry.place();
    let frame_len = place.layout.frame_len();
    let mut bytes = vec![0; (frame_len + place.stored_len) as usize];
    read_exact_at(file, u64::from(place.offset), &mut bytes).map_err(|error| error.to_string())?;
    let stored = bytes.split_off(frame_len as usize);
    let content = verify(hash, entry, frames::open(seals, &bytes, &stored)?)?;
    Ok((bytes, content))
}

/// Differences between a table and a walk from the root: references, blocks missing, blocks left
/// over. Dead nodes count as parents until their children are released.
pub(crate) fn recount(
    table: &Table,
    root: BlockHash,
    children: &dyn Fn(&BlockHash) -> Result<Vec<BlockHash>>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let mut met: HashMap<BlockHash, u32, BlockHashBuilder> = HashMap::default();
    table.visit(|hash, entry| {
        if entry.is_committed() && entry.refs == 0 && entry.kind() == BlockKind::Node {
            met.insert(*hash, 0);
        }
    });
    let mut stack = vec![root];
    for hash in met.keys() {
        match children(hash) {
            Ok(children) => stack.extend(children),
            Err(error) => problems.push(format!("dead node {hash}: {error}")),
        }
    }
    stack.retain(|hash| !hash.is_zero());
    while let Some(hash) = stack.pop() {
        let met = met.entry(hash).or_default();
        *met += 1;
        if *met > 1 {
            continue;
        }
        match table.get(&hash) {
            None => problems.push(format!("{hash} is referred to but missing")),
            Some(entry) if entry.is_lost() => problems.push(format!("{hash} is lost: {LOST}")),
            Some(entry) if entry.kind() == BlockKind::Node => match children(&hash) {
                Ok(children) => stack.extend(children),
                Err(error) => problems.push(error.to_string()),
            },
            Some(_) => {}
        }
    }
    table.visit(|hash, entry| {
        let expected = met.get(hash).copied();
        if entry.is_committed() && expected != Some(entry.refs) && entry.refs > 0 {
            let expected = expected.unwrap_or(0);
            problems.push(format!("{hash} has {} references, met {expected}", entry.refs));
        }
        if !entry.is_committed() && expected.is_some() {
            problems.push(format!("{hash} is reachable but not committed"));
        }
    });
    problems
}
