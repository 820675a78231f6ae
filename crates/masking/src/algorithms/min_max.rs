//! `min-max`: outliers become the bound they pass.
//!
//! - Parameters: `min`, `max` (one of them at least) and `replace`, which outliers become instead of the bound.
//! - Lossy. Numbers, dates and timestamps. Infinity counts as an outlier, NaN stays.
//! - The output tells every value inside the bounds as it is: this hides only the few that stand out.

use super::decimal::Decimal;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::moment::{self, Parsed};
use crate::parameters::{Entry, missing};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const ENTRY: Entry = Entry {
    name: "min-max",
    tells: "every value between the bounds",
    parameters: &["min", "max", "replace"],
    read: |parameters| {
        let (min, max) = (parameters.text("min")?, parameters.text("max")?);
        if min.is_none() && max.is_none() {
            return Err(missing("max", "{algorithm: min-max, min: 0, max: 200}"));
        }
        Ok(Arc::new(MinMax { min, max, replace: parameters.text("replace")? }))
    },
};

#[derive(Debug, Clone)]
struct MinMax {
    min: Option<String>,
    max: Option<String>,
    replace: Option<String>,
}

impl Algorithm for MinMax {
    fn fits(&self, class: &TypeClass) -> bool {
        let given = [&self.min, &self.max, &self.replace];
        let takes = |value: &String| class.takes(value) && compare(value, value).is_some();
        (class.is_number() || class.is_date()) && given.into_iter().flatten().all(takes)
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn bind(&self, _: &Target<'_>) -> Result<Mask, String> {
        if let (Some(min), Some(max)) = (&self.min, &self.max)
            && compare(min, max) == Some(Ordering::Greater)
        {
            return Err("`min` is above `max`: exchange them".into());
        }
        Ok(Mask::Values(Arc::new(self.clone())))
    }
}

impl ValueMask for MinMax {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let mut kept = value;
        for (bound, passes) in [(&self.min, Ordering::Less), (&self.max, Ordering::Greater)] {
            if let Some(bound) = bound.as_ref().filter(|_| value != "NaN") {
                let order = compare(value, bound)
                    .ok_or(Unmaskable { why: "it cannot be compared with the bounds" })?;
                if order == passes {
                    kept = self.replace.as_deref().unwrap_or(bound);
                }
            }
        }
        out.push_str(kept);
        Ok(Outcome::Value)
    }
}

/// How two numbers or two dates compare.
fn compare(left: &str, right: &str) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (Decimal::parse(left), Decimal::parse(right)) {
        return left.compare(right);
    }
    if let (Ok(left), Ok(right)) = (left.parse::<f64>(), right.parse::<f64>()) {
        return left.partial_cmp(&right);
    }
    let place = |text: &str| match moment::parse(text)? {
        Parsed::Infinite if text.starts_with('-') => Some((i64::MIN, 0)),
        Parsed::Infinite => Some((i64::MAX, 0)),
        Parsed::Finite(moment) => Some((moment.day, moment.time.map_or(0, |time| time.s))),
    };
    Some(place(left)?.cmp(&place(right)?))
}
