//! `per: COLUMN`: masks that follow another column of the row.

use crate::mask::Row;

/// What a mask is drawn from: a column of the row, or the value itself where that is NULL or none is named.
pub(super) fn source<'a>(per: Option<usize>, value: &'a str, row: &Row<'a>) -> &'a str {
    per.and_then(|at| row.values.get(at).copied().flatten()).unwrap_or(value)
}
