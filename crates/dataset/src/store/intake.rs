//! A transfer that outlives connections and engines: what has come so far, in a dataset that nothing shows.
//!
//! Blocks come from the root down, and the pool refuses a node before what it refers to. So until all of a tree is here
//! its nodes are kept as data, in the second of two files; the first one refers to the data blocks.
//!
//! # Invariants
//! 1. After [`Intake::checkpoint`] nothing that came before it has to come again, whatever crashes. More may come meanwhile:
//!    that is of the next one.
//! 2. The states become visible, and the dataset goes, in one commit: [`Intake::finish`].

use super::Store;
use super::passing::{Becomes, Received, show};
use crate::block_map::BlockMap;
use crate::blocks::{PassingReader, PoolReader, PoolWriter};
use crate::directory::DirectoryEntry;
use crate::ground::Ground;
use crate::layer::RangeSet;
use crate::{Caching, Error, Result, tree};
use offshoot_format::directory::{DatasetRecord, TreeState};
use offshoot_format::inode::{InodeRecord, Timestamp, encode_name, inode_key, name_hash, name_key};
use offshoot_format::links::links;
use offshoot_pool::{BlockKind, OpenedBlock, Pool, Transaction};
use offshoot_types::{BLOCK_SIZE, BlockHash, DatasetId, Ino};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The files: data blocks, and nodes as data.
const FILES: [(Ino, &[u8]); 2] = [(Ino(2), b"data"), (Ino(3), b"nodes")];
const DATA: usize = 0;
const NODES: usize = 1;
/// Blocks whose names are looked up at a time.
const LOOKED_UP: usize = 1024;

/// A transfer's target.
pub struct Intake {
    ground: Arc<Ground>,
    id: DatasetId,
    /// The files as of the last checkpoint; held while one is made. Taken before `state`.
    files: Mutex<[File; 2]>,
    state: Mutex<State>,
}

struct State {
    /// What came since the last checkpoint.
    transaction: Transaction,
    fresh: [Vec<BlockHash>; 2],
    fresh_bytes: u64,
    /// Data blocks of a checkpoint that is being made.
    settling: HashSet<BlockHash>,
    /// Nodes that are not in a tree of the pool yet, and the data blocks with their bytes.
    nodes: HashMap<BlockHash, BlockHash>,
}

#[derive(Clone, Copy)]
struct File {
    map: BlockMap,
    blocks: u64,
}

impl Store {
    /// Begins a transfer: the dataset that holds what comes. Deleting it gives all of it up.
    pub fn begin_intake(&self) -> Result<DatasetId> {
        self.create_dataset()
    }

    /// Goes on with a transfer.
    pub fn intake(&self, id: DatasetId) -> Result<Intake> {
        self.check_open()?;
        let record = self.ground.directory.read().datasets.get(&id).cloned();
        let root = record.ok_or(Error::NoDataset(id))?.tree.root;
        let pool = &self.ground.pool;
        let source = PassingReader(pool);
        let mut files = [File { map: BlockMap::EMPTY, blocks: 0 }; 2];
        for (file, (ino, _)) in files.iter_mut().zip(FILES) {
            if let Some(value) = tree::get(&source, root, &inode_key(ino))? {
                let record = InodeRecord::decode(&value)?;
                let map = BlockMap { height: record.height, root: record.root };
                *file = File { map, blocks: record.blocks };
            }
        }
        let nodes = read_nodes(pool, files[NODES])?;
        let (transaction, fresh) = (pool.begin().cached(Caching::Past), Default::default());
        let settling = HashSet::new();
        let state = State { transaction, fresh, fresh_bytes: 0, settling, nodes };
        let (files, state) = (Mutex::new(files), Mutex::new(state));
        Ok(Intake { ground: Arc::clone(&self.ground), id, files, state })
    }
}

/// The nodes that a file holds, by name.
fn read_nodes(pool: &Arc<Pool>, file: File) -> Result<HashMap<BlockHash, BlockHash>> {
    let mut nodes = HashMap::new();
    let mut first = 0;
    while first < file.blocks {
        let mut found = vec![BlockHash::ZERO; LOOKED_UP.min((file.blocks - first) as usize)];
        file.map.lookup(&PassingReader(pool), first, &mut found)?;
        first += found.len() as u64;
        for hash in found {
            nodes.insert(Pool::node_name(&pool.read_aside(&hash)?), hash);
        }
    }
    Ok(nodes)
}

impl Intake {
    /// Whether a block need not come: it is here, and of a node everything below it.
    pub fn has(&self, hash: &BlockHash) -> bool {
        let state = self.state.lock();
        let came = state.transaction.has(hash) || state.settling.contains(hash);
        drop(state);
        // Only then: what settles meanwhile is committed before it is forgotten.
        came || self.ground.pool.has_committed(hash)
    }

    /// The bytes of a node that came, if something below it may still be missing.
    pub fn node(&self, name: &BlockHash) -> Result<Option<Vec<u8>>> {
        let hash = self.state.lock().nodes.get(name).copied();
        Ok(match hash {
            Some(hash) => Some(self.ground.pool.read_aside(&hash)?.to_vec()),
            None => None,
        })
    }

