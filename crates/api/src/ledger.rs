//! What each object holds of the pool.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an entry of the ledger is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LedgerKind {
    /// A dSource: its staging copy, the log received and its snapshots.
    Dsource,
    /// A VDB: its files, its snapshots and the states that a rewind or refresh replaced.
    Vdb,
    /// A snapshot.
    Snapshot,
}

/// What one object holds of the pool. Stored bytes are after compression, each block once; the three classes add up to
/// `stored_bytes`. All but `logical_bytes` are null for an object whose figures were not computed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerEntry {
    /// A name, or a snapshot's id.
    #[schema(example = "prod")]
    pub object: String,
    /// What it is.
    pub kind: LedgerKind,
    /// Of a snapshot, the name of the dSource or VDB it was taken of.
    #[schema(required)]
    pub of: Option<String>,
    /// What its files would take outside the pool.
    pub logical_bytes: u64,
    /// All stored bytes it reaches.
    #[schema(required)]
    pub stored_bytes: Option<u64>,
    /// What only this object reaches, from its present state.
    #[schema(required)]
    pub exclusive_bytes: Option<u64>,
    /// What something else reaches as well.
    #[schema(required)]
    pub shared_bytes: Option<u64>,
    /// What only this object's past reaches: snapshots, log and replaced states. 0 for a snapshot.
    #[schema(required)]
    pub pinned_bytes: Option<u64>,
    /// What deleting it would free: `exclusive_bytes` + `pinned_bytes`.
    #[schema(required)]
    pub freed_if_deleted_bytes: Option<u64>,
    /// When the figures were worked out.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub as_of: Option<Timestamp>,
    /// Whether nothing in the pool has changed since; then they are exact to the block.
    pub current: bool,
}

/// What objects hold of the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ledger {
    /// dSources and VDBs by name, then snapshots, oldest first; of those asked for.
    pub objects: Vec<LedgerEntry>,
    /// What deleting all of `delete` together would free, exact to the block as of now; null if nothing was
    /// given.
    #[schema(required)]
    pub freed_if_deleted_bytes: Option<u64>,
}
