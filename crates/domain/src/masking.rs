//! How a masked dSource is made.

use crate::ObjectName;
use jiff::Timestamp;
use offshoot_types::{DsourceId, SnapshotId};
use serde::{Deserialize, Serialize};

/// The rules of a masked dSource, and what the last run of them gave. Kept apart from the dSource's own record, as
/// rules may be long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Masking {
    /// The masked dSource.
    pub id: DsourceId,
    /// What it is masked from.
    pub source: DsourceId,
    /// Its name at the last run.
    pub source_name: ObjectName,
    /// The rules as they were given.
    pub rules: String,
    /// The name of the key they mask with.
    pub key: String,
    /// How often it is renewed; none: when somebody asks.
    #[serde(default)]
    pub every_ms: Option<u64>,
    /// Who applied the rules.
    #[serde(default)]
    pub accepted_by: String,
    /// The last run that gave an image.
    pub last: MaskingRun,
}

/// What the identity of every masked dSource begins with.
const MASKED: &str = "masked:";

/// The identity of a masked dSource: one of its own, so that it is never taken for what it is masked from.
pub fn masked_identity(id: DsourceId, of_source: &str) -> String {
    format!("{MASKED}{id}:{of_source}")
}

/// Whether an identity is that of a masked dSource; what comes from it is masked.
pub fn is_masked(identity: &str) -> bool {
    identity.starts_with(MASKED)
}

impl Masking {
    /// Whether it is time to renew it.
    pub fn is_due(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.last.ended_at).as_millis();
        self.every_ms.is_some_and(|every| u64::try_from(age).is_ok_and(|age| age >= every))
    }
}

/// What a copy was found to hold that should be masked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Discovered {
    /// By table, and by column as they lie there.
    pub findings: Vec<FoundColumn>,
    /// Rules for them, to be reviewed.
    pub rules: String,
}

/// A column that should be masked. It never tells a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundColumn {
    /// Its table as its users name it.
    pub table: String,
    /// Its name.
    pub column: String,
    /// What it seems to hold: `e-mail`.
    pub kind: String,
    /// The rule that is proposed for it.
    pub algorithm: String,
    /// How sure that is, from 0 to 1.
    pub confidence: f32,
    /// What it was told from.
    pub why: String,
    /// How many values were looked at.
    pub samples: u64,
}

/// What a run of masking works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaskingMode {
    /// Everything.
    Full {
        /// Why not only what has changed, where that could have been.
        because: Option<String>,
    },
    /// What has changed since the last image.
    Incremental,
}

impl Default for MaskingMode {
    fn default() -> Self {
        MaskingMode::Full { because: None }
    }
}

/// A run of masking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskingRun {
    /// The image it gave.
    pub snapshot: SnapshotId,
    /// The snapshot of the source that it began with.
    pub of: SnapshotId,
    /// What it worked on.
    #[serde(default)]
    pub mode: MaskingMode,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How long the masking itself took, in milliseconds.
    pub took_ms: u64,
    /// Values that were replaced.
    pub values: u64,
    /// What was done to each table.
    pub tables: Vec<MaskedRows>,
    /// Rules that met nothing.
    pub idle: Vec<String>,
    /// Columns that look as if they had to be masked and have no rule, and why.
    pub unruled: Vec<String>,
}

impl MaskingRun {
    /// Rows that were written anew.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }
}

/// How far a table is masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedRows {
    /// The table as its users name it.
    pub name: String,
    /// Rows that were written anew.
    pub rows: u64,
    /// Rows to write, as the server estimates them.
    pub rows_total: u64,
    /// `waiting`, `running` or `done`.
    pub state: MaskedRowsState,
}

/// Where a table stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaskedRowsState {
    /// Not yet begun.
    Waiting,
    /// Being masked.
    Running,
    /// Masked.
    Done,
}
