//! `first-name`, `last-name`, `full-name`: other people's names.
//!
//! - A name from a list of this crate, picked by the hash of the name in small letters. A full name is masked by its
//!   parts, so it agrees with the same person's first and last name in columns of their own; `Last, First` keeps that
//!   order. Parameters: `keep: gender` picks a woman's name for a woman's where the name is known (others get any);
//!   `keep: case` gives `SMITH` for `JONES`; `keep: [gender, case]` both.
//! - Lossy. Texts; a mask is cut to the column's length.
//! - The output tells which rows had the same first or last name, and so the frequency of common ones; with `keep` also
//!   the gender or the case.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::algorithms::dictionary::{FAMILIES, MEN, MEN_KNOWN, WOMEN, WOMEN_KNOWN};
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::{Entry, Parameters, Wrong};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

pub(super) const FIRST: Entry = Entry {
    name: "first-name",
    tells: "gender or case, if kept",
    parameters: &["keep"],
    read: |parameters| read(parameters, Part::First, &["gender", "case"]),
};

pub(super) const LAST: Entry = Entry {
    name: "last-name",
    tells: "case, if kept",
    parameters: &["keep"],
    read: |parameters| read(parameters, Part::Last, &["case"]),
};

pub(super) const FULL: Entry = Entry {
    name: "full-name",
    tells: "gender or case, if kept",
    parameters: &["keep"],
    read: |parameters| read(parameters, Part::Full, &["gender", "case"]),
};

fn read(
    parameters: &mut Parameters,
    part: Part,
    possible: &[&str],
) -> Result<Arc<dyn Algorithm>, Wrong> {
    let keep = parameters.choices("keep", possible)?;
    let keeps = |what: &str| keep.iter().any(|kept| kept == what);
    Ok(Arc::new(Names { part, keeps_gender: keeps("gender"), keeps_case: keeps("case") }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Last,
    Full,
}

#[derive(Debug, Clone, Copy)]
struct Names {
    part: Part,
    keeps_gender: bool,
    keeps_case: bool,
}

impl Algorithm for Names {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Text
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::Cut
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        Ok(Mask::Values(Arc::new(NameMask {
            rule: *self,
            first: target.key.subkey("first-name"),
            last: target.key.subkey("last-name"),
        })))
    }
}

struct NameMask {
    rule: Names,
    first: Subkey,
    last: Subkey,
}

impl NameMask {
    fn first(&self, value: &str, out: &mut String) {
        let plain = value.trim().to_lowercase();
        let mut draw = self.first.draw(plain.as_bytes());
        let gender = if self.rule.keeps_gender { gender(&plain) } else { None };
        let woman = match gender {
            Some(Gender::Woman) => true,
            Some(Gender::Man) => false,
            None => draw.below(2) == 0,
        };
        self.push(value, draw.pick(if woman { WOMEN } else { MEN }), out);
    }

    fn last(&self, value: &str, out: &mut String) {
        let plain = value.trim().to_lowercase();
        self.push(value, self.last.draw(plain.as_bytes()).pick(FAMILIES), out);
    }

    fn full(&self, value: &str, out: &mut String) {
        if let Some((last, first)) = value.split_once(',') {
            self.last(last, out);
            out.push_str(", ");
            self.first(first, out);
        } else if let Some((first, last)) = value.trim().rsplit_once(char::is_whitespace) {
            self.first(first, out);
            out.push(' ');
            self.last(last, out);
        } else {
            self.last(value, out);
        }
    }

    /// Appends a name in the case of a value.
    fn push(&self, value: &str, name: &str, out: &mut String) {
        let upper = value.chars().any(char::is_uppercase);
        let lower = value.chars().any(char::is_lowercase);
        match (self.rule.keeps_case, upper, lower) {
            (true, true, false) => out.push_str(&name.to_uppercase()),
            (true, false, true) => out.push_str(&name.to_lowercase()),
            _ => out.push_str(name),
        }
    }
}

impl ValueMask for NameMask {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        match self.rule.part {
            Part::First => self.first(value, out),
            Part::Last => self.last(value, out),
            Part::Full => self.full(value, out),
        }
        Ok(Outcome::Value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gender {
    Woman,
    Man,
}

/// Names in small letters; those of both women and men are not in it.
static GENDERS: LazyLock<HashMap<String, Gender>> = LazyLock::new(|| {
    let women = WOMEN.iter().chain(WOMEN_KNOWN).map(|name| name.to_lowercase());
    let men = MEN.iter().chain(MEN_KNOWN).map(|name| name.to_lowercase());
    let women: HashMap<_, _> = women.map(|name| (name, Gender::Woman)).collect();
    let mut all = women.clone();
    for name in men {
        match women.contains_key(&name) {
            true => all.remove(&name),
            false => all.insert(name, Gender::Man),
        };
    }
    all
});

/// Whether the first name in small letters that a text begins with, maybe after a form of address, is a woman's.
fn gender(names: &str) -> Option<Gender> {
    let mut words = names.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.find_map(|word| match word {
        "mrs" | "ms" | "miss" | "frau" | "madame" | "mme" | "señora" | "sra" | "signora" => {
            Some(Gender::Woman)
        }
        "mr" | "herr" | "monsieur" | "señor" | "sr" | "signor" => Some(Gender::Man),
        word => GENDERS.get(word).copied(),
    })
}

/// Whether a text in small letters is a first name of the lists, that of both women and men not counted.
pub(crate) fn is_first_name(text: &str) -> bool {
    GENDERS.contains_key(text)
}

/// Whether a text in small letters is a last name of the lists.
pub(crate) fn is_last_name(text: &str) -> bool {
    static LAST: LazyLock<HashSet<String>> =
        LazyLock::new(|| FAMILIES.iter().map(|name| name.to_lowercase()).collect());
    LAST.contains(text)
}
