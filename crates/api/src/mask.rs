//! Masking.

pub mod keys;
pub mod looking;
pub mod report;

use crate::ErrorDetail;
use jiff::Timestamp;
use offshoot_types::SnapshotId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a masked dSource stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaskState {
    /// It is being made or renewed.
    Masking,
    /// Its last run gave an image.
    Masked,
    /// Its last run failed; `snapshot` is the image of an earlier one, if there is one.
    Failed,
}

/// What a run works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaskMode {
    /// Everything is masked.
    Full,
    /// Only what changed since the last run.
    Incremental,
}

/// Where a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaskTableState {
    /// Not yet begun.
    Waiting,
    /// Being masked.
    Running,
    /// Masked.
    Done,
}

/// A table that rules name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskTable {
    /// The table.
    #[schema(example = "public.customers")]
    pub name: String,
    /// Rows written so far.
    pub rows: u64,
    /// Rows to write, as the server estimates them.
    pub rows_total: u64,
    /// Where it stands.
    pub state: MaskTableState,
}

/// A masked dSource, or one that is being made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Mask {
    /// Its name.
    pub name: String,
    /// The dSource that it is masked from.
    pub source: String,
    /// How it stands.
    pub state: MaskState,
    /// The newest masked image; null before the first.
    #[schema(required, value_type = Option<String>, example = "snapshot-7")]
    pub snapshot: Option<SnapshotId>,
    /// When that was made.
    #[schema(required, value_type = Option<String>, format = DateTime)]
    pub masked_at: Option<Timestamp>,
    /// The name of the key that values are masked with; null before the first image.
    #[schema(required)]
    pub key: Option<String>,
    /// How often it is renewed; null: when somebody asks.
    #[schema(required)]
    pub every_ms: Option<u64>,
    /// Rows written by the run under way, or by the last one.
    pub rows_masked: u64,
    /// The same for each second.
    pub rows_per_second: u64,
    /// Values replaced by the last run.
    pub values_masked: u64,
    /// How long the run has taken so far, or took.
    pub took_ms: u64,
    /// The tables that the rules name.
    pub tables: Vec<MaskTable>,
    /// What the last run worked on.
    pub mode: MaskMode,
    /// Why it masked everything, where it could have masked only what had changed.
    #[schema(required)]
    pub full_because: Option<String>,
    /// Columns that look as if they had to be masked and have no rule, and why.
    pub columns_without_rule: Vec<String>,
    /// Rules that met no table or column.
    pub idle_rules: Vec<String>,
    /// Why the last run failed.
    #[schema(required)]
    pub error: Option<ErrorDetail>,
}

/// All masked dSources.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MaskList {
    /// By name.
    pub masks: Vec<Mask>,
}

/// Masks a dSource, or holds rules against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyMask {
    /// The dSource.
    pub from: String,
    /// The name of the masked dSource, made or renewed; that of the dSource with `-masked` where absent.
    #[serde(default, rename = "as")]
    pub name: Option<String>,
    /// The snapshot to begin with; the latest moment where absent.
    #[serde(default)]
    #[schema(value_type = Option<String>, example = "snapshot-7")]
    pub snapshot: Option<SnapshotId>,
    /// The rules: for PostgreSQL a ruleset in YAML or JSON.
    pub rules: String,
    /// How often to renew it; only when somebody asks where absent.
    #[serde(default)]
    pub every_ms: Option<u64>,
    /// Mask everything, although only what has changed since the last run may have to be masked.
    #[serde(default)]
    pub full: bool,
}
