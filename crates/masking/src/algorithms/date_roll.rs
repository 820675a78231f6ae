//! `date-roll`: another day of the same year, month or week.
//!
//! - Parameters: `within: year|month|week` (by default `month`); `per: COLUMN` draws from that column; `except: [...]`
//!   lists values that stay. Never the same day; the time of day stays.
//! - Lossy. Dates and timestamps. Infinity stays.
//! - The output tells the year, month or week. Equal dates stay equal, unless `per` tells them apart.

use super::per;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::moment::{self, Moment, Parsed, civil, day_number, month_days};
use crate::parameters::Entry;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "date-roll",
    tells: "that year, month or week",
    parameters: &["within", "per", "except"],
    read: |parameters| {
        let within = match parameters.choice("within", &["year", "month", "week"])?.as_deref() {
            Some("year") => Within::Year,
            Some("week") => Within::Week,
            _ => Within::Month,
        };
        let per = parameters.text("per")?;
        let except = parameters.texts("except")?.unwrap_or_default();
        Ok(Arc::new(DateRoll { within, per, except }))
    },
};

#[derive(Debug, Clone, Copy)]
enum Within {
    Year,
    Month,
    Week,
}

#[derive(Debug, Clone)]
struct DateRoll {
    within: Within,
    per: Option<String>,
    except: Vec<String>,
}

impl Algorithm for DateRoll {
    fn fits(&self, class: &TypeClass) -> bool {
        class.is_date()
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
        let key = target.key.subkey("date-roll");
        Ok(Mask::Values(Arc::new(Roll { rule: self.clone(), per, key })))
    }
}

struct Roll {
    rule: DateRoll,
    per: Option<usize>,
    key: Subkey,
}

impl Roll {
    /// Another day of the same stretch of days.
    fn roll(&self, day: i64, source: &str) -> i64 {
        let (year, month, _) = civil(day);
        let (first, count) = match self.rule.within {
            Within::Year => {
                let first = day_number(year, 1, 1);
                (first, day_number(year + 1, 1, 1) - first)
            }
            Within::Month => (day_number(year, month, 1), month_days(year, month)),
            // Day 0, in 1970, was a Thursday; weeks begin on Mondays.
            Within::Week => (day - (day + 3).rem_euclid(7), 7),
        };
        let further = 1 + self.key.draw(source.as_bytes()).below(count as u64 - 1) as i64;
        first + (day - first + further) % count
    }
}

impl ValueMask for Roll {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let parsed = moment::parse(value).ok_or(Unmaskable { why: "it is not a date" })?;
        let written = match parsed {
            Parsed::Finite(moment) if !self.rule.except.iter().any(|except| except == value) => {
                let day = self.roll(moment.day, per::source(self.per, value, row));
                Moment { day, ..moment }.write(out)
            }
            _ => {
                out.push_str(value);
                true
            }
        };
        match written {
            true => Ok(Outcome::Value),
            false => Err(Unmaskable { why: "rolled, it is no date any more" }),
        }
    }
}
