//! Datasets: trees of files in the pool, snapshotted and cloned as one.
//!
//! [`Store`] opens the pool, its intent log and the directory of datasets and snapshots.
//! [`Dataset`] is one tree of files, addressed by inode number; it knows no protocol and no
//! permissions (the kernel or the protocol adapter checks those).

mod attributes;
mod block_map;
mod blocks;
mod check;
mod dataset;
mod directory;
mod error;
mod ground;
mod holders;
mod inode;
mod inode_table;
mod layer;
mod loaded;
mod logged;
mod options;
mod prefetch;
mod queue;
mod quota;
mod schedule;
mod share;
mod store;
#[cfg(test)]
mod tests;
mod tree;

pub use attributes::{
    AllocateMode, Attr, DirEntry, FileKind, NewInode, NewKind, RenameMode, SeekTarget, SetAttr,
    SpaceUse, XattrMode,
};
pub use check::{CheckReport, check, check_encrypted};
pub use dataset::{Dataset, FILE_SIZE_MAX, Requested};
pub use error::{Error, Result};
pub use holders::{HeldFile, Holder, Holders, StateId};
pub use offshoot_intent_log::{Request, RequestId, VolatileLog};
pub use offshoot_pool::{
    BlockKind, Caching, Checked, Codec, DataKey, Fault, Finding, OpenedBlock, PassingBlock,
    Purpose, ScrubState, Seals,
};
pub use offshoot_types::{DatasetId, Ino, SnapshotId, Txg};
pub use options::StoreOptions;
pub use store::{
    Becomes, DatasetInfo, HeldState, Holding, Intake, Received, Receiving, SnapshotInfo, Store,
    StoreLatencies, StoredBytes,
};
