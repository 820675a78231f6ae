//! The directory of datasets and snapshots: the tree at the pool's root.
//!
//! ```text
//! key            value
//! 01 dataset     DatasetRecord; child: root of the dataset's tree
//! 02 snapshot    SnapshotRecord; child: the same
//! ```
//! The root's extra bytes hold [`StoreExtra`]. Ids are big-endian in keys.

use crate::inode::Timestamp;
use crate::tree::Value;
use crate::{DecodeError, Reader};
use offshoot_types::{BlockHash, DatasetId, SnapshotId};

const DATASET: u8 = 1;
const SNAPSHOT: u8 = 2;
const EXTRA_VERSION: u16 = 1;
/// Part of a dataset's origin field.
const LOST: u64 = 1 << 63;

/// A state of a dataset's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeState {
    /// Root of the dataset's tree.
    pub root: BlockHash,
    /// The next inode gets this number.
    pub next_ino: u64,
    /// Inodes.
    pub inodes: u64,
    /// Data blocks of all files, holes not counted.
    pub blocks: u64,
}

/// What is kept of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetRecord {
    /// Its files.
    pub tree: TreeState,
    /// The last operation that `tree` contains; the log's later ones are replayed.
    pub applied: u64,
    /// The snapshot it was cloned from; 0: none.
    pub origin: u64,
    /// It lacks acknowledged operations, because the log that held them was damaged.
    pub lost: bool,
    /// When it was made.
    pub created: Timestamp,
    /// The user's bytes.
    pub label: Vec<u8>,
}

/// What is kept of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRecord {
    /// Its files.
    pub tree: TreeState,
    /// The dataset it was taken of.
    pub dataset: DatasetId,
    /// When it was taken.
    pub created: Timestamp,
    /// The user's bytes.
    pub label: Vec<u8>,
}

/// What is kept with the pool's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreExtra {
    /// The next dataset gets this id.
    pub next_dataset: u64,
    /// The next snapshot gets this id.
    pub next_snapshot: u64,
}

impl TreeState {
    fn encode(&self, bytes: &mut Vec<u8>) {
        for field in [self.next_ino, self.inodes, self.blocks] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
    }

    fn decode(reader: &mut Reader<'_>, value: &Value) -> Result<Self, DecodeError> {
        let root = *value.children.first().ok_or_else(|| reader.error("has no tree"))?;
        let (next_ino, inodes, blocks) = (reader.count()?, reader.count()?, reader.count()?);
        Ok(TreeState { root, next_ino, inodes, blocks })
    }
}

impl DatasetRecord {
    /// The value of the directory.
    pub fn encode(&self) -> Value {
        let mut bytes = Vec::new();
        self.tree.encode(&mut bytes);
        bytes.extend_from_slice(&self.applied.to_le_bytes());
        let lost = if self.lost { LOST } else { 0 };
        bytes.extend_from_slice(&(self.origin | lost).to_le_bytes());
        self.created.encode(&mut bytes);
        bytes.extend_from_slice(&self.label);
        Value { children: vec![self.tree.root], bytes }
    }

    /// Reads such a value.
    pub fn decode(value: &Value) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("dataset record", &value.bytes);
        let (tree, applied) = (TreeState::decode(&mut reader, value)?, reader.count()?);
        let origin = reader.u64()?;
        Ok(DatasetRecord {
            tree,
            applied,
            origin: origin & !LOST,
            lost: origin & LOST != 0,
            created: Timestamp::decode(&mut reader)?,
            label: reader.rest().to_vec(),
        })
    }
}

impl SnapshotRecord {
    /// The value of the directory.
    pub fn encode(&self) -> Value {
        let mut bytes = Vec::new();
        self.tree.encode(&mut bytes);
        bytes.extend_from_slice(&self.dataset.0.to_le_bytes());
        self.created.encode(&mut bytes);
        bytes.extend_from_slice(&self.label);
        Value { children: vec![self.tree.root], bytes }
    }

    /// Reads such a value.
    pub fn decode(value: &Value) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("snapshot record", &value.bytes);
        Ok(SnapshotRecord {
            tree: TreeState::decode(&mut reader, value)?,
            dataset: DatasetId(reader.u64()?),
            created: Timestamp::decode(&mut reader)?,
            label: reader.rest().to_vec(),
        })
    }
}

impl StoreExtra {
    /// The extra bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = EXTRA_VERSION.to_le_bytes().to_vec();
        bytes.extend_from_slice(&self.next_dataset.to_le_bytes());
        bytes.extend_from_slice(&self.next_snapshot.to_le_bytes());
        bytes
    }

    /// Reads them; of a new pool there are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Ok(StoreExtra { next_dataset: 1, next_snapshot: 1 });
        }
        let mut reader = Reader::new("store", bytes);
        let version = reader.u16()?;
        if version != EXTRA_VERSION {
            return Err(reader.error(format!("has version {version}, which is not known here")));
        }
        Ok(StoreExtra { next_dataset: reader.count()?, next_snapshot: reader.count()? })
    }
}

/// Key of a dataset.
pub fn dataset_key(id: DatasetId) -> Vec<u8> {
    key_of(DATASET, id.0)
}

/// Key of a snapshot.
pub fn snapshot_key(id: SnapshotId) -> Vec<u8> {
    key_of(SNAPSHOT, id.0)
}

fn key_of(kind: u8, id: u64) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// What a key of the directory names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryKey {
    /// A dataset.
    Dataset(DatasetId),
    /// A snapshot.
    Snapshot(SnapshotId),
}

impl DirectoryKey {
    /// Reads a key.
    pub fn decode(key: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("directory key", key);
        let kind = reader.u8()?;
        let id = u64::from_be_bytes(reader.array()?);
        match kind {
            DATASET => Ok(DirectoryKey::Dataset(DatasetId(id))),
            SNAPSHOT => Ok(DirectoryKey::Snapshot(SnapshotId(id))),
            _ => Err(reader.error(format!("has kind {kind}"))),
        }
    }
}

#[cfg(test)]
mod tests;
