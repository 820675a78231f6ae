//! The shared block cache; knows blocks, never datasets.
//!
//! There is one copy per block name for all callers: the name is the hash of the content, so clones
//! and snapshots share entries without knowing of each other. The cache is split into parts with a
//! lock each; a hit takes the read lock of one part and allocates nothing. Eviction is quick_cache's
//! (CLOCK-Pro with a small probationary queue and a memory of recently evicted names), which keeps a
//! block that was read once by a scan from displacing one that is read again and again.

mod block_data;
mod cache;
mod owners;

pub use block_data::{BlockData, BlockHashBuilder, BlockHasher};
pub use cache::{BlockCache, CacheStats, Claim};
pub use owners::OwnerStats;
