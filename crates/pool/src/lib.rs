//! The pool: blocks named by the hash of their content, one durable root, space reclaim.
//!
//! Everything stored is one tree of blocks hanging off one root: *data* blocks, and *node* blocks
//! that list the hashes of their children. The pool does not know what nodes mean; it asks
//! [`NodeChildren`]. A [`Transaction`] writes blocks; [`Pool::commit`] makes a new root durable, and
//! whatever the old root alone reached is reclaimed in the background.

mod background;
mod ballast;
mod block;
mod check;
mod commit;
mod compress;
mod dead_nodes;
mod durable;
mod error;
mod faults;
mod frames;
mod heal;
mod invariants;
mod journal;
mod ledger;
mod load;
mod options;
mod passing;
mod pool;
mod read_many;
mod reads;
mod rebuild;
mod reclaim;
mod recovery;
mod room;
mod roots;
mod runs;
mod scrub;
mod segments;
mod space;
mod stats;
mod table;
mod threads;
mod transaction;

pub use block::{BLOCK_LEN_MAX, NodeChildren};
pub use check::{Finding, PoolCheck};
pub use durable::{EXTRA_LEN_MAX, Root};
pub use error::{Error, Result};
pub use ledger::{PAPER_LONG, Reach};
pub use offshoot_cache::BlockData;
pub use offshoot_format::DecodeError;
pub use offshoot_format::encryption;
pub use offshoot_format::seal::{DataKey, Seals};
pub use offshoot_format::segment::{BlockKind, Codec};
pub use options::PoolOptions;
pub use passing::{Checked, OpenedBlock, PassingBlock};
pub use pool::Pool;
pub use recovery::is_encrypted;
pub use room::Purpose;
pub use stats::{CacheStats, Fault, OwnerStats, PoolStats, ScrubState};
pub use transaction::{BlockPin, Caching, Transaction};
