//! The pool: blocks named by the hash of their content, one durable root, space reclaim.
//!
//! Everything stored is one tree of blocks hanging off one root: *data* blocks, and *node* blocks
//! that list the hashes of their children. The pool does not know what nodes mean; it asks
//! [`NodeChildren`]. A [`Transaction`] writes blocks; [`Pool::commit`] makes a new root durable, and
//! whatever the old root alone reached is reclaimed in the background.

mod ballast;
mod check;
mod commit;
mod compress;
mod error;
mod heal;
mod journal;
mod ledger;
mod load;
mod options;
mod pool;
mod read_many;
mod rebuild;
mod reclaim;
mod recovery;
mod room;
mod roots;
mod scrub;
mod segments;
mod stats;
mod table;
mod threads;
mod transaction;

pub use check::{Finding, PoolCheck};
pub use error::{Error, Result};
pub use ledger::{PAPER_LONG, Reach};
pub use offshoot_cache::BlockData;
pub use offshoot_format::DecodeError;
pub use options::PoolOptions;
pub use pool::{NodeChildren, Pool, Root};
pub use room::Purpose;
pub use stats::{CacheStats, Fault, OwnerStats, PoolStats, ScrubState};
pub use transaction::{BlockPin, Transaction};

/// The longest a block may be, in bytes, before compression.
pub const BLOCK_LEN_MAX: usize = 64 << 10;
/// The longest a root's extra bytes may be.
pub const EXTRA_LEN_MAX: usize = offshoot_format::root::EXTRA_LEN_MAX;
