//! `phone`, `payment-card`, `iban`: numbers by which a person can be reached or charged.
//!
//! - `phone` keeps the form; a country code after `+` or `00` and leading zeros stay.
//! - `payment-card` keeps length, separators and the first digit (the network); `keep: bin` keeps the first six. The
//!   mask is valid by Luhn's formula.
//! - `iban` keeps country and form; its check digits are right. Check digits inside the account number, which some
//!   countries have, are not.
//! - Permutations: of telephone numbers, and of valid cards and IBANs; two invalid ones may get the same mask. Texts;
//!   cards and telephone numbers also as integers of 8 bytes. What has not the form of such a number is masked as by
//!   `character-mapping`.
//! - The output tells which rows had the same value, and what was kept: country, network, bank of a card with `keep:
//!   bin`. A mask may be the number of another person.

use super::checks;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::Entry;
use crate::permutation::{Digit, Permutation};
use crate::shape::{Alphabet, Shape, scramble};
use std::sync::Arc;

pub(super) const PHONE: Entry = Entry {
    name: "phone",
    tells: "country code, form",
    parameters: &[],
    read: |_| Ok(Arc::new(Number { kind: Kind::Phone, kept: 0 })),
};

pub(super) const CARD: Entry = Entry {
    name: "payment-card",
    tells: "the first digit; six with `keep: bin`",
    parameters: &["keep"],
    read: |parameters| {
        let kept = if parameters.choice("keep", &["bin"])?.is_some() { 6 } else { 1 };
        Ok(Arc::new(Number { kind: Kind::Card, kept }))
    },
};

pub(super) const IBAN: Entry = Entry {
    name: "iban",
    tells: "country",
    parameters: &[],
    read: |_| Ok(Arc::new(Number { kind: Kind::Iban, kept: 4 })),
};

/// Beyond the tweaks that numbers of the right form are masked with.
const OTHER_FORM: u64 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Phone,
    Card,
    Iban,
}

#[derive(Debug, Clone, Copy)]
struct Number {
    kind: Kind,
    /// How many digits (of an IBAN: characters) at the beginning stay.
    kept: usize,
}

impl Algorithm for Number {
    fn fits(&self, class: &TypeClass) -> bool {
        match class {
            TypeClass::Text => true,
            // Masks of up to 18 digits fit; a card of 19 digits may not, and is refused then.
            TypeClass::Integer { bytes: 8 } => self.kind != Kind::Iban,
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
        let purpose = match self.kind {
            Kind::Phone => "phone",
            Kind::Card => "payment-card",
            Kind::Iban => "iban",
        };
        let permutation = Permutation::new(target.key.subkey(purpose));
        let integer = target.column.class.is_number();
        Ok(Mask::Values(Arc::new(NumberMask { rule: *self, integer, permutation })))
    }
}

struct NumberMask {
    rule: Number,
    integer: bool,
    permutation: Permutation,
}

impl ValueMask for NumberMask {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let start = out.len();
        let masked = match self.rule.kind {
            Kind::Phone => self.phone(value, out),
            Kind::Card => self.card(value, out),
            Kind::Iban => self.iban(value, out),
        };
        if !masked && self.integer {
            let mut shape = Shape::of(value, Alphabet::Number, |_, _| false);
            self.permutation.permute(OTHER_FORM, &mut shape.digits);
            shape.write(out);
        } else if !masked {
            self.other_form(value, out);
        }
        match self.integer && out[start..].parse::<i64>().is_err() {
            true => Err(Unmaskable { why: "its mask is too large for the column" }),
            false => Ok(Outcome::Value),
        }
    }
}

impl NumberMask {
    /// Of a value that is no number of the kind. What gets the form of a telephone number is masked again until it has
    /// not, as it could be the mask of one: so no two values get one mask. This ends, with the value itself at the
    /// latest, as a permutation comes round.
    fn other_form(&self, value: &str, out: &mut String) {
        let start = out.len();
        scramble(&self.permutation, OTHER_FORM, value, out);
        while self.rule.kind == Kind::Phone && is_phone(&out[start..]) {
            let again = out.split_off(start);
            scramble(&self.permutation, OTHER_FORM, &again, out);
        }
    }

