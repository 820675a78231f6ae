//! Reports of masking.

use super::MaskMode;
use jiff::Timestamp;
use offshoot_types::SnapshotId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a report is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaskReportFormat {
    /// A JSON document.
    #[default]
    Json,
    /// A page that needs nothing else.
    Html,
}

/// A signed report of a masked image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SignedMaskReport {
    /// What it says.
    pub report: MaskReport,
    /// How the document is written.
    pub format: MaskReportFormat,
    /// The document as it is signed, byte by byte: save it as it is. Its signature (Ed25519) is at its end, after
    /// `offshoot-ed25519:`; what is signed has zeros for its digits.
    pub document: String,
    /// What the signature is checked with.
    pub public_key: String,
}

/// What the signatures of an engine's reports are checked with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskReportKey {
    /// `ed25519`.
    pub algorithm: String,
    /// In hexadecimal digits.
    pub public_key: String,
}

/// What was masked with what: names and counts, never a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MaskReport {
    /// The masked dSource.
    pub name: String,
    /// Its image.
    #[schema(value_type = String, example = "snapshot-7")]
    pub snapshot: SnapshotId,
    /// The dSource that it was masked from.
    pub source: String,
    /// The snapshot of that dSource with which the run began.
    #[schema(value_type = String, example = "snapshot-6")]
    pub source_snapshot: SnapshotId,
    /// The moment of the dSource that was masked.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub source_time: Option<Timestamp>,
    /// The release of the source's server.
    pub server_version: String,
    /// The release of the engine that masked.
    pub engine_version: String,
    /// SHA-256 of the rules as they were given.
    pub rules_sha256: String,
    /// The name of the key that masks depend on.
    pub key: String,
    /// How often that key was made: 1, and one more with each rotation.
    pub key_version: u32,
    /// What the run worked on.
    pub mode: MaskMode,
    /// Who applied the rules, and so accepted the columns that they leave as they are.
    pub accepted_by: String,
    /// When the run began.
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When it ended.
    #[schema(value_type = String, format = DateTime)]
    pub ended_at: Timestamp,
    /// How long the masking itself took.
    pub took_ms: u64,
    /// Values that were replaced.
    pub values_masked: u64,
    /// The tables that rules mask or empty.
    pub tables: Vec<MaskReportTable>,
    /// The columns that rules mask.
    pub columns: Vec<MaskReportColumn>,
    /// Columns that look as if they had to be masked and have no rule, and why.
    pub columns_without_rule: Vec<String>,
    /// Columns that rules keep as they are.
    pub columns_kept: Vec<String>,
    /// All columns that are as they were, those of both lists above among them.
    pub columns_unmasked: Vec<String>,
    /// Rules that met no table or column.
    pub idle_rules: Vec<String>,
    /// What else was removed.
    pub removed: Vec<MaskReportRemoved>,
    /// How far people can be told apart by what is left.
    pub anonymity: Vec<MaskReportAnonymity>,
}

/// A table that rules mask or empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskReportTable {
    /// The table.
    #[schema(example = "public.customers")]
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

/// A column that rules mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskReportColumn {
    /// Its table.
    #[schema(example = "public.customers")]
    pub table: String,
    /// Its name.
    pub column: String,
    /// The algorithm.
    pub algorithm: String,
    /// `permutation` (different values get different masks, of the same form), `distinct` (two values hardly ever get
    /// the same mask) or `lossy`.
    pub uniqueness: String,
    /// What somebody who has the masks, but not the key, learns.
    pub learned: String,
}

/// Something that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskReportRemoved {
    /// What.
    pub what: String,
    /// How many; null: not counted.
    #[schema(required)]
    pub count: Option<u64>,
}

/// How far the rows of a table can be told apart by columns that the rules name as quasi-identifiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskReportAnonymity {
    /// The table.
    pub table: String,
    /// The columns.
    pub columns: Vec<String>,
    /// Rows.
    pub rows: u64,
    /// Different combinations of their values.
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
