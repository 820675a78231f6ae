//! Searches for the commit at which an answer changed.

use crate::Moment;
use jiff::Timestamp;
use offshoot_types::JobId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Looks for the commit at which the answer to a query changed. Without `until` and `expect`: at which it was no longer
/// what it was at `from`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartBisection {
    /// The dSource.
    pub object: String,
    /// The earlier end.
    pub from: Moment,
    /// The later end; the latest moment where absent.
    #[serde(default)]
    pub to: Moment,
    /// One query, which only reads. The first column of its first row is the answer.
    #[schema(example = "SELECT count(*) > 0 FROM orders WHERE total < 0")]
    pub query: String,
    /// The database to ask; that of the source's URI where absent.
    #[serde(default)]
    pub database: Option<String>,
    /// Look for the commit at which the answer becomes this.
    #[serde(default)]
    #[schema(example = "true")]
    pub until: Option<String>,
    /// Look for the commit at which the answer is no longer this.
    #[serde(default)]
    pub expect: Option<String>,
    /// Whether a refusal, such as that a table does not exist, is an answer like others.
    #[serde(default)]
    pub errors_are_answers: bool,
    /// How long an answer may take; 10000 where absent.
    #[serde(default)]
    #[schema(maximum = 600_000)]
    pub time_limit_ms: Option<u64>,
}

/// What an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    /// A value: `text`.
    Value,
    /// SQL's NULL.
    Null,
    /// There was no row.
    NoRow,
    /// A refusal: `text` says why.
    Error,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Answer {
    /// What it is.
    pub kind: AnswerKind,
    /// The value as text; booleans are `true` and `false`.
    #[schema(required)]
    pub text: Option<String>,
}

/// The answer at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AnsweredMoment {
    /// The moment, by the source's clock.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// Its position in the log.
    #[schema(example = "0/3A2B1C0")]
    pub lsn: String,
    /// The answer.
    pub answer: Answer,
}

/// What a transaction did to a relation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedRelation {
    /// Its database; empty for what all databases share.
    pub database: String,
    /// Its name with its schema.
    #[schema(example = "public.orders")]
    pub relation: String,
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// Rows deleted.
    pub deleted: u64,
    /// Whether its file was made or replaced: by `CREATE`, `TRUNCATE`, `VACUUM FULL` and the like.
    pub rewritten: bool,
}

/// The commit at which an answer changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangingCommit {
    /// The transaction.
    #[schema(example = "74123")]
    pub xid: String,
    /// Where its commit ends in the log: what is opened here has it.
    #[schema(example = "0/3A2B1C0")]
    pub lsn: String,
    /// When it was committed, by the source's clock.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// The answer right before it.
    pub before: Answer,
    /// The answer right after it.
    pub after: Answer,
    /// What it did, by database and name.
    pub changes: Vec<ChangedRelation>,
    /// Whether that is all: false if it began before the log that was read for it.
    pub changes_whole: bool,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bisection {
    /// The job that searched.
    #[schema(value_type = String, example = "job-12")]
    pub job: JobId,
    /// The dSource.
    pub object: String,
    /// The database that was asked.
    pub database: String,
    /// The query.
    pub query: String,
    /// What the answer was to become, if that was asked for.
    #[schema(required)]
    pub until: Option<String>,
    /// What the answer was to be no longer, if that was asked for.
    #[schema(required)]
    pub expect: Option<String>,
    /// The earlier end.
    pub from: AnsweredMoment,
    /// The later end.
    pub to: AnsweredMoment,
    /// The commit, one of perhaps several; null: the ends do not differ in what was looked for.
    #[schema(required)]
    pub change: Option<ChangingCommit>,
    /// Commits between the ends.
    pub commits: u64,
    /// Moments that were opened.
    pub moments_opened: u32,
    /// How long it took.
    pub took_ms: u64,
}
