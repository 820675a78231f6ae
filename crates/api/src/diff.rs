//! What differs between two states.

use crate::moment::{Moment, Position};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A state: a dSource or VDB at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffState {
    /// The dSource or VDB.
    pub object: String,
    /// Its moment; the latest where absent.
    #[serde(default)]
    pub moment: Moment,
}

/// Compares two states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateDiff {
    /// The state to begin with.
    pub left: DiffState,
    /// The state to end with.
    pub right: DiffState,
    /// Tables, as in `orders`, `public.orders` or `public.*`; all where empty.
    #[serde(default)]
    pub tables: Vec<String>,
    /// How many rows of each table to show; 0 where absent: how many differ.
    #[serde(default)]
    #[schema(maximum = 10_000)]
    pub rows: Option<u32>,
    /// Also write statements that make the tables of the first state what they are in the second.
    #[serde(default)]
    pub sql: bool,
}

/// What differs between two states. A value is null for NULL, else its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Diff {
    /// The state to begin with.
    pub left: DiffedState,
    /// The state to end with.
    pub right: DiffedState,
    /// What differs beside rows.
    pub schema: Vec<DiffObject>,
    /// The tables, also those that do not differ.
    pub tables: Vec<DiffTable>,
    /// The statements, if they were asked for.
    #[schema(required)]
    pub sql: Option<String>,
    /// What should be known of how it was compared.
    pub notes: Vec<String>,
    /// How long the comparison took once both states were open.
    pub took_ms: u64,
}

/// A state that was compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffedState {
    /// The dSource or VDB.
    pub object: String,
    /// Its moment.
    pub moment: Position,
}

/// Something that only one state has, or that they have otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffObject {
    /// Its database; null for what belongs to none, as a role.
    #[schema(required)]
    pub database: Option<String>,
    /// What it is.
    #[schema(example = "column")]
    pub kind: String,
    /// Its name.
    #[schema(example = "public.orders.total")]
    pub name: String,
    /// How the first state has it; null: it has not.
    #[schema(required)]
    pub before: Option<String>,
    /// How the second state has it; null: it has not.
    #[schema(required)]
    pub after: Option<String>,
}

/// How a table was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffRead {
    /// Not at all: no page of it differs.
    Nothing,
    /// The pages that differ.
    Pages,
    /// All of it.
    Whole,
    /// Its rows are not compared.
    Skipped,
}

/// The rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffTable {
    /// Its database.
    pub database: String,
    /// The table.
    #[schema(example = "public.orders")]
    pub table: String,
    /// The columns that its rows are told apart by; empty: a row is another one if any value is.
    pub key: Vec<String>,
    /// The columns that were compared.
    pub columns: Vec<String>,
    /// How it was read.
    pub read: DiffRead,
    /// Why it was read so.
    #[schema(required)]
    pub why: Option<String>,
    /// Pages that were read.
    pub pages_read: u64,
    /// Pages that it has.
    pub pages: u64,
    /// Rows that only the second state has.
    pub added: u64,
    /// Rows that both have, with other values.
    pub changed: u64,
    /// Rows that only the first state has.
    pub removed: u64,
    /// The first of these rows, by their keys.
    pub rows: Vec<DiffRow>,
}

/// A row that differs, with a value for each of the columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffRow {
    /// As the first state has it; null: it has not.
    #[schema(required)]
    pub before: Option<Vec<Option<String>>>,
    /// As the second state has it; null: it has not.
    #[schema(required)]
    pub after: Option<Vec<Option<String>>>,
}
