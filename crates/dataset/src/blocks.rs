//! Where trees read and write their nodes.

use crate::{Error, Result};
use offshoot_format::DecodeError;
use offshoot_pool::{BlockData, NodeChildren, Pool, Transaction};
use offshoot_types::BlockHash;
use std::sync::Arc;

/// Reads nodes.
pub(crate) trait NodeSource {
    /// A node's bytes. `Missing` if a commit has replaced it in the meantime.
    fn read_node(&self, hash: &BlockHash) -> Result<BlockData>;

    /// The same; the others of `siblings`, of which it is one, may be read with it.
    fn read_node_among(
        &self,
        hash: &BlockHash,
        siblings: &dyn Fn() -> Vec<BlockHash>,
    ) -> Result<BlockData> {
        let _ = siblings;
        self.read_node(hash)
    }
}

/// Reads and writes nodes.
pub(crate) trait NodeSink: NodeSource {
    /// Stores a node.
    fn write_node(&self, node: &[u8]) -> Result<BlockHash>;

    /// Stores a node that takes the place of `like` and has most of its children.
    fn write_node_like(&self, like: &BlockHash, node: &[u8]) -> Result<BlockHash> {
        let _ = like;
        self.write_node(node)
    }
}

/// Nodes of the pool, counted for one dataset.
#[derive(Clone)]
pub(crate) struct PoolReader {
    pub(crate) pool: Arc<Pool>,
    pub(crate) owner: u64,
}

impl PoolReader {
    pub(crate) fn read(&self, hash: &BlockHash) -> Result<BlockData> {
        self.pool.read(hash, self.owner).map_err(Error::from)
    }
}

impl NodeSource for PoolReader {
    fn read_node(&self, hash: &BlockHash) -> Result<BlockData> {
        self.read(hash)
    }

    fn read_node_among(
        &self,
        hash: &BlockHash,
        siblings: &dyn Fn() -> Vec<BlockHash>,
    ) -> Result<BlockData> {
        if let Some(node) = self.pool.read_cached(hash, self.owner) {
            return Ok(node);
        }
        // What one commit wrote of a file is stored together.
        let mut node = None;
        let mut take = |content: &[u8]| node = Some(BlockData::new(content));
        self.pool.read_around(hash, &siblings(), self.owner, &mut take);
        node.map_or_else(|| self.read(hash), Ok)
    }
}

/// Nodes of the pool, for callers that go through many of them once.
pub(crate) struct PassingReader<'a>(pub(crate) &'a Pool);

impl NodeSource for PassingReader<'_> {
    fn read_node(&self, hash: &BlockHash) -> Result<BlockData> {
        self.0.read_aside(hash).map_err(Error::from)
    }
}

/// Nodes of the pool, written by one transaction.
pub(crate) struct PoolWriter<'a> {
    pub(crate) reader: PoolReader,
    pub(crate) transaction: &'a Transaction,
}

impl NodeSource for PoolWriter<'_> {
    fn read_node(&self, hash: &BlockHash) -> Result<BlockData> {
        self.reader.read(hash)
    }
}

impl NodeSink for PoolWriter<'_> {
    fn write_node(&self, node: &[u8]) -> Result<BlockHash> {
        self.transaction.write_node(node).map_err(Error::from)
    }

    fn write_node_like(&self, like: &BlockHash, node: &[u8]) -> Result<BlockHash> {
        self.transaction.write_node_like(like, node).map_err(Error::from)
    }
}

/// Tells the pool what the nodes of the store's trees refer to.
pub(crate) struct StoreNodes;

impl NodeChildren for StoreNodes {
    fn children(&self, node: &[u8]) -> std::result::Result<Vec<BlockHash>, DecodeError> {
        offshoot_format::tree::children(node)
    }
}

impl From<offshoot_pool::Error> for Error {
    fn from(error: offshoot_pool::Error) -> Error {
        use offshoot_pool::Error as Pool;
        match error {
            Pool::Full { .. } => Error::NoSpace,
            Pool::Damaged { hash, .. } => Error::Damaged(hash),
            Pool::Missing(hash) => Error::Missing(hash),
            Pool::DamagedStructure { .. } | Pool::Decode(_) => Error::Corrupt(error.to_string()),
            Pool::NoPool
            | Pool::Exists
            | Pool::UnknownFormat(_)
            | Pool::NoKey
            | Pool::NotEncrypted => Error::Unusable(error.to_string()),
            Pool::InUse => Error::InUse(error.to_string()),
            Pool::Io { .. } | Pool::Failed(_) | Pool::TooLarge { .. } => {
                Error::Io(error.to_string())
            }
        }
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Error {
        Error::Corrupt(error.to_string())
    }
}

impl From<offshoot_intent_log::Error> for Error {
    fn from(error: offshoot_intent_log::Error) -> Error {
        match error {
            offshoot_intent_log::Error::Missing(_) => Error::Unusable(error.to_string()),
            _ => Error::Io(error.to_string()),
        }
    }
}

#[cfg(test)]
pub(crate) mod memory {
    //! Nodes in a map, for tests of trees alone.

    use super::{NodeSink, NodeSource};
    use crate::{Error, Result};
    use offshoot_pool::BlockData;
    use offshoot_types::BlockHash;
    use std::cell::RefCell;
    use std::collections::HashMap;

    #[derive(Default)]
    pub(crate) struct MemoryNodes {
        nodes: RefCell<HashMap<BlockHash, BlockData>>,
        pub(crate) writes: RefCell<u64>,
    }

    impl NodeSource for MemoryNodes {
        fn read_node(&self, hash: &BlockHash) -> Result<BlockData> {
            self.nodes.borrow().get(hash).cloned().ok_or(Error::Missing(*hash))
        }
    }

    impl NodeSink for MemoryNodes {
        fn write_node(&self, node: &[u8]) -> Result<BlockHash> {
            assert!(node.len() < 16 << 10, "node of {} bytes", node.len());
            *self.writes.borrow_mut() += 1;
            // A number is as good a name as a hash here.
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&self.writes.borrow().to_le_bytes());
            self.nodes.borrow_mut().insert(BlockHash(hash), BlockData::new(node.to_vec()));
            Ok(BlockHash(hash))
        }
    }
}
