//! `fpe`: format-preserving encryption, FF1 of NIST SP 800-38G with AES-256.
//!
//! - Parameters: `alphabet: digits` (default) or `alphanumeric` (digits and ASCII letters, 62 characters); `tweak`, a text
//!   that makes other masks of the same values. Other characters, such as separators, stay; letters beyond the alphabet
//!   are refused. The alphabet's characters must be 6 digits or 4 letters at least (a million possible values, as
//!   revision 1 of the standard demands) and 1,000 at most. Integers are encrypted within their type.
//! - A permutation. Texts and integers. Reversible by whoever has the key.
//! - The output tells length, separators and which rows had the same value.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::Entry;
use aes::Aes256;
use fpe::ff1::{FF1, FlexibleNumeralString};
use std::sync::Arc;

/// The most characters that are encrypted: the time grows with their square.
const CHARS_MAX: usize = 1000;

pub(super) const ENTRY: Entry = Entry {
    name: "fpe",
    tells: "form and length",
    parameters: &["alphabet", "tweak"],
    read: |parameters| {
        let alphabet = parameters.choice("alphabet", &["digits", "alphanumeric"])?;
        let radix = if alphabet.as_deref() == Some("alphanumeric") { 62 } else { 10 };
        let tweak = parameters.text("tweak")?.unwrap_or_default();
        Ok(Arc::new(Fpe { radix, tweak }))
    },
};

#[derive(Debug, Clone)]
struct Fpe {
    radix: u16,
    tweak: String,
}

impl Algorithm for Fpe {
    fn fits(&self, class: &TypeClass) -> bool {
        match class {
            TypeClass::Text => true,
            TypeClass::Integer { .. } => self.radix == 10,
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
        let column = target.column;
        if column.unique && column.any_case() && self.radix > 10 {
            return Err(
                "two masks may differ in case only, which the column does not tell apart: \
                        take character-mapping"
                    .into(),
            );
        }
        let key = target.key.subkey("fpe");
        let cipher = FF1::new(key.bytes(), u32::from(self.radix))
            .map_err(|_| "FF1 cannot be set up".to_owned())?;
        let integer = column.class.integer_max();
        Ok(Mask::Values(Arc::new(FpeMask { rule: self.clone(), integer, cipher })))
    }
}

struct FpeMask {
    rule: Fpe,
    /// The largest number of the column's type.
    integer: Option<u64>,
    cipher: FF1<Aes256>,
}

const TOO_SHORT: Unmaskable =
    Unmaskable { why: "it is too short for FF1, which needs 6 digits or 4 letters" };

impl FpeMask {
    fn encrypt(&self, numerals: Vec<u16>) -> Result<Vec<u16>, Unmaskable> {
        if numerals.len() > CHARS_MAX {
            return Err(Unmaskable { why: "it is longer than 1,000 characters" });
        }
        let numerals = FlexibleNumeralString::from(numerals);
        let encrypted = self.cipher.encrypt(self.rule.tweak.as_bytes(), &numerals);
        encrypted.map(Vec::from).map_err(|_| TOO_SHORT)
    }

    /// Encrypts as a number of as many digits as the type's largest has, again and again until it fits the type.
    fn integer(&self, value: &str, max: u64, out: &mut String) -> Result<(), Unmaskable> {
        /// On average one try in 31 fits (2 bytes), which fails so often with less than one chance in 10^14.
        const TRIES: u32 = 1000;
        let number = value.trim_start_matches('-');
        let negative = number.len() < value.len();
        let width = max.to_string().len().max(6);
        let mut digits: Vec<u16> =
            format!("{number:0>width$}").bytes().map(|b| u16::from(b.wrapping_sub(b'0'))).collect();
        let size = number.parse::<u64>().is_ok_and(|size| size <= max + u64::from(negative));
        if digits.len() != width || !size {
            return Err(Unmaskable { why: "it is not an integer of its type" });
        }
        for _ in 0..TRIES {
            digits = self.encrypt(digits)?;
            let number = digits.iter().fold(0_u128, |n, digit| n * 10 + u128::from(*digit));
            // There is no negative 0, but one more number below it.
            let sizes = u128::from(negative)..=u128::from(max) + u128::from(negative);
            if sizes.contains(&number) {
                if negative {
                    out.push('-');
                }
                out.push_str(&number.to_string());
                return Ok(());
            }
        }
        Err(Unmaskable { why: "no number of its type was found for it" })
    }

    fn numeral(&self, c: char) -> Result<Option<u16>, Unmaskable> {
        let numeral = match c {
            '0'..='9' => c as u16 - u16::from(b'0'),
            'A'..='Z' if self.rule.radix == 62 => c as u16 - u16::from(b'A') + 10,
            'a'..='z' if self.rule.radix == 62 => c as u16 - u16::from(b'a') + 36,
            _ if c.is_alphanumeric() => {
                return Err(Unmaskable { why: "it has a letter that is not in the alphabet" });
            }
            _ => return Ok(None),
        };
        Ok(Some(numeral))
    }
}

fn character(numeral: u16) -> char {
    let b = numeral as u8;
    char::from(match numeral {
        0..10 => b + b'0',
        10..36 => b - 10 + b'A',
        _ => b - 36 + b'a',
    })
}

impl ValueMask for FpeMask {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        if let Some(max) = self.integer {
            self.integer(value, max, out)?;
            return Ok(Outcome::Value);
        }
        let mut numerals = Vec::new();
        for c in value.chars() {
            numerals.extend(self.numeral(c)?);
        }
        if numerals.is_empty() {
            return Err(TOO_SHORT);
        }
        let mut encrypted = self.encrypt(numerals)?.into_iter();
        for c in value.chars() {
            out.push(match self.numeral(c)? {
                Some(_) => encrypted.next().map_or('0', character),
                None => c,
            });
        }
        Ok(Outcome::Value)
    }
}

#[cfg(test)]
mod tests;
