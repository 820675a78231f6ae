//! `secure-lookup`: one of a list of values, picked by the value's hash.
//!
//! - Parameters: `values`, up to 500,000 of them; `ignore-case: true` has texts that differ only in case picked alike.
//! - Lossy. Every type that takes the listed values.
//! - The output tells which rows had the same value (not which rows had different ones), and how often each value of
//!   the list was hit: the frequency of common values shows through.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::{Entry, Wrong, missing};
use std::sync::Arc;

/// The longest list.
const VALUES_MAX: usize = 500_000;

pub(super) const ENTRY: Entry = Entry {
    name: "secure-lookup",
    tells: "nothing",
    parameters: &["values", "ignore-case"],
    read: |parameters| {
        let example = "{algorithm: secure-lookup, values: [red, green, blue]}";
        let values = parameters.texts("values")?.ok_or_else(|| missing("values", example))?;
        if values.is_empty() || values.len() > VALUES_MAX {
            let hint = format!("give from 1 to {VALUES_MAX} values");
            return Err(Wrong::new(format!("`values` has {} values", values.len()), hint));
        }
        let ignore_case = parameters.flag("ignore-case")?;
        Ok(Arc::new(SecureLookup { values: values.into(), ignore_case }))
    },
};

#[derive(Debug)]
struct SecureLookup {
    values: Arc<[String]>,
    ignore_case: bool,
}

impl Algorithm for SecureLookup {
    fn fits(&self, class: &TypeClass) -> bool {
        self.values.iter().all(|value| class.takes(value))
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        let longest = self.values.iter().map(|value| value.chars().count()).max();
        Length::AtMost(longest.unwrap_or(0) as u32)
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let class = &target.column.class;
        let values = match class {
            TypeClass::Boolean => self.values.iter().map(|value| class.written(value)).collect(),
            _ => Arc::clone(&self.values),
        };
        let key = target.key.subkey("secure-lookup");
        Ok(Mask::Values(Arc::new(Lookup { values, ignore_case: self.ignore_case, key })))
    }
}

struct Lookup {
    values: Arc<[String]>,
    ignore_case: bool,
    key: Subkey,
}

impl ValueMask for Lookup {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let mut draw = match self.ignore_case {
            true => self.key.draw(value.to_lowercase().as_bytes()),
            false => self.key.draw(value.as_bytes()),
        };
        out.push_str(&self.values[draw.below(self.values.len() as u64) as usize]);
        Ok(Outcome::Value)
    }
}
