//! The pool: blocks named by the hash of their content, one durable root, space reclaim.
//!
//! Everything stored is one tree of blocks hanging off one root: *data* blocks, and *node* blocks
//! that list the hashes of their children. The pool does not know what nodes mean; it asks
//! [`NodeChildren`]. A [`Transaction`] writes blocks; [`Pool::commit`] makes a new root durable, and
//! whatever the old root alone reached is reclaimed in the background.

mod error;
mod options;
mod pool;
mod stats;

pub use error::{Error, Result};
pub use offshoot_cache::BlockData;
pub use offshoot_format::DecodeError;
pub use options::PoolOptions;
pub use pool::{BlockPin, NodeChildren, Pool, Root, Transaction};
pub use stats::{CacheStats, Fault, OwnerStats, PoolStats, ScrubReport};

/// The longest a block may be, in bytes, before compression.
pub const BLOCK_LEN_MAX: usize = 64 << 10;
/// The longest a root's extra bytes may be.
pub const EXTRA_LEN_MAX: usize = 2 << 10;