    /// False if the value is no telephone number.
    fn phone(&self, value: &str, out: &mut String) -> bool {
        if !is_phone(value) {
            return false;
        }
        let kept = country_code_end(value);
        let mut shape = Shape::of(value, Alphabet::Number, |number, _| number < kept);
        self.permutation.permute(0, &mut shape.digits);
        shape.write(out);
        true
    }

    /// False if the value is no card's number.
    fn card(&self, value: &str, out: &mut String) -> bool {
        let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(10)).collect();
        let letters = value.chars().any(char::is_alphabetic);
        let Some((check, body)) = digits.split_last().filter(|_| !letters) else { return false };
        if !(12..=19).contains(&digits.len()) {
            return false;
        }
        // Valid numbers have a permutation of their own, and so has each error of the last digit.
        let error = (check + 10 - checks::luhn(body.iter().copied())) % 10;
        let (kept, rest) = body.split_at(self.rule.kept);
        let mut rest: Vec<_> = rest.iter().map(|value| Digit { value: *value, base: 10 }).collect();
        self.permutation.permute(u64::from(error), &mut rest);
        let body: Vec<u32> =
            kept.iter().copied().chain(rest.iter().map(|digit| digit.value)).collect();
        let check = checks::luhn(body.iter().copied());
        let masks = body.into_iter().chain([check]).filter_map(|digit| char::from_digit(digit, 10));
        place(value, masks, char::is_ascii_digit, out);
        true
    }

    /// False if the value is no IBAN.
    fn iban(&self, value: &str, out: &mut String) -> bool {
        let Some(parts) = checks::iban_parts(value) else { return false };
        let remainder = checks::remainder_97(parts.iter().copied());
        let (account, country) = parts.split_at(parts.len() - self.rule.kept);
        let account: String = account.iter().collect();
        let mut masked = String::new();
        scramble(&self.permutation, u64::from(remainder), &account, &mut masked);
        let country = &country[..2];
        let numbered = masked.chars().chain(country.iter().copied()).chain(['0', '0']);
        let check = format!("{:02}", 98 - checks::remainder_97(numbered));
        let masks = country.iter().copied().chain(check.chars()).chain(masked.chars());
        place(value, masks, |c| *c != ' ', out);
        true
    }
}

/// Appends `value` with those characters replaced, in turn, that are to be.
pub(super) fn place(
    value: &str,
    mut masks: impl Iterator<Item = char>,
    replaces: impl Fn(&char) -> bool,
    out: &mut String,
) {
    out.extend(value.chars().map(|c| if replaces(&c) { masks.next().unwrap_or('0') } else { c }));
}

/// Whether a value has no other words than those that stand in telephone numbers, which stay.
fn is_phone(value: &str) -> bool {
    let mut words = value.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    words.all(|word| matches!(word.to_ascii_lowercase().as_str(), "x" | "ext" | "tel"))
}

/// Country codes of two digits, by ITU-T E.164; `1` and `7` have one, all others three.
const CODES_OF_TWO: [u32; 41] = [
    20, 27, 30, 31, 32, 33, 34, 36, 39, 40, 41, 43, 44, 45, 46, 47, 48, 49, 51, 52, 53, 54, 55, 56,
    57, 58, 60, 61, 62, 63, 64, 65, 66, 81, 82, 84, 86, 90, 91, 92, 98,
];

/// How many characters at the beginning are a country code.
fn country_code_end(value: &str) -> usize {
    let start = match value {
        value if value.starts_with('+') => 1,
        value if value.starts_with("00") => 2,
        _ => return 0,
    };
    let digits: Vec<u32> = value[start..].chars().map_while(|c| c.to_digit(10)).take(3).collect();
    let length = match digits[..] {
        [1 | 7, ..] => 1,
        [first, second, ..] if CODES_OF_TWO.contains(&(first * 10 + second)) => 2,
        _ => 3,
    };
    start + length.min(digits.len())
}
