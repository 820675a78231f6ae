//! What holds for every mask of a column, whatever its algorithm.

use crate::facts::ColumnFacts;
use crate::mask::{Outcome, Row, Unmaskable, ValueMask};
use std::sync::Arc;

/// Keeps empty texts, takes blanks off that the database only pads with, has texts that are equal in any case masked
/// alike, and keeps masks to the column's length.
struct Fitted {
    mask: Arc<dyn ValueMask>,
    padded: bool,
    any_case: bool,
    chars_max: Option<usize>,
    cuts: bool,
}

/// A mask that fits a column.
pub(super) fn fit(
    mask: Arc<dyn ValueMask>,
    column: &ColumnFacts,
    cuts: bool,
) -> Arc<dyn ValueMask> {
    let name = column.type_name.as_str();
    Arc::new(Fitted {
        mask,
        padded: name == "bpchar" || name == "character" || name.starts_with("character("),
        any_case: column.any_case(),
        chars_max: column.chars_max.map(|chars| chars as usize),
        cuts,
    })
}

impl ValueMask for Fitted {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let bare = if self.padded { value.trim_end_matches(' ') } else { value };
        if bare.is_empty() {
            out.push_str(value);
            return Ok(Outcome::Value);
        }
        let start = out.len();
        let outcome = if self.any_case {
            self.mask.mask(&bare.to_lowercase(), row, out)?
        } else {
            self.mask.mask(bare, row, out)?
        };
        let (Some(max), Outcome::Value) = (self.chars_max, outcome) else { return Ok(outcome) };
        // Bytes are never fewer than characters.
        if out.len() - start > max
            && let Some((at, _)) = out[start..].char_indices().nth(max)
        {
            if !self.cuts {
                return Err(Unmaskable { why: "its mask is longer than the column takes" });
            }
            out.truncate(start + at);
            // A mask that was cut at a blank does not end with it.
            match out[start..].trim_end().len() {
                0 => {}
                length => out.truncate(start + length),
            }
        }
        Ok(outcome)
    }
}
