//! What a bound rule does with a value.

use std::fmt;
use std::sync::Arc;

/// How a column is masked.
pub enum Mask {
    /// Value by value.
    Values(Arc<dyn ValueMask>),
    /// By the database: an SQL expression over the row.
    Sql(String),
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mask::Values(_) => f.write_str("Values(…)"),
            Mask::Sql(expression) => write!(f, "Sql({expression})"),
        }
    }
}

/// Masks the values of a column.
pub trait ValueMask: Send + Sync {
    /// Appends the mask of `value` to `out`; both are in the database's text form: ISO dates, `t` and `f`, `\x…`
    /// for bytes. NULL never gets here.
    ///
    /// # Errors
    /// When the value has no mask. What `out` holds then means nothing.
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable>;
}

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The text that was appended.
    Value,
    /// NULL; nothing was appended.
    Null,
}

/// A row as it was before any of it was masked.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// A value for each column of the table's facts.
    pub values: &'a [Option<&'a str>],
}

/// A value has no mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unmaskable {
    /// Why; never tells the value.
    pub why: &'static str,
}

impl fmt::Display for Unmaskable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for Unmaskable {}
