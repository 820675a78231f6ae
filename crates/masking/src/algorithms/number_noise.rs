//! `number-noise`: a number not far away.
//!
//! - Parameters: `percent: 10` (at most so far from the value, by its size) or `amount: 5` (at most so far); `min` and
//!   `max` bound the result. The number of digits after the point stays. The result differs from the value by one unit
//!   of its last digit at least, unless it is 0, or `min` and `max` leave no choice.
//! - Lossy. Numbers. NaN and infinity stay.
//! - The output tells the value to within the noise; sums and averages stay about right. Equal values stay equal.

use super::decimal::Decimal;
use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::key::Subkey;
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::{Entry, Parameters, Wrong, missing};
use std::fmt::Write;
use std::sync::Arc;

/// Percent are drawn in steps of a millionth of the value.
const STEPS: i128 = 1_000_000;

pub(super) const ENTRY: Entry = Entry {
    name: "number-noise",
    tells: "the number, about",
    parameters: &["percent", "amount", "min", "max"],
    read: |parameters| {
        let noise = match (decimal(parameters, "percent")?, decimal(parameters, "amount")?) {
            (Some(percent), None) => {
                let steps = percent.rescaled(4).filter(|steps| (1..=10 * STEPS).contains(steps));
                let hint = "give one from 0.0001 to 1000";
                Noise::Steps(steps.ok_or_else(|| Wrong::new("`percent` is out of range", hint))?)
            }
            (None, Some(amount)) if amount.units > 0 => Noise::Amount(amount),
            (None, Some(_)) => {
                return Err(Wrong::new("`amount` is not above 0", "give one that is"));
            }
            (None, None) => {
                return Err(missing("percent", "{algorithm: number-noise, percent: 10}"));
            }
            (Some(_), Some(_)) => {
                let hint = "leave one of them out";
                return Err(Wrong::new("`percent` and `amount` exclude each other", hint));
            }
        };
        let (min, max) = (decimal(parameters, "min")?, decimal(parameters, "max")?);
        if let (Some(min), Some(max)) = (min, max)
            && min.compare(max).is_none_or(|order| order.is_gt())
        {
            return Err(Wrong::new("`min` is above `max`", "exchange them"));
        }
        Ok(Arc::new(NumberNoise { noise, min, max }))
    },
};

/// A decimal number among the parameters.
pub(super) fn decimal(parameters: &mut Parameters, name: &str) -> Result<Option<Decimal>, Wrong> {
    let Some(text) = parameters.text(name)? else { return Ok(None) };
    let wrong = || Wrong::new(format!("`{name}: {text}` is no number"), "write it as 10 or 2.5");
    Decimal::parse(&text).map(Some).ok_or_else(wrong)
}

#[derive(Debug, Clone, Copy)]
enum Noise {
    Steps(i128),
    Amount(Decimal),
}

#[derive(Debug, Clone, Copy)]
struct NumberNoise {
    noise: Noise,
    min: Option<Decimal>,
    max: Option<Decimal>,
}

impl Algorithm for NumberNoise {
    fn fits(&self, class: &TypeClass) -> bool {
        class.is_number()
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Lossy
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        let class = &target.column.class;
        let units_max = match class {
            TypeClass::Number { precision: Some(digits), scale: Some(scale) } => {
                // A negative scale: that many zeros before the point.
                let zeros = 10_i128.checked_pow(u32::try_from(-scale).unwrap_or(0));
                let limit = 10_i128.checked_pow(*digits).map(|limit| limit - 1);
                limit.zip(zeros).and_then(|(limit, zeros)| limit.checked_mul(zeros))
            }
            class => class.integer_max().map(i128::from),
        };
        Ok(Mask::Values(Arc::new(NoiseMask {
            rule: *self,
            float: *class == TypeClass::Float,
            single: matches!(target.column.type_name.as_str(), "real" | "float4"),
            units_max: units_max.unwrap_or(i128::MAX),
            key: target.key.subkey("number-noise"),
        })))
    }
}

struct NoiseMask {
    rule: NumberNoise,
    float: bool,
    single: bool,
    /// What the column takes, in units of its last digit.
    units_max: i128,
    key: Subkey,
}

impl NoiseMask {
    fn exact(&self, value: Decimal, text: &str, out: &mut String) -> Option<()> {
        let mut draw = self.key.draw(text.as_bytes());
        let up = draw.below(2) == 0;
        let most = match self.rule.noise {
            Noise::Steps(steps) => steps,
            Noise::Amount(amount) => amount.rescaled(value.scale)?,
        };
        // A draw below 2^64 of what may be larger: exact enough, and never more than `most`.
        let drawn = match u64::try_from(most) {
            Ok(most) => i128::from(draw.below(most.max(1))) + 1,
            Err(_) => most / i128::from(u64::MAX) * i128::from(draw.number()) + 1,
        };
        let change = match self.rule.noise {
            Noise::Steps(_) if value.units == 0 => 0,
            Noise::Steps(_) => (value.units.abs().checked_mul(drawn)? / STEPS).max(1),
            Noise::Amount(_) => drawn,
        };
        let change = if up { change } else { -change };
        let moved = value.units.checked_add(change)?;
        let floor =
            self.rule.min.and_then(|min| min.rescaled(value.scale)).unwrap_or(-self.units_max);
        let ceiling =
            self.rule.max.and_then(|max| max.rescaled(value.scale)).unwrap_or(self.units_max);
        let units = moved.max(floor.max(-self.units_max)).min(ceiling.min(self.units_max));
        Decimal { units, ..value }.write(out);
        Some(())
    }

    fn float(&self, value: f64, text: &str, out: &mut String) {
        let mut draw = self.key.draw(text.as_bytes());
        // From -1 to 1.
        let part = draw.number() as f64 / u64::MAX as f64 * 2.0 - 1.0;
        let as_float = |decimal: Decimal| decimal.units as f64 / 10_f64.powi(decimal.scale as i32);
        let moved = match self.rule.noise {
            Noise::Steps(steps) => value + value * part * (steps as f64 / STEPS as f64),
            Noise::Amount(amount) => value + part * as_float(amount),
        };
        let limit = if self.single { f64::from(f32::MAX) } else { f64::MAX };
        let moved = moved.max(self.rule.min.map_or(-limit, as_float));
        let moved = moved.min(self.rule.max.map_or(limit, as_float));
        // Writing into a text cannot fail.
        let _ = match self.single {
            true => write!(out, "{:?}", moved as f32),
            false => write!(out, "{moved:?}"),
        };
    }
}

impl ValueMask for NoiseMask {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        const TOO_LONG: Unmaskable = Unmaskable { why: "it has more than 30 digits" };
        if matches!(value, "NaN" | "Infinity" | "-Infinity") {
            out.push_str(value);
            return Ok(Outcome::Value);
        }
        if self.float {
            let number = value.parse().map_err(|_| Unmaskable { why: "it is not a number" })?;
            self.float(number, value, out);
            return Ok(Outcome::Value);
        }
        let number = Decimal::parse(value).ok_or(TOO_LONG)?;
        self.exact(number, value, out).ok_or(TOO_LONG)?;
        Ok(Outcome::Value)
    }
}