    /// Stores a block that came; whoever asked for it has compared its name.
    ///
    /// # Errors
    /// `Corrupt` if it is no block, `NoSpace`.
    pub fn put(&self, opened: &OpenedBlock) -> Result<()> {
        let mut state = self.state.lock();
        match opened.block().kind {
            BlockKind::Data => {
                if !state.transaction.write_passing(opened)? {
                    state.fresh[DATA].push(opened.name());
                }
            }
            BlockKind::Node => {
                links(opened.content())?;
                let hash = state.transaction.write_cached(opened.content())?;
                if state.nodes.insert(opened.name(), hash).is_none() {
                    state.fresh[NODES].push(hash);
                }
            }
        }
        state.fresh_bytes += opened.block().stored.len() as u64;
        Ok(())
    }

    /// Bytes that would have to come again after a crash now.
    pub fn unsafe_bytes(&self) -> u64 {
        self.state.lock().fresh_bytes
    }

    /// Makes durable what has come (invariant 1).
    pub fn checkpoint(&self) -> Result<()> {
        let mut files = self.files.lock();
        let (transaction, fresh) = {
            let mut state = self.state.lock();
            if state.fresh.iter().all(Vec::is_empty) {
                return Ok(());
            }
            let next = self.ground.pool.begin().cached(Caching::Past);
            let fresh = std::mem::take(&mut state.fresh);
            state.fresh_bytes = 0;
            state.settling = fresh[DATA].iter().copied().collect();
            (std::mem::replace(&mut state.transaction, next), fresh)
        };
        let settled = self.settle(&mut files, transaction, &fresh);
        self.state.lock().settling = HashSet::new();
        settled
    }

    /// Adds blocks to the files, and commits that.
    fn settle(
        &self,
        now: &mut [File; 2],
        transaction: Transaction,
        fresh: &[Vec<BlockHash>; 2],
    ) -> Result<()> {
        let pool = &self.ground.pool;
        let mut files = *now;
        let reader = PoolReader { pool: Arc::clone(pool), owner: 0 };
        let writer = PoolWriter { reader, transaction: &transaction };
        for (file, fresh) in files.iter_mut().zip(fresh) {
            let changes: Vec<_> = (file.blocks..).zip(fresh.iter().copied()).collect();
            let blocks = file.blocks + fresh.len() as u64;
            let cleared = RangeSet::default();
            let (map, _) = file.map.update(&writer, &cleared, &changes, blocks)?;
            *file = File { map, blocks };
        }
        let root = self.ground.directory.read().datasets.get(&self.id).map(|one| one.tree.root);
        let root = tree::merge(&writer, root.ok_or(Error::Stale)?, entries(&files))?;
        let blocks = files.iter().map(|file| file.blocks).sum();
        let tree = TreeState { root, next_ino: 4, inodes: 3, blocks };
        self.ground.directory.commit(pool, transaction, |directory, _| {
            let record = directory.datasets.get(&self.id).ok_or(Error::Stale)?.clone();
            let record = DatasetRecord { tree, ..record };
            Ok(vec![DirectoryEntry::Dataset(self.id, Some(record))])
        })?;
        *now = files;
        Ok(())
    }

    /// Shows the states, all of them at once and durable, and gives the dataset up.
    ///
    /// # Errors
    /// `Missing` names a block that has to come (again); `Corrupt` if a tree is not sound. Nothing is visible then.
    pub fn finish(&self, states: &[(TreeState, Becomes)]) -> Result<Vec<Received>> {
        self.checkpoint()?;
        let transaction = self.ground.pool.begin().cached(Caching::Past);
        let mut written = HashSet::new();
        for (tree, _) in states {
            self.assemble(&transaction, tree.root, &mut written)?;
        }
        show(&self.ground, transaction, states, Some(self.id))
    }

    /// Writes the nodes below one that are not in the pool's trees, children before parents.
    fn assemble(
        &self,
        transaction: &Transaction,
        root: BlockHash,
        written: &mut HashSet<BlockHash>,
    ) -> Result<()> {
        // With its content where all below it is written.
        let mut path = vec![(root, None::<Vec<u8>>)];
        while let Some((name, content)) = path.pop() {
            if written.contains(&name) || self.ground.pool.has_committed(&name) {
                continue;
            }
            if let Some(content) = content {
                transaction.write_node(&content)?;
                written.insert(name);
                continue;
            }
            let content = self.node(&name)?.ok_or(Error::Missing(name))?;
            let nodes = links(&content)?.into_iter().filter(|(_, kind)| *kind == BlockKind::Node);
            path.push((name, Some(content)));
            path.extend(nodes.map(|(child, _)| (child, None)));
        }
        Ok(())
    }
}

/// All that the dataset's tree has.
fn entries(files: &[File; 2]) -> Vec<tree::Change> {
    let record = |kind, size, file: File| InodeRecord {
        kind,
        mode: 0o700,
        nlink: if kind == 2 { 2 } else { 1 },
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        blocks: file.blocks,
        atime: Timestamp::default(),
        mtime: Timestamp::default(),
        ctime: Timestamp::default(),
        parent: Ino::ROOT.0,
        height: file.map.height,
        root: file.map.root,
        target: Vec::new(),
    };
    let none = File { map: BlockMap::EMPTY, blocks: 0 };
    let root = record(2, FILES.len() as u64, none);
    let mut entries = vec![(inode_key(Ino::ROOT), Some(root.encode()))];
    for (file, (ino, name)) in files.iter().zip(FILES) {
        let size = file.blocks * BLOCK_SIZE as u64;
        entries.push((inode_key(ino), Some(record(1, size, *file).encode())));
        let key = name_key(Ino::ROOT, name_hash(name), name);
        entries.push((key, Some(encode_name(ino, 1))));
    }
    entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    entries
}
