//! Asking copies a question, and looking in the log for what can have changed the answer.

use crate::{ReceivedLog, Server};
use offshoot_domain::{Answer, FoundCommit, TransactionChanges};
use offshoot_types::{Failure, LogPosition};
use std::collections::BTreeSet;
use std::time::Duration;

/// A question to a database.
#[derive(Debug, Clone)]
pub struct Question {
    /// The query, in the database's language.
    pub query: String,
    /// The database to ask; none: the one that users connect to first.
    pub database: Option<String>,
    /// Which one that is, if it exists.
    pub preferred_database: Option<String>,
    /// How long the answer may take.
    pub time_limit: Duration,
}

/// An answer, and what it was read from.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// The database that was asked.
    pub database: String,
    /// What it was read from.
    pub reads: Reads,
}

/// What answers were read from, in numbers that the connector alone understands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// Where.
    pub places: BTreeSet<u64>,
    /// Whether it cannot be told: anything may change the answer.
    pub unknown: bool,
    /// Transactions with a lower number may have begun before: the earlier log has what they did.
    pub begun_before: Option<u32>,
}

impl Reads {
    /// Adds what another answer was read from. The lower bound stays: it belongs to the earliest moment.
    pub fn extend(&mut self, other: &Reads) {
        self.places.extend(&other.places);
        self.unknown |= other.unknown;
    }
}

/// A commit that can have changed an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    /// Where it ends.
    pub end: LogPosition,
    /// Whether it wrote what was read, and not only what says how to read it.
    pub likely: bool,
}

/// Asks copies.
pub trait Inquirer: Send + Sync {
    /// Asks a copy by its server, as a user of a VDB could: with a role that owns the data and is no superuser,
    /// read only. What the database refuses is an [`Answer::Error`], unless no moment could answer it.
    ///
    /// # Errors
    /// `InvalidInput` for what is no single query, writes, takes longer than its limit or answers too much;
    /// when the server cannot be asked.
    fn ask(&self, server: &dyn Server, question: &Question) -> Result<Reply, Failure>;

    /// The commits that end after one position and up to another and can have changed the answer, in order. What is
    /// left out cannot: the answers were read from elsewhere. None: any of them can.
    ///
    /// # Errors
    /// `DataDamaged`, `MomentUnavailable` when the log cannot be read; the tick's.
    fn suspects(
        &self,
        log: &dyn ReceivedLog,
        range: (LogPosition, LogPosition),
        reads: &Reads,
        tick: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<Option<Vec<Suspect>>, Failure>;

    /// What the transaction of a commit did. The servers are of copies before and right after it:
    /// they know the names.
    ///
    /// # Errors
    /// As for [`Inquirer::suspects`]; when a server cannot be asked.
    fn changes(
        &self,
        log: &dyn ReceivedLog,
        commit: &FoundCommit,
        servers: (&dyn Server, &dyn Server),
        tick: &mut dyn FnMut() -> Result<(), Failure>,
    ) -> Result<TransactionChanges, Failure>;
}
