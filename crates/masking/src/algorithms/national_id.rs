//! `national-id`: another valid number of the same country.
//!
//! - Parameter: `country`, one of those below. Separators stay. A value that has not the form of the country's numbers
//!   is masked as by `character-mapping`.
//! - A permutation of valid numbers; two invalid ones may get the same mask. Texts.
//! - The output tells which rows had the same value and, where the country has several forms, which form. It tells no
//!   birth day, although masks may hold one. A mask may be the number of another person.
//!
//! A number is read as fields, each with the range its country gives it. Fields are permuted together; a result that
//! breaks another rule of the country (a day that its month does not have) is permuted again, until one does not.

use super::checks::luhn;
use super::numbers_of_people::place;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::moment::month_days;
use crate::parameters::{Entry, Wrong};
use crate::permutation::{Digit, Permutation};
use crate::shape::scramble;
use std::fmt::Write;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "national-id",
    tells: "nothing",
    parameters: &["country"],
    read: |parameters| {
        let country = parameters.required("country", "{algorithm: national-id, country: US}")?;
        let schemes: Vec<&Scheme> = SCHEMES.iter().filter(|s| s.country == country).collect();
        if schemes.is_empty() {
            let mut known: Vec<&str> = SCHEMES.iter().map(|scheme| scheme.country).collect();
            known.dedup();
            return Err(Wrong::new(
                format!("`country: {country}` is not known"),
                format!("possible are: {}", known.join(", ")),
            ));
        }
        Ok(Arc::new(NationalId { schemes }))
    },
};

