//! What differs between two states of a database.

use crate::{DataDir, Differing, Server};
use offshoot_types::Failure;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Compares copies.
pub trait Differ: Send + Sync {
    /// Compares two copies, by their servers and by what the store knows of their files. Both stay as they are for
    /// whoever uses them next: nobody.
    ///
    /// # Errors
    /// `InvalidInput` for what cannot be compared as asked, `NotFound` for a table that neither has; when a server cannot
    /// be asked; the tick's.
    fn diff(
        &self,
        compared: &mut Compared<'_>,
        wanted: &DiffWanted,
        tick: &mut DiffTick<'_>,
    ) -> Result<Differences, Failure>;
}

/// Told how many pages were read, and of how many. An error ends the comparison.
pub type DiffTick<'a> = dyn FnMut(u64, u64) -> Result<(), Failure> + 'a;

/// A copy to compare.
pub struct DiffSide<'a> {
    /// Its server, which nobody but the engine reaches.
    pub server: &'a dyn Server,
    /// Its files as they were before that server was started, after a clean stop of the one before.
    pub files: Arc<dyn DataDir>,
}

/// Two copies, and what the store knows of them.
pub struct Compared<'a> {
    /// The first.
    pub left: DiffSide<'a>,
    /// The second.
    pub right: DiffSide<'a>,
    /// The blocks of a file of the first that may differ from those of the same file of the second; none where one of
    /// them has no such file.
    pub differing: &'a Differing<'a>,
    /// The next of the states that both copies come from, the nearest first, until there is none.
    pub ancestors: &'a mut NextAncestor<'a>,
}

/// Gives the next state that two copies come from.
pub type NextAncestor<'a> = dyn FnMut() -> Result<Option<Ancestor>, Failure> + 'a;

/// A state that both copies come from: everything that was written before it is in both, unless it was changed since.
pub struct Ancestor {
    /// Its files.
    pub files: Arc<dyn DataDir>,
    /// The blocks of a file of the first copy that may differ from those of the same file of this state; none where one
    /// of them has no such file.
    pub differing: Box<DifferingFn>,
    /// Whether it holds exactly what a source had, but for what [`Server::cut_ties`] did.
    pub of_source: bool,
}

/// As [`Differing`], owned.
pub type DifferingFn = dyn Fn(&str) -> io::Result<Option<Vec<Range<u64>>>> + Send + Sync;

/// What of the differences is wanted.
#[derive(Debug, Clone, Default)]
pub struct DiffWanted {
    /// Tables, by patterns with `*` and `?` for their names; none: all.
    pub tables: Vec<String>,
    /// So many rows of each table.
    pub rows: usize,
    /// Statements that make the tables of the first copy what they are in the second.
    pub sql: bool,
    /// The most of rows and statements that is kept, in bytes.
    pub bytes_max: usize,
}

/// What differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Everything but rows.
    pub objects: Vec<ObjectChange>,
    /// The tables that were compared, with those that do not differ.
    pub tables: Vec<TableChanges>,
    /// The statements, if they were wanted.
    pub sql: Option<String>,
    /// What should be known of how it was compared.
    pub notes: Vec<String>,
}

/// Something of the schema that one copy has and the other has not, or has otherwise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectChange {
    /// The database; none for what belongs to all of them.
    pub database: Option<String>,
    /// What it is: `column`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How the first copy has it.
    pub before: Option<String>,
    /// How the second copy has it.
    pub after: Option<String>,
}

/// The rows of a table that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableChanges {
    /// The database.
    pub database: String,
    /// The table as its users name it.
    pub table: String,
    /// The columns that its rows are told apart by; none: rows are the same only if they are wholly equal.
    pub key: Vec<String>,
    /// The columns that were compared.
    pub columns: Vec<String>,
    /// How it was read.
    pub read: TableRead,
    /// Why it was read so.
    pub why: Option<String>,
    /// Pages that were read, of the copy that has more.
    pub pages_read: u64,
    /// Pages that it has there.
    pub pages: u64,
    /// Rows that only the second copy has.
    pub added: u64,
    /// Rows that both have, with other values.
    pub changed: u64,
    /// Rows that only the first copy has.
    pub removed: u64,
    /// The first of these rows.
    pub rows: Vec<RowChange>,
}

impl TableChanges {
    /// Whether any row differs.
    pub fn differs(&self) -> bool {
        self.added + self.changed + self.removed > 0
    }
}

/// How a table was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableRead {
    /// Not at all: no page of it differs.
    #[default]
    Nothing,
    /// The pages that differ.
    Pages,
    /// All of it.
    Whole,
    /// It cannot be compared.
    Skipped,
}

/// A row that differs, with a value for each of the columns: as text, or none for NULL.
#[derive(Clone, PartialEq, Eq)]
pub struct RowChange {
    /// As the first copy has it; none: it has no such row.
    pub before: Option<Vec<Option<String>>>,
    /// As the second copy has it; none: it has no such row.
    pub after: Option<Vec<Option<String>>>,
}

/// Tells no value.
impl fmt::Debug for RowChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&self.before, &self.after) {
            (None, _) => "RowChange(added)",
            (_, None) => "RowChange(removed)",
            _ => "RowChange(changed)",
        })
    }
}
