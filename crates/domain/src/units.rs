//! Sizes and durations as people write them.

use offshoot_types::{ErrorKind, Failure};
use std::time::Duration;

const SIZES: [(&str, u64); 17] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    // Databases write kB, MB, GB for powers of two; so do we, as users bring such values.
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("tb", 1 << 40),
    ("pib", 1 << 50),
    ("p", 1 << 50),
    ("pb", 1 << 50),
];

const DURATIONS: [(&str, u64); 21] = [
    ("ms", 1),
    ("s", 1000),
    ("sec", 1000),
    ("second", 1000),
    ("seconds", 1000),
    ("m", 60_000),
    ("min", 60_000),
    ("minute", 60_000),
    ("minutes", 60_000),
    ("h", 3_600_000),
    ("hour", 3_600_000),
    ("hours", 3_600_000),
    ("d", 86_400_000),
    ("day", 86_400_000),
    ("days", 86_400_000),
    ("w", 604_800_000),
    ("week", 604_800_000),
    ("weeks", 604_800_000),
    // Of 365 days.
    ("y", 31_536_000_000),
    ("year", 31_536_000_000),
    ("years", 31_536_000_000),
];

/// Reads a size such as `4GiB`, `512 MiB`, `1.5g` or `8192` (bytes); units are powers of 1,024.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if the text is not a size, or too large.
pub fn parse_size(text: &str) -> Result<u64, Failure> {
    scaled(text, &SIZES).ok_or_else(|| {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("'{text}' is not a size"),
            "write it as 512MiB, 4GiB or a number of bytes",
        )
    })
}

/// Reads a duration such as `10min`, `1.5 h`, `30s`, `7d`, `2w`, `1y`; a unit is required.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if the text is not a duration, or too long.
pub fn parse_duration(text: &str) -> Result<Duration, Failure> {
    scaled(text, &DURATIONS).map(Duration::from_millis).ok_or_else(|| {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("'{text}' is not a duration"),
            "write it as 30s, 10min, 1h or 7d",
        )
    })
}

/// `NUMBER UNIT` in the unit's smallest parts, rounded down; up to three decimals are exact.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim().to_ascii_lowercase());
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.pow(fraction.len() as u32);
    let parts = u128::from(whole.parse::<u64>().ok()?) * u128::from(scale)
        + u128::from(fraction.parse::<u64>().ok()?);
    u64::try_from(parts * u128::from(factor) / u128::from(scale)).ok()
}

/// A size for people: `1.5 GiB`, `820 B`.
pub fn format_size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// A duration for people: `350 ms`, `2.5 s`, `10 min`, `1 h 5 min`, `3 d 2 h`.
pub fn format_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    let two = |big: u128, big_unit: &str, small: u128, small_unit: &str| match small {
        0 => format!("{big} {big_unit}"),
        _ => format!("{big} {big_unit} {small} {small_unit}"),
    };
    let (s, min, h) = (ms / 1000, ms / 60_000, ms / 3_600_000);
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 if ms % 1000 >= 100 => format!("{s}.{} s", ms % 1000 / 100),
        1000..60_000 => format!("{s} s"),
        60_000..3_600_000 => two(min, "min", s % 60, "s"),
        3_600_000..86_400_000 => two(h, "h", min % 60, "min"),
        _ => two(h / 24, "d", h % 24, "h"),
    }
}

#[cfg(test)]
mod tests;
