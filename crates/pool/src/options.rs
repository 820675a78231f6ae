//! The settings of a pool.

use offshoot_format::seal::DataKey;

/// Settings of a pool. None of them is stored: a pool may be opened with others each time.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolOptions {
    /// Memory for blocks, in bytes, bookkeeping included.
    pub cache_size: u64,
    /// Bytes after which a segment is sealed and a new one begun; at most 64 MiB.
    pub segment_size: u64,
    /// Room on the device for what must continue when the pool is full, in bytes; see
    /// [`crate::Purpose`]. `None`: the larger of 64 MiB and 1 %, and as much as the block table takes.
    pub reserve: Option<u64>,
    /// The most the pool may take of the device, in bytes. `None`: all of it.
    pub capacity: Option<u64>,
    /// Bytes of dead pages that wait to be overwritten by new ones. `None`: a 64th of the pool when less than half
    /// of it is left.
    pub spare: Option<u64>,
    /// How much of the reserve is held in a file, in bytes, so that others cannot take it; it counts
    /// as free. 0: none.
    pub ballast: u64,
    /// Whether a thread reclaims space, compacts and checkpoints. Without it
    /// [`crate::Pool::reclaim_step`] must be called.
    pub background: bool,
    /// Bytes a second that compaction may copy.
    pub compaction_rate: u64,
    /// Bytes of delta log after which the table is rewritten, if that is larger than the table.
    pub checkpoint_log_min: u64,
    /// Open segment files.
    pub open_segments_max: usize,
    /// Whether each commit first checks all invariants, also those that take time: in debug builds and in
    /// the simulation.
    pub check_invariants: bool,
    /// The key of an encrypted pool; a pool that is created with one is encrypted.
    pub data_key: Option<DataKey>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        PoolOptions {
            cache_size: 256 << 20,
            segment_size: 64 << 20,
            reserve: None,
            capacity: None,
            spare: None,
            ballast: 0,
            background: true,
            compaction_rate: 64 << 20,
            checkpoint_log_min: 4 << 20,
            open_segments_max: 256,
            check_invariants: cfg!(debug_assertions),
            data_key: None,
        }
    }
}
