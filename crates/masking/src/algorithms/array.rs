//! `array`: a rule for each element of an array.
//!
//! - Parameter: `rule`, which must fit the type of the elements.
//! - As unique as its rule. Arrays of texts, numbers, dates, timestamps, UUIDs, booleans, JSON, XML and bytes, with any
//!   number of dimensions. NULL stays NULL, and an empty element stays empty.
//! - The output tells how many elements there are, and of each what its rule tells.

use super::nested;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::{ColumnFacts, TypeClass};
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::{Entry, missing};
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "array",
    tells: "how many elements there are, and what its rule tells",
    parameters: &["rule"],
    read: |parameters| {
        let rule = parameters.take("rule");
        let rule = rule.ok_or_else(|| missing("rule", "{algorithm: array, rule: email}"))?;
        Ok(Arc::new(Array { rule: parameters.rule(rule)? }))
    },
};

#[derive(Debug)]
struct Array {
    rule: Arc<dyn Algorithm>,
}

impl Algorithm for Array {
    fn fits(&self, class: &TypeClass) -> bool {
        // What its elements are, its type's name tells.
        *class == TypeClass::Other
    }

    fn uniqueness(&self) -> Uniqueness {
        self.rule.uniqueness()
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn per(&self) -> Option<&str> {
        self.rule.per()
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let name = &target.column.type_name;
        let Some(element) = name.strip_suffix("[]") else {
            return Err(format!("its algorithm fits arrays; the column is of type {name}"));
        };
        let class = class_of(element)
            .ok_or_else(|| format!("elements of type {element} can only be masked by `sql`"))?;
        if !self.rule.fits(&class) {
            return Err(format!("its rule does not fit elements of type {element}"));
        }
        let chars_max = limit_of(element);
        if let (Length::AtMost(chars), Some(max)) = (self.rule.length(), chars_max)
            && chars > max
        {
            return Err(format!("masks have up to {chars} characters, elements take {max}"));
        }
        let column = ColumnFacts {
            class,
            type_name: element.to_owned(),
            chars_max,
            nullable: true,
            ..target.column.clone()
        };
        let mask = nested::bind(self.rule.as_ref(), &Target { column: &column, ..*target })?;
        Ok(Mask::Values(Arc::new(ArrayMask { mask, chars_max })))
    }
}

/// The type of elements, by its name.
fn class_of(element: &str) -> Option<TypeClass> {
    let bare = element.split('(').next().unwrap_or_default().trim();
    let number = || {
        let digits = element.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let mut digits = digits.into_iter().flat_map(|digits| digits.split(','));
        let precision = digits.next().and_then(|digits| digits.trim().parse().ok());
        TypeClass::Number {
            precision,
            scale: digits.next().and_then(|one| one.trim().parse().ok()),
        }
    };
    Some(match bare {
        "text" | "character varying" | "character" | "citext" | "name" => TypeClass::Text,
        "smallint" => TypeClass::Integer { bytes: 2 },
        "integer" => TypeClass::Integer { bytes: 4 },
        "bigint" => TypeClass::Integer { bytes: 8 },
        "numeric" => number(),
        "real" | "double precision" => TypeClass::Float,
        "boolean" => TypeClass::Boolean,
        "date" => TypeClass::Date,
        "timestamp without time zone" => TypeClass::Timestamp,
        "timestamp with time zone" => TypeClass::TimestampTz,
        "uuid" => TypeClass::Uuid,
        "json" | "jsonb" => TypeClass::Json,
        "xml" => TypeClass::Xml,
        "bytea" => TypeClass::Bytes,
        _ => return None,
    })
}

/// The most characters that an element takes.
fn limit_of(element: &str) -> Option<u32> {
    let (bare, rest) = element.split_once('(')?;
    bare.starts_with("character").then(|| rest.strip_suffix(')')?.parse().ok()).flatten()
}

struct ArrayMask {
    mask: Arc<dyn ValueMask>,
    chars_max: Option<u32>,
}

impl ValueMask for ArrayMask {
    /// Copies braces, commas and bounds (`[0:1]={a,b}`) as they are, and masks what is between them.
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        const NO_ARRAY: Unmaskable = Unmaskable { why: "it is no array" };
        let begin = value.find('{').ok_or(NO_ARRAY)?;
        let (bounds, mut rest) = value.split_at(begin);
        out.push_str(bounds);
        let (mut element, mut masked) = (String::new(), String::new());
        while let Some(first) = rest.chars().next() {
            match first {
                '{' | '}' | ',' => {
                    out.push(first);
                    rest = &rest[1..];
                }
                '"' => {
                    rest = quoted(&rest[1..], &mut element).ok_or(NO_ARRAY)?;
                    self.element(&element, row, &mut masked, out)?;
                }
                _ => {
                    let end = rest.find(['{', '}', ',', '"']).ok_or(NO_ARRAY)?;
                    let (bare, after) = rest.split_at(end);
                    match bare.eq_ignore_ascii_case("null") {
                        true => out.push_str("NULL"),
                        false => self.element(bare, row, &mut masked, out)?,
                    }
                    rest = after;
                }
            }
        }
        Ok(Outcome::Value)
    }
}

impl ArrayMask {
    fn element(
        &self,
        element: &str,
        row: &Row<'_>,
        masked: &mut String,
        out: &mut String,
    ) -> Result<(), Unmaskable> {
        masked.clear();
        if !element.is_empty() && self.mask.mask(element, row, masked)? == Outcome::Null {
            out.push_str("NULL");
            return Ok(());
        }
        if self.chars_max.is_some_and(|max| masked.chars().count() > max as usize) {
            return Err(Unmaskable {
                why: "the mask of an element is longer than elements may be",
            });
        }
        out.push('"');
        for c in masked.chars() {
            if matches!(c, '"' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
        Ok(())
    }
}

/// Reads what comes after a quote up to the next into `element`; what follows.
fn quoted<'a>(text: &'a str, element: &mut String) -> Option<&'a str> {
    element.clear();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return text.get(at + 1..),
            '\\' => element.push(chars.next()?.1),
            c => element.push(c),
        }
    }
    None
}
