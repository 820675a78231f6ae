//! What every algorithm says of itself.

use crate::facts::{ColumnFacts, TypeClass};
use crate::key::MaskingKey;
use crate::mask::Mask;
use std::fmt::Debug;

/// An algorithm with its parameters, before it meets a column.
pub(crate) trait Algorithm: Debug + Send + Sync {
    /// Whether it can mask values of a type.
    fn fits(&self, class: &TypeClass) -> bool;

    /// Whether different values get different masks.
    fn uniqueness(&self) -> Uniqueness;

    /// How long its masks get.
    fn length(&self) -> Length;

    /// The other column of the row that its masks depend on.
    fn per(&self) -> Option<&str> {
        None
    }

    /// Whether it may give NULL.
    fn gives_null(&self) -> bool {
        false
    }

    /// Whether it leaves values as they are, by intent.
    fn keeps(&self) -> bool {
        false
    }

    /// The mask for a column.
    ///
    /// # Errors
    /// What does not fit: read after the column's name.
    fn bind(&self, target: &Target<'_>) -> Result<Mask, String>;
}

/// Whether different values get different masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Uniqueness {
    /// Different values may get the same mask.
    Lossy,
    /// Masks are so many that two values hardly ever get the same one (less than one chance in a million among a
    /// hundred million values).
    Distinct,
    /// Different values get different masks, of the same form: a mask may be another row's value.
    Permutation,
}

impl Uniqueness {
    /// The word for it in documents.
    pub fn word(self) -> &'static str {
        match self {
            Uniqueness::Lossy => "lossy",
            Uniqueness::Distinct => "distinct",
            Uniqueness::Permutation => "permutation",
        }
    }
}

/// How long masks get, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Never longer than the value.
    Same,
    /// This long at most.
    AtMost(u32),
    /// Any length; a mask may be cut without harm.
    Cut,
    /// Any length: known only with the value.
    Open,
}

/// The column that a mask is for.
pub(crate) struct Target<'a> {
    /// The column.
    pub column: &'a ColumnFacts,
    /// All columns of its table.
    pub columns: &'a [ColumnFacts],
    /// The ruleset's key.
    pub key: &'a MaskingKey,
}

impl Target<'_> {
    /// Where `per: COLUMN` stands in a row.
    pub fn per(&self, name: Option<&str>) -> Result<Option<usize>, String> {
        let Some(name) = name else { return Ok(None) };
        match self.columns.iter().position(|column| column.name == name) {
            Some(at) => Ok(Some(at)),
            None => Err(format!("`per` names a column '{name}' that the table does not have")),
        }
    }
}
