//! Days and moments in the database's text form: `2024-02-29`, `2024-02-29 12:00:00.5+02`, `0044-03-15 BC`,
//! `infinity`. The calendar is the Gregorian one, also before 1582, as in SQL.

use std::fmt::Write;

/// Seconds of a day.
pub(crate) const DAY_S: i64 = 86_400;

/// The earliest year that databases take, about; 0 is 1 BC.
const YEAR_MIN: i64 = -4712;
/// The last year of a day.
const YEAR_MAX: i64 = 5_874_897;

/// What a text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// `infinity` or `-infinity`.
    Infinite,
    /// A day, maybe with a time.
    Finite(Moment<'a>),
}

/// A day, maybe with a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment<'a> {
    /// Days since 1970-01-01.
    pub day: i64,
    /// The time of day.
    pub time: Option<Time<'a>>,
}

/// A time of day, as its zone's clocks show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time<'a> {
    /// What separates it from the day: a blank or `T`.
    pub separator: char,
    /// Seconds since midnight.
    pub s: i64,
    /// Whether seconds were written.
    pub has_seconds: bool,
    /// Fraction and zone, as they were written.
    pub tail: &'a str,
}

/// Reads a day or moment.
pub(crate) fn parse(text: &str) -> Option<Parsed<'_>> {
    if matches!(text, "infinity" | "-infinity") {
        return Some(Parsed::Infinite);
    }
    let (text, before_christ) = match text.strip_suffix(" BC") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (year, rest) = digits(text, 4..=7)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2..=2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2..=2)?;
    let year = if before_christ { 1 - year } else { year };
    if !(1..=12).contains(&month) || !(1..=month_days(year, month)).contains(&day) {
        return None;
    }
    let time = if rest.is_empty() { None } else { Some(parse_time(rest)?) };
    Some(Parsed::Finite(Moment { day: day_number(year, month, day), time }))
}

/// Whether a text is a day or moment.
pub(crate) fn is_moment(text: &str) -> bool {
    parse(text).is_some()
}

fn parse_time(text: &str) -> Option<Time<'_>> {
    let separator = text.chars().next().filter(|c| matches!(c, ' ' | 'T'))?;
    let (hour, rest) = digits(&text[1..], 2..=2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2..=2)?;
    let (second, tail) = match rest.strip_prefix(':') {
        Some(rest) => digits(rest, 2..=2).map(|(second, tail)| (Some(second), tail))?,
        None => (None, rest),
    };
    let known = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | ':' | 'Z' | ' ');
    if hour > 24 || minute > 59 || second.unwrap_or(0) > 60 || !tail.chars().all(known) {
        return None;
    }
    let s = hour * 3600 + minute * 60 + second.unwrap_or(0);
    Some(Time { separator, s, has_seconds: second.is_some(), tail })
}

/// The number that a text begins with, and what follows.
fn digits(text: &str, width: std::ops::RangeInclusive<usize>) -> Option<(i64, &str)> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    if !width.contains(&end) {
        return None;
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

impl Moment<'_> {
    /// This moment, some seconds later. Without a time, whole days later.
    pub fn later(self, seconds: i64) -> Self {
        match self.time {
            None => Moment { day: self.day + seconds / DAY_S, ..self },
            Some(time) => {
                let s = time.s + seconds;
                let time = Time { s: s.rem_euclid(DAY_S), ..time };
                Moment { day: self.day + s.div_euclid(DAY_S), time: Some(time) }
            }
        }
    }

    /// Appends its text form. False if databases have no such day.
    pub fn write(&self, out: &mut String) -> bool {
        let (year, month, day) = civil(self.day);
        if !(YEAR_MIN..=YEAR_MAX).contains(&year) {
            return false;
        }
        let shown = if year > 0 { year } else { 1 - year };
        // Writing into a text cannot fail.
        let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
        if let Some(time) = self.time {
            let (hour, minute, second) = (time.s / 3600, time.s / 60 % 60, time.s % 60);
            let _ = write!(out, "{}{hour:02}:{minute:02}", time.separator);
            if time.has_seconds {
                let _ = write!(out, ":{second:02}");
            }
            out.push_str(time.tail);
        }
        if year <= 0 {
            out.push_str(" BC");
        }
        true
    }
}

/// Days of a month.
pub(crate) fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days before each month of a year that begins in March, so that the leap day is its last.
fn days_before(month_from_march: i64) -> i64 {
    (153 * month_from_march + 2) / 5
}

/// Days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// The number of a day, from 1970-01-01.
pub(crate) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let from_march = (month + 9) % 12;
    let year = if month <= 2 { year - 1 } else { year };
    let in_cycle = year.rem_euclid(400);
    let days = in_cycle * 365 + in_cycle / 4 - in_cycle / 100 + days_before(from_march) + day - 1;
    year.div_euclid(400) * CYCLE_DAYS + days - EPOCH_DAYS
}

/// Year, month and day of a number.
pub(crate) fn civil(number: i64) -> (i64, i64, i64) {
    let number = number + EPOCH_DAYS;
    let in_cycle = number.rem_euclid(CYCLE_DAYS);
    // Leap days are taken out before dividing: one in 4 years, none in 100, one in 400.
    let year_in_cycle = (in_cycle - in_cycle / 1460 + in_cycle / 36_524 - in_cycle / 146_096) / 365;
    let in_year = in_cycle - (year_in_cycle * 365 + year_in_cycle / 4 - year_in_cycle / 100);
    let from_march = (5 * in_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = number.div_euclid(CYCLE_DAYS) * 400 + year_in_cycle + i64::from(month <= 2);
    (year, month, in_year - days_before(from_march) + 1)
}

#[cfg(test)]
mod tests;