/// A part of a number.
#[derive(Debug)]
enum Field {
    /// So many digits, and their range.
    Number { width: usize, min: u32, max: u32 },
    /// One of these letters.
    Letter(&'static str),
}

use Field::Letter;

const fn number(width: usize, min: u32, max: u32) -> Field {
    Field::Number { width, min, max }
}

/// How a country makes a kind of number.
#[derive(Debug)]
struct Scheme {
    country: &'static str,
    fields: &'static [Field],
    /// How many characters of check follow.
    check_chars: usize,
    /// The check of a number; none if the country gives no such number.
    check: fn(&str) -> Option<String>,
}

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

const SCHEMES: &[Scheme] = &[
    // CPF.
    Scheme {
        country: "BR",
        fields: &[number(9, 0, 999_999_999)],
        check_chars: 2,
        check: |body| {
            let first = weighted_11(body, 10)?;
            Some(format!("{first}{}", weighted_11(&format!("{body}{first}"), 11)?))
        },
    },
    // SIN.
    Scheme {
        country: "CA",
        fields: &[number(1, 1, 9), number(7, 0, 9_999_999)],
        check_chars: 1,
        check: |body| Some(luhn(digits(body)).to_string()),
    },
    // AHV number: an EAN-13 of the country's prefix.
    Scheme {
        country: "CH",
        fields: &[number(3, 756, 756), number(9, 0, 999_999_999)],
        check_chars: 1,
        check: |body| {
            let sum: u32 = digits(body).zip([1, 3].into_iter().cycle()).map(|(d, w)| d * w).sum();
            Some(((10 - sum % 10) % 10).to_string())
        },
    },
    // Tax number, by ISO 7064 MOD 11,10. That one digit occurs twice or thrice is not kept.
    Scheme {
        country: "DE",
        fields: &[number(1, 1, 9), number(9, 0, 999_999_999)],
        check_chars: 1,
        check: |body| {
            let product = digits(body).fold(10, |product, digit| {
                let sum = (digit + product) % 10;
                if sum == 0 { 10 * 2 % 11 } else { sum * 2 % 11 }
            });
            Some(((11 - product) % 10).to_string())
        },
    },
    // DNI.
    Scheme {
        country: "ES",
        fields: &[number(8, 0, 99_999_999)],
        check_chars: 1,
        check: |body| dni_letter(body.parse().ok()?),
    },
    // NIE.
    Scheme {
        country: "ES",
        fields: &[Letter("XYZ"), number(7, 0, 9_999_999)],
        check_chars: 1,
        check: |body| {
            let series = "XYZ".find(body.get(..1)?)? as u32;
            dni_letter(series * 10_000_000 + body.get(1..)?.parse::<u32>().ok()?)
        },
    },
    // NIR, without the two forms of Corsica.
    Scheme {
        country: "FR",
        fields: &[
            number(1, 1, 2),
            number(2, 0, 99),
            number(2, 1, 12),
            number(2, 1, 95),
            number(3, 1, 990),
            number(3, 1, 999),
        ],
        check_chars: 2,
        check: |body| Some(format!("{:02}", 97 - body.parse::<u64>().ok()? % 97)),
    },
    // National insurance number.
    Scheme {
        country: "GB",
        fields: &[
            Letter("ABCEGHJKLMNOPRSTWXYZ"),
            Letter("ABCEGHJKLMNPRSTWXYZ"),
            number(6, 0, 999_999),
            Letter("ABCD"),
        ],
        check_chars: 0,
        check: |body| {
            let unused = ["BG", "GB", "NK", "KN", "TN", "NT", "ZZ"];
            (!unused.contains(&body.get(..2)?)).then(String::new)
        },
    },
    // Codice fiscale, without the forms that namesakes get.
    Scheme {
        country: "IT",
        fields: &[
            Letter(LETTERS),
            Letter(LETTERS),
            Letter(LETTERS),
            Letter(LETTERS),
            Letter(LETTERS),
            Letter(LETTERS),
            number(2, 0, 99),
            Letter("ABCDEHLMPRST"),
            number(2, 1, 71),
            Letter(LETTERS),
            number(3, 1, 999),
        ],
        check_chars: 1,
        check: codice_fiscale,
    },
    // BSN. A number in eleven has no check digit, and is not given.
    Scheme {
        country: "NL",
        fields: &[number(8, 1, 99_999_999)],
        check_chars: 1,
        check: |body| {
            let sum: u32 = digits(body).zip((2..=9).rev()).map(|(d, w)| d * w).sum();
            (sum % 11 < 10).then(|| (sum % 11).to_string())
        },
    },
    // PESEL of the 20th century; the month tells the century.
    Scheme {
        country: "PL",
        fields: &[number(2, 0, 99), number(2, 1, 12), number(2, 1, 31), number(4, 0, 9999)],
        check_chars: 1,
        check: |body| pesel(body, 1900, 0),
    },
    // PESEL of the 21st century.
    Scheme {
        country: "PL",
        fields: &[number(2, 0, 99), number(2, 21, 32), number(2, 1, 31), number(4, 0, 9999)],
        check_chars: 1,
        check: |body| pesel(body, 2000, 20),
    },
    // Personnummer of ten digits.
    Scheme {
        country: "SE",
        fields: &[number(2, 0, 99), number(2, 1, 12), number(2, 1, 31), number(3, 0, 999)],
        check_chars: 1,
        check: |body| is_day(body, 2000, 0).then(|| luhn(digits(body)).to_string()),
    },
    // SSN.
    Scheme {
        country: "US",
        fields: &[number(3, 1, 899), number(2, 1, 99), number(4, 1, 9999)],
        check_chars: 0,
        check: |body| (!body.starts_with("666")).then(String::new),
    },
];

fn digits(body: &str) -> impl DoubleEndedIterator<Item = u32> + '_ {
    body.bytes().map(|b| u32::from(b.wrapping_sub(b'0')))
}

/// Brazil's: weights down to 2, modulo 11.
fn weighted_11(body: &str, highest: u32) -> Option<u32> {
    let sum: u32 = digits(body).zip((2..=highest).rev()).map(|(d, w)| d * w).sum();
    Some(if sum % 11 < 2 { 0 } else { 11 - sum % 11 })
}

fn dni_letter(number: u32) -> Option<String> {
    let at = (number % 23) as usize;
    "TRWAGMYFPDXBNJZSQVHLCKE".get(at..=at).map(str::to_owned)
}

fn pesel(body: &str, century: i64, month_offset: i64) -> Option<String> {
    let weights = [1, 3, 7, 9].into_iter().cycle();
    let sum: u32 = digits(body).zip(weights).map(|(d, w)| d * w).sum();
    is_day(body, century, month_offset).then(|| ((10 - sum % 10) % 10).to_string())
}

/// Whether a number begins with a day of the calendar: two digits each of year, month and day.
fn is_day(body: &str, century: i64, month_offset: i64) -> bool {
    let part = |range| body.get(range).and_then(|text: &str| text.parse::<i64>().ok());
    match (part(0..2), part(2..4), part(4..6)) {
        (Some(year), Some(month), Some(day)) => {
            day <= month_days(century + year, month - month_offset)
        }
        _ => false,
    }
}

