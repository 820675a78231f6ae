//! `address`, `city`, `postcode`: other places.
//!
//! - `address` gives a street and a number, the number first where the value begins with one. `city` and `postcode`
//!   give a true city and one of its postcodes; with the same `per: COLUMN` they agree with each other, and all rows with
//!   the same value in that column get the same place. Without `per`, `postcode` keeps the value's format instead:
//!   digits become digits, letters letters; `keep-first: 2` leaves its first characters, and so the region.
//!   `country: DE` (or a list) picks places of these countries.
//! - Lossy, except `postcode` without `per`, which is a permutation. Texts; addresses and cities are cut to the
//!   column's length.
//! - The output tells which rows had the same address or city, and the frequency of common ones; `keep-first` tells the
//!   region.

use super::character_mapping::CharacterMapping;
use super::per;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::algorithms::dictionary::{PLACES, Place, STREETS_NUMBER_FIRST, STREETS_NUMBER_LAST};
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::{Entry, Parameters, Wrong};
use std::fmt::Write;
use std::sync::Arc;

pub(super) const ADDRESS: Entry = Entry {
    name: "address",
    tells: "nothing",
    parameters: &["per"],
    read: |parameters| read(parameters, Part::Address),
};

pub(super) const CITY: Entry = Entry {
    name: "city",
    tells: "nothing",
    parameters: &["per", "country"],
    read: |parameters| read(parameters, Part::City),
};

pub(super) const POSTCODE: Entry = Entry {
    name: "postcode",
    tells: "form, the first characters if kept; nothing with `per`",
    parameters: &["per", "country", "keep-first"],
    read: |parameters| {
        let first = parameters.count("keep-first", 0..=20)?;
        let rule = read_rule(parameters, Part::Postcode)?;
        match (rule.per.is_some(), first) {
            (true, None) => Ok(Arc::new(rule)),
            (true, Some(_)) => {
                let hint = "leave one of them out";
                Err(Wrong::new("`per` and `keep-first` exclude each other", hint))
            }
            (false, _) if rule.countries.is_some() => {
                Err(Wrong::new("`country` needs `per`", "add `per: COLUMN`, or leave it out"))
            }
            (false, first) => {
                Ok(Arc::new(CharacterMapping { first: first.unwrap_or(0) as usize, last: 0 }))
            }
        }
    },
};

fn read(parameters: &mut Parameters, part: Part) -> Result<Arc<dyn Algorithm>, Wrong> {
    Ok(Arc::new(read_rule(parameters, part)?))
}

fn read_rule(parameters: &mut Parameters, part: Part) -> Result<Places, Wrong> {
    let mut known: Vec<&str> = PLACES.iter().map(|place| place.country).collect();
    known.dedup();
    let countries = parameters.choices("country", &known)?;
    let countries = (!countries.is_empty()).then_some(countries);
    Ok(Places { part, per: parameters.text("per")?, countries })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Address,
    City,
    Postcode,
}

#[derive(Debug)]
struct Places {
    part: Part,
    per: Option<String>,
    countries: Option<Vec<String>>,
}

impl Algorithm for Places {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Text
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        match self.part {
            Part::Postcode => Length::Open,
            _ => Length::Cut,
        }
    }

    fn per(&self) -> Option<&str> {
        self.per.as_deref()
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let wanted = |place: &&Place| match &self.countries {
            Some(countries) => countries.iter().any(|country| country == place.country),
            None => true,
        };
        let purpose = if self.part == Part::Address { "address" } else { "place" };
        Ok(Mask::Values(Arc::new(PlaceMask {
            part: self.part,
            per: target.per(self.per())?,
            places: PLACES.iter().filter(wanted).collect(),
            key: target.key.subkey(purpose),
        })))
    }
}

struct PlaceMask {
    part: Part,
    per: Option<usize>,
    places: Vec<&'static Place>,
    key: Subkey,
}

impl ValueMask for PlaceMask {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let mut draw = self.key.draw(per::source(self.per, value, row).as_bytes());
        match self.part {
            Part::City => out.push_str(draw.pick(&self.places).city),
            Part::Postcode => out.push_str(draw.pick(&self.places).postcode),
            Part::Address => {
                let number = 1 + draw.below(120);
                // Writing into a text cannot fail.
                let _ = match value.starts_with(|c: char| c.is_ascii_digit()) {
                    true => write!(out, "{number} {}", draw.pick(STREETS_NUMBER_FIRST)),
                    false => write!(out, "{} {number}", draw.pick(STREETS_NUMBER_LAST)),
                };
            }
        }
        Ok(Outcome::Value)
    }
}
