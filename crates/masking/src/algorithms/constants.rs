//! `null`, `constant`, `sql` and `keep`: masks that do not look at the value.
//!
//! - `null` gives NULL. Every type that takes NULL. The output tells only that there was a value.
//! - `constant` gives `value`. Lossy; every type. The output tells only that there was a value.
//! - `sql` has the database compute `expression` over the row. Whether it keeps values apart, and what it tells, is for
//!   its author to say; the database refuses duplicates.
//! - `keep` leaves a column as it is, which somebody decided: it is no longer listed as a column without a rule. The
//!   output tells everything.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::{Entry, Wrong};
use std::sync::Arc;

pub(super) const NULL: Entry = Entry {
    name: "null",
    tells: "that there was a value",
    parameters: &[],
    read: |_| Ok(Arc::new(Null)),
};

pub(super) const CONSTANT: Entry = Entry {
    name: "constant",
    tells: "that there was a value",
    parameters: &["value"],
    read: |parameters| {
        let value = parameters.required("value", "{algorithm: constant, value: x}")?;
        Ok(Arc::new(Constant { value }))
    },
};

pub(super) const SQL: Entry = Entry {
    name: "sql",
    tells: "ask its author",
    parameters: &["expression"],
    read: |parameters| {
        let example = "{algorithm: sql, expression: \"left(note, 0)\"}";
        let expression = parameters.required("expression", example)?;
        if expression.trim().is_empty() || expression.contains('\0') {
            return Err(Wrong::new("`expression` is no SQL", format!("give one: {example}")));
        }
        Ok(Arc::new(Sql { expression }))
    },
};

pub(super) const KEEP: Entry =
    Entry { name: "keep", tells: "everything", parameters: &[], read: |_| Ok(Arc::new(Keep)) };

#[derive(Debug)]
struct Null;

impl Algorithm for Null {
    fn fits(&self, _: &TypeClass) -> bool {
        true
    }

    fn uniqueness(&self) -> Uniqueness {
        // NULL is no duplicate of NULL.
        Uniqueness::Distinct
    }

    fn length(&self) -> Length {
        Length::AtMost(0)
    }

    fn gives_null(&self) -> bool {
        true
    }

    fn bind(&self, _: &Target<'_>) -> Result<Mask, String> {
        Ok(Mask::Values(Arc::new(Null)))
    }
}

impl ValueMask for Null {
    fn mask(&self, _: &str, _: &Row<'_>, _: &mut String) -> Result<Outcome, Unmaskable> {
        Ok(Outcome::Null)
    }
}

#[derive(Debug, Clone)]
struct Constant {
    value: String,
}

impl Algorithm for Constant {
    fn fits(&self, _: &TypeClass) -> bool {
        true
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::AtMost(self.value.chars().count() as u32)
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let class = &target.column.class;
        if !class.takes(&self.value) {
            return Err(format!("`value` does not fit: the column is {}", class.title()));
        }
        Ok(Mask::Values(Arc::new(Constant { value: class.written(&self.value) })))
    }
}

impl ValueMask for Constant {
    fn mask(&self, _: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        out.push_str(&self.value);
        Ok(Outcome::Value)
    }
}

#[derive(Debug)]
struct Sql {
    expression: String,
}

impl Algorithm for Sql {
    fn fits(&self, _: &TypeClass) -> bool {
        true
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Distinct
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn bind(&self, _: &Target<'_>) -> Result<Mask, String> {
        Ok(Mask::Sql(self.expression.clone()))
    }
}

#[derive(Debug)]
struct Keep;

impl Algorithm for Keep {
    fn fits(&self, _: &TypeClass) -> bool {
        true
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Permutation
    }

    fn length(&self) -> Length {
        Length::Same
    }

    fn keeps(&self) -> bool {
        true
    }

    fn bind(&self, _: &Target<'_>) -> Result<Mask, String> {
        Ok(Mask::Values(Arc::new(Keep)))
    }
}

impl ValueMask for Keep {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        out.push_str(value);
        Ok(Outcome::Value)
    }
}
