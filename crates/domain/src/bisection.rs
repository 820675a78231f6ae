//! When the answer to a question changed: what is asked for, and what was found.

use crate::Position;
use offshoot_types::LogPosition;
use serde::{Deserialize, Serialize};

/// The longest answer, in bytes: it is kept with the job that asked.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What a database answered: the first column of the first row, as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "text", rename_all = "snake_case")]
pub enum Answer {
    /// There was no row.
    NoRow,
    /// SQL's NULL.
    Null,
    /// A value; booleans are `true` and `false`.
    Value(String),
    /// The question could not be answered, and why.
    Error(String),
}

impl Answer {
    /// Whether it is what a user wrote. `NULL` is SQL's, not that text; no text is no row.
    fn is(&self, wanted: &str) -> bool {
        match self {
            Answer::Null => wanted == "NULL",
            Answer::Value(value) => value == wanted && wanted != "NULL",
            Answer::NoRow | Answer::Error(_) => false,
        }
    }
}

/// Which change is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum Condition {
    /// The answer is no longer what it was at first.
    Changes,
    /// It becomes this value.
    Until(String),
    /// It is no longer this value.
    Expect(String),
}

impl Condition {
    /// Whether an answer is on the far side of the change; `first` is the one at the earlier end.
    pub fn met(&self, answer: &Answer, first: &Answer) -> bool {
        match self {
            Condition::Changes => answer != first,
            Condition::Until(wanted) => answer.is(wanted),
            Condition::Expect(wanted) => !answer.is(wanted),
        }
    }
}

/// A moment with the answer there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The moment.
    pub at: Position,
    /// The answer.
    pub answer: Answer,
}

/// A commit by its number, as users name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCommit {
    /// Where its record ends: what is opened here has it.
    pub end: LogPosition,
    /// When it was committed, by the source's clock.
    pub time: jiff::Timestamp,
    /// The label that the database gave the transaction.
    pub label: String,
}

/// What a transaction did to a relation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationChange {
    /// The database it is in.
    pub database: String,
    /// Its name with its schema.
    pub relation: String,
    /// Rows that were inserted.
    pub inserted: u64,
    /// Rows that were updated.
    pub updated: u64,
    /// Rows that were deleted.
    pub deleted: u64,
    /// Whether its file was made or replaced: by `CREATE`, `TRUNCATE`, `VACUUM FULL` and the like.
    pub rewritten: bool,
}

/// What a transaction did, as far as the log tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionChanges {
    /// By database and name.
    pub relations: Vec<RelationChange>,
    /// Whether the log from its beginning on was read; if not, it may have done more.
    pub whole: bool,
}

/// The commit that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeFound {
    /// The commit.
    pub commit: FoundCommit,
    /// The answer right before it.
    pub before: Answer,
    /// The answer right after it.
    pub after: Answer,
    /// What the transaction did.
    pub changes: TransactionChanges,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bisection {
    /// The database that was asked.
    pub database: String,
    /// The earlier end.
    pub from: Answered,
    /// The later end.
    pub to: Answered,
    /// The change; none: both ends are on the same side of it.
    pub found: Option<ChangeFound>,
    /// Commits between the ends.
    pub commits: u64,
    /// Moments that were opened.
    pub opened: u32,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}

#[cfg(test)]
mod tests;
