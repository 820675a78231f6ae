//! `character-mapping`: another text of the same form.
//!
//! - Letters become letters of the same script and case, digits digits; everything else stays. Parameters:
//!   `keep-first` and `keep-last`, how many characters stay at the ends. Integers stay within their type, and a number
//!   keeps how many digits it has; a UUID keeps its version.
//! - A permutation: every character of the mask depends on all characters of the value. Texts, integers, decimal
//!   numbers, UUIDs.
//! - The output tells length, case, punctuation, what was kept, and which rows had the same value. Very short values
//!   can be told from how often they occur.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::Entry;
use crate::permutation::Permutation;
use crate::shape::{Alphabet, Shape};
use std::sync::Arc;

/// Tried so often to stay within an integer type; one try in five fails at worst.
const TRIES: u32 = 1000;

pub(super) const ENTRY: Entry = Entry {
    name: "character-mapping",
    tells: "form and length, what is kept",
    parameters: &["keep-first", "keep-last"],
    read: |parameters| {
        let first = parameters.count("keep-first", 0..=1000)?.unwrap_or(0) as usize;
        let last = parameters.count("keep-last", 0..=1000)?.unwrap_or(0) as usize;
        Ok(Arc::new(CharacterMapping { first, last }))
    },
};

#[derive(Debug, Clone, Copy)]
pub(super) struct CharacterMapping {
    pub first: usize,
    pub last: usize,
}

impl Algorithm for CharacterMapping {
    fn fits(&self, class: &TypeClass) -> bool {
        let plain = self.first == 0 && self.last == 0;
        match class {
            TypeClass::Text => true,
            TypeClass::Integer { .. } | TypeClass::Number { .. } | TypeClass::Uuid => plain,
            _ => false,
        }
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Permutation
    }

    fn length(&self) -> Length {
        Length::Same
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let class = &target.column.class;
        let alphabet = match class {
            TypeClass::Uuid => Alphabet::Hex,
            class if class.is_number() => Alphabet::Number,
            _ => Alphabet::All,
        };
        Ok(Mask::Values(Arc::new(Mapping {
            rule: *self,
            alphabet,
            integer_max: class.integer_max(),
            permutation: Permutation::new(target.key.subkey("character-mapping")),
        })))
    }
}

struct Mapping {
    rule: CharacterMapping,
    alphabet: Alphabet,
    integer_max: Option<u64>,
    permutation: Permutation,
}

impl ValueMask for Mapping {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        if self.integer_max.is_some_and(|max| !within(value, max)) {
            return Err(Unmaskable { why: "it is not an integer of its type" });
        }
        let CharacterMapping { first, last } = self.rule;
        let end = if last == 0 { usize::MAX } else { value.chars().count().saturating_sub(last) };
        let uuid = self.alphabet == Alphabet::Hex;
        // What a UUID says of itself: its version and its variant.
        let keeps = |number: usize, _| {
            number < first || number >= end || uuid && (number == 14 || number == 19)
        };
        let mut shape = Shape::of(value, self.alphabet, keeps);
        let start = out.len();
        for _ in 0..TRIES {
            self.permutation.permute(0, &mut shape.digits);
            shape.write(out);
            match self.integer_max {
                Some(max) if !within(&out[start..], max) => out.truncate(start),
                _ => return Ok(Outcome::Value),
            }
        }
        Err(Unmaskable { why: "no number of its type was found for it" })
    }
}

/// Whether an integer is of the type whose largest is this. Trying again until it is keeps the permutation one: of the
/// numbers of the type.
fn within(number: &str, max: u64) -> bool {
    let bare = number.trim_start_matches('-');
    // There is one more below 0.
    bare.parse::<u64>().is_ok_and(|size| size <= max + u64::from(bare.len() < number.len()))
}
