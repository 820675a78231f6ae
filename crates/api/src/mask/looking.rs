//! Looking at a dSource before it is masked.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Looks for what should be masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiscoverMask {
    /// The dSource.
    pub from: String,
    /// How many values of each column to look at; 0: names alone. 1000 where absent.
    #[serde(default)]
    #[schema(maximum = 100_000)]
    pub sample: Option<u32>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Discovery {
    /// By table and column. None tells a value.
    pub findings: Vec<FoundColumn>,
    /// Rules for them, to be reviewed.
    pub rules: String,
}

/// A column that should be masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundColumn {
    /// Its table.
    #[schema(example = "public.customers")]
    pub table: String,
    /// Its name.
    pub column: String,
    /// What it seems to hold.
    #[schema(example = "e-mail")]
    pub kind: String,
    /// The rule that is proposed for it.
    #[schema(example = "email")]
    pub algorithm: String,
    /// How sure that is, from 0 to 1.
    pub confidence: f32,
    /// What it was told from.
    pub why: String,
    /// How many values were looked at.
    pub samples: u64,
}

/// Masks some rows of a table, to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PreviewMask {
    /// The dSource.
    pub from: String,
    /// The rules: for PostgreSQL a ruleset in YAML or JSON.
    pub rules: String,
    /// The table.
    pub table: String,
    /// How many rows; 10 where absent.
    #[serde(default)]
    #[schema(maximum = 1000)]
    pub rows: Option<u32>,
    /// Show the values of production, too, which takes the right to administer.
    #[serde(default)]
    pub originals: bool,
}

/// Rows of a table as rules mask them: only columns that they mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MaskPreview {
    /// The table.
    pub table: String,
    /// The columns.
    pub columns: Vec<PreviewColumn>,
    /// For each row a value for each of the columns.
    pub rows: Vec<Vec<PreviewValue>>,
}

/// A column that rules mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewColumn {
    /// Its name.
    pub name: String,
    /// The name of its algorithm.
    pub algorithm: String,
}

/// A value and its mask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewValue {
    /// As production has it: only where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Its mask; null for NULL, and where no rule masks it.
    #[schema(required)]
    pub after: Option<String>,
    /// Whether the rules mask it.
    pub masked: bool,
}
