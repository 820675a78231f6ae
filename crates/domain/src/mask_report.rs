//! What a report of masking tells: counts and names, never a value.

use crate::{MaskingMode, ObjectName};
use jiff::Timestamp;
use offshoot_types::{DsourceId, SnapshotId};
use serde::{Deserialize, Serialize};

/// What a run of masking did, kept as long as its image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskReport {
    /// The masked image.
    pub id: SnapshotId,
    /// The masked dSource.
    pub masked: DsourceId,
    /// The dSource that it was masked from, as it was called then.
    pub source_name: ObjectName,
    /// The snapshot of the source that it began with.
    pub source_snapshot: SnapshotId,
    /// The moment of the source that was masked.
    pub source_time: Option<Timestamp>,
    /// The release of the source's server.
    pub server_version: String,
    /// The release of the engine.
    pub engine_version: String,
    /// SHA-256 of the rules, in hexadecimal digits.
    pub rules_sha256: String,
    /// The name of the key.
    pub key: String,
    /// How often that key was made: 1, and one more with each rotation.
    pub key_version: u32,
    /// What the run worked on.
    #[serde(default)]
    pub mode: MaskingMode,
    /// Who applied the rules, and so accepted what they leave.
    pub accepted_by: String,
    /// When the run began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How long the masking itself took, in milliseconds.
    pub took_ms: u64,
    /// Values that were replaced.
    pub values: u64,
    /// Rules that met nothing.
    pub idle: Vec<String>,
    /// Columns that look as if they had to be masked and have no rule, and why.
    pub unruled: Vec<String>,
    /// What was done.
    pub facts: MaskFacts,
}

/// What masking did to a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskFacts {
    /// The tables that rules mask or empty.
    pub tables: Vec<MaskedTableFacts>,
    /// The columns that rules mask.
    pub columns: Vec<MaskedColumnFacts>,
    /// Columns that rules keep as they are.
    pub kept: Vec<String>,
    /// All columns that are as they were.
    pub unmasked: Vec<String>,
    /// What else was removed.
    pub removed: Vec<Removed>,
    /// How far people can be told apart by what is left.
    pub anonymity: Vec<Anonymity>,
}

/// What became of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedTableFacts {
    /// The table as its users name it.
    pub name: String,
    /// Rows of the copy.
    pub rows_before: u64,
    /// Rows of the masked image.
    pub rows_after: u64,
    /// Whether its rows were removed.
    pub emptied: bool,
    /// Whether a condition says which of its rows are masked.
    pub conditional: bool,
}

/// How a column is masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedColumnFacts {
    /// The table as its users name it.
    pub table: String,
    /// Its name.
    pub column: String,
    /// The name of the algorithm.
    pub algorithm: String,
    /// `permutation`, `distinct` or `lossy`.
    pub uniqueness: String,
    /// What somebody who has its masks, but not the key, learns.
    pub learned: String,
}

/// Something that was removed from a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// What.
    pub what: String,
    /// How many; none: they are not counted.
    pub count: Option<u64>,
}

/// How far the rows of a table can be told apart by some of its columns together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anonymity {
    /// The table as its users name it.
    pub table: String,
    /// The columns.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: u64,
    /// Different combinations of values.
    pub combinations: u64,
    /// Combinations that only one row has.
    pub unique: u64,
    /// How many rows share the rarest combination; 0 if there is no row.
    pub smallest: u64,
    /// How many should, at least.
    pub k: u64,
    /// Rows whose combination fewer share.
    pub rows_below: u64,
}
