//! `date-shift`: another day, not far away.
//!
//! - Parameters: `min` and `max` of the shift (`-30d`, `12h`; by default a year both ways); `per: COLUMN` shifts all
//!   dates of rows with the same value in that column alike, so that intervals stay; `except: [9999-12-31]` lists values
//!   that stay. The shift is never 0. Whole days unless `min` or `max` says otherwise; the time of day stays then.
//! - Lossy. Dates and timestamps; in JSON also texts. Infinity stays.
//! - The output tells the date to within the range of the shift. With `per`, it tells intervals exactly; whoever knows
//!   one true date of an entity knows all of them. Without it, equal dates stay equal.

use super::per;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::moment::{self, DAY_S, Parsed};
use crate::parameters::{Entry, Parameters, Wrong};
use std::sync::Arc;

/// The widest shift, in seconds: 1,000 years.
const SHIFT_S_MAX: i64 = 1000 * 366 * DAY_S;

pub(super) const ENTRY: Entry = Entry {
    name: "date-shift",
    tells: "the date within that range; with `per` also intervals",
    parameters: &["min", "max", "per", "except"],
    read: |parameters| {
        let min_s = bound(parameters, "min")?;
        let max_s = bound(parameters, "max")?;
        let (min_s, max_s) = match (min_s, max_s) {
            (None, None) => (-365 * DAY_S, 365 * DAY_S),
            (Some(min_s), Some(max_s)) => (min_s, max_s),
            (Some(both), None) | (None, Some(both)) => (-both.abs(), both.abs()),
        };
        let unit_s = if min_s % DAY_S == 0 && max_s % DAY_S == 0 { DAY_S } else { 1 };
        if min_s > max_s || (min_s == 0 && max_s == 0) {
            let hint = "give a range as in `min: -30d, max: 30d`";
            return Err(Wrong::new("`min` to `max` holds no shift", hint));
        }
        let per = parameters.text("per")?;
        let except = parameters.texts("except")?.unwrap_or_default();
        Ok(Arc::new(DateShift { min_s, max_s, unit_s, per, except }))
    },
};

/// A duration with a sign, in seconds.
fn bound(parameters: &mut Parameters, name: &str) -> Result<Option<i64>, Wrong> {
    let Some(text) = parameters.text(name)? else { return Ok(None) };
    let (sign, bare) = match text.strip_prefix('-') {
        Some(bare) => (-1, bare),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let duration = offshoot_domain::parse_duration(bare).ok();
    let seconds = duration.and_then(|duration| i64::try_from(duration.as_secs()).ok());
    match seconds.filter(|seconds| *seconds <= SHIFT_S_MAX) {
        Some(seconds) => Ok(Some(sign * seconds)),
        None => Err(Wrong::new(
            format!("`{name}: {text}` is no duration it takes"),
            "give one of at most 1000 years as in `-30d`, `12h`, `2w`, `1y`",
        )),
    }
}

#[derive(Debug, Clone)]
struct DateShift {
    min_s: i64,
    max_s: i64,
    unit_s: i64,
    per: Option<String>,
    except: Vec<String>,
}

impl Algorithm for DateShift {
    fn fits(&self, class: &TypeClass) -> bool {
        match class {
            TypeClass::Date => self.unit_s == DAY_S,
            class => class.is_date(),
        }
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn per(&self) -> Option<&str> {
        self.per.as_deref()
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let per = target.per(self.per())?;
        let key = target.key.subkey("date-shift");
        Ok(Mask::Values(Arc::new(Shift { rule: self.clone(), per, key })))
    }
}

struct Shift {
    rule: DateShift,
    per: Option<usize>,
    key: Subkey,
}

impl Shift {
    /// A shift in seconds, never 0.
    fn shift_s(&self, source: &str) -> i64 {
        let unit_s = self.rule.unit_s;
        let (min, max) = (self.rule.min_s / unit_s, self.rule.max_s / unit_s);
        // Counted without 0, which is left out where the range holds it.
        let holds_zero = min <= 0 && max >= 0;
        let count = (max - min + 1 - i64::from(holds_zero)) as u64;
        let drawn = min + self.key.draw(source.as_bytes()).below(count) as i64;
        unit_s * (drawn + i64::from(holds_zero && drawn >= 0))
    }
}

impl ValueMask for Shift {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        if self.rule.except.iter().any(|except| except == value) {
            out.push_str(value);
            return Ok(Outcome::Value);
        }
        match moment::parse(value) {
            None => Err(Unmaskable { why: "it is not a date" }),
            Some(Parsed::Infinite) => {
                out.push_str(value);
                Ok(Outcome::Value)
            }
            Some(Parsed::Finite(day)) => {
                let source = per::source(self.per, value, row);
                match day.later(self.shift_s(source)).write(out) {
                    true => Ok(Outcome::Value),
                    false => Err(Unmaskable { why: "shifted, it is no date any more" }),
                }
            }
        }
    }
}
