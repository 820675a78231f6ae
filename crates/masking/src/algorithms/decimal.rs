//! Decimal numbers, exact.

use std::cmp::Ordering;
use std::fmt::Write;

/// The most digits that are computed with.
const DIGITS_MAX: usize = 30;

/// `units` divided by ten to the power of `scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    pub units: i128,
    pub scale: u32,
}

impl Decimal {
    /// Reads a number without exponent of up to 30 digits.
    pub fn parse(text: &str) -> Option<Decimal> {
        let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = bare.split_once('.').unwrap_or((bare, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        let count = digits().count();
        if count == 0 || count > DIGITS_MAX || !digits().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let units = digits().fold(0, |units, b| units * 10 + i128::from(b - b'0'));
        let units = if text.starts_with('-') { -units } else { units };
        Some(Decimal { units, scale: fraction.len() as u32 })
    }

    /// The same number with this many digits after the point, rounded towards zero; none if it gets too large.
    pub fn rescaled(self, scale: u32) -> Option<i128> {
        if scale >= self.scale {
            10_i128.checked_pow(scale - self.scale)?.checked_mul(self.units)
        } else {
            Some(self.units / 10_i128.checked_pow(self.scale - scale)?)
        }
    }

    /// How it compares; none if the scales are too far apart.
    pub fn compare(self, other: Decimal) -> Option<Ordering> {
        let scale = self.scale.max(other.scale);
        Some(self.rescaled(scale)?.cmp(&other.rescaled(scale)?))
    }

    /// Appends its text form.
    pub fn write(self, out: &mut String) {
        let sign = if self.units < 0 { "-" } else { "" };
        let units = self.units.unsigned_abs();
        // Writing into a text cannot fail.
        let _ = match 10_u128.checked_pow(self.scale) {
            Some(one) if self.scale > 0 => {
                let width = self.scale as usize;
                write!(out, "{sign}{}.{:0width$}", units / one, units % one)
            }
            _ => write!(out, "{sign}{units}"),
        };
    }
}