/// The letter that checks a codice fiscale: the values of its characters, other ones at odd places, modulo 26.
fn codice_fiscale(body: &str) -> Option<String> {
    const ODD: [u32; 26] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24,
        23,
    ];
    let mut sum = 0;
    for (at, b) in body.bytes().enumerate() {
        let value = match b {
            b'0'..=b'9' => usize::from(b - b'0'),
            b'A'..=b'Z' => usize::from(b - b'A'),
            _ => return None,
        };
        sum += if at % 2 == 0 { ODD[value] } else { value as u32 };
    }
    char::from_u32(u32::from('A') + sum % 26).map(String::from)
}

impl Scheme {
    /// The fields of a number in capitals without separators, and its check.
    fn read<'a>(&self, text: &'a str) -> Option<(Vec<Digit>, &'a str)> {
        let mut rest = text;
        let mut values = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            let (width, digit) = match field {
                Field::Number { width, min, max } => {
                    let part = rest.get(..*width)?;
                    let number = part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse());
                    let value = number?.ok().filter(|value| (*min..=*max).contains(value))?;
                    (*width, Digit { value: value - min, base: max - min + 1 })
                }
                Letter(letters) => {
                    let value = letters.find(rest.get(..1)?)? as u32;
                    (1, Digit { value, base: letters.len() as u32 })
                }
            };
            values.push(digit);
            rest = &rest[width..];
        }
        (rest.len() == self.check_chars).then_some((values, rest))
    }

    fn write(&self, values: &[Digit]) -> String {
        let mut body = String::new();
        for (field, digit) in self.fields.iter().zip(values) {
            match field {
                Field::Number { width, min, .. } => {
                    // Writing into a text cannot fail.
                    let _ = write!(body, "{:0width$}", min + digit.value);
                }
                Letter(letters) => {
                    let at = digit.value as usize;
                    body.push_str(letters.get(at..=at).unwrap_or("A"));
                }
            }
        }
        body
    }

    /// The mask of a number, if it is of this kind.
    fn mask(&self, permutation: &Permutation, tweak: u64, text: &str) -> Option<String> {
        /// One try in eleven fails at most.
        const TRIES: u32 = 200;
        let (mut values, check) = self.read(text)?;
        // Numbers with the right check have a permutation of their own, and so has each wrong check.
        let right = (self.check)(text.get(..text.len() - check.len())?);
        let error = match right.as_deref() == Some(check) {
            true => 0,
            false => check.bytes().fold(1, |sum, b| sum * 256 + u64::from(b)),
        };
        for _ in 0..TRIES {
            permutation.permute(tweak << 32 | error, &mut values);
            let body = self.write(&values);
            if let Some(check) = (self.check)(&body) {
                return Some(body + &check);
            }
        }
        None
    }
}

#[derive(Debug)]
struct NationalId {
    schemes: Vec<&'static Scheme>,
}

impl Algorithm for NationalId {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Text
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Permutation
    }

    fn length(&self) -> Length {
        Length::Same
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let permutation = Permutation::new(target.key.subkey("national-id"));
        Ok(Mask::Values(Arc::new(IdMask { schemes: self.schemes.clone(), permutation })))
    }
}

struct IdMask {
    schemes: Vec<&'static Scheme>,
    permutation: Permutation,
}

impl ValueMask for IdMask {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let separates = |c: &char| matches!(c, ' ' | '-' | '.' | '/' | '+');
        let bare: String = value.chars().filter(|c| !separates(c)).collect();
        let bare = bare.to_ascii_uppercase();
        let masks = self
            .schemes
            .iter()
            .enumerate()
            .find_map(|(number, scheme)| scheme.mask(&self.permutation, number as u64, &bare));
        match masks {
            Some(mask) => place(value, mask.chars(), |c| !separates(c), out),
            None => scramble(&self.permutation, u64::MAX, value, out),
        }
        Ok(Outcome::Value)
    }
}

/// Whether a text is a valid number of a country.
#[cfg(test)]
pub(super) fn is_valid(country: &str, text: &str) -> bool {
    let bare: String = text.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    SCHEMES.iter().filter(|scheme| scheme.country == country).any(|scheme| {
        let read = scheme.read(&bare);
        read.is_some_and(|(_, check)| {
            (scheme.check)(&bare[..bare.len() - check.len()]).as_deref() == Some(check)
        })
    })
}
