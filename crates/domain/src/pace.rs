//! How long moments take to open, and how far apart recovery points may lie for that.
//!
//! Opening a moment takes a time that does not depend on it (clone, mount, start), and time for the log between the image
//! it is opened from and the moment: above all for the pages that this changes, few in as much log or many. The times are
//! learned from what was opened, and how many pages there are also from recovery points as they are made; a promise
//! ([`crate::Policy::open_within_ms`]) then says how much log may lie between two images.

use crate::Snapshot;
use offshoot_types::LogPosition;
use serde::{Deserialize, Serialize};

/// Less log than this says nothing about the rate.
const RATE_BYTES_MIN: u64 = 4 << 20;
/// Fewer pages than this say nothing about the time for one.
const PAGES_MIN: u64 = 1_000;
/// What one opening counts for in that.
const PAGE_PART: u64 = 4;
/// Of what is left of a promise after the start, replay is planned to take this share: rates vary.
const REPLAY_SHARE: (u64, u64) = (3, 4);
/// Points are never nearer: making one takes as long as replaying this much.
const SPACING_MIN: u64 = 8 << 20;
/// They are never further apart.
const SPACING_MAX: u64 = 1 << 30;
/// How many moments of a range are looked at to say what is typical.
const SAMPLES: u64 = 200;

/// How fast the moments of a dSource open on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pace {
    /// Milliseconds for what does not depend on the moment.
    pub start_ms: u64,
    /// Bytes of log that are replayed in a second.
    pub bytes_per_second: u64,
    /// Microseconds that each page takes that the log changes.
    pub page_us: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { start_ms: 800, bytes_per_second: 32 << 20, page_us: 100 }
    }
}

impl Pace {
    /// Milliseconds that a moment takes to open with this much log before it.
    pub fn expected_ms(&self, bytes: u64) -> u64 {
        self.start_ms.saturating_add(self.replay_ms(bytes))
    }

    fn replay_ms(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(1000) / self.bytes_per_second.max(1)
    }

    /// How much log may lie between two images, so that every moment between them opens within this time.
    pub fn spacing(&self, open_within_ms: u64) -> u64 {
        let replay_ms =
            open_within_ms.saturating_sub(self.start_ms) / REPLAY_SHARE.1 * REPLAY_SHARE.0;
        let bytes = u128::from(replay_ms) * u128::from(self.bytes_per_second) / 1000;
        u64::try_from(bytes).unwrap_or(u64::MAX).clamp(SPACING_MIN, SPACING_MAX)
    }

    /// What a moment that was opened shows, and for which so many pages were written.
    #[must_use]
    pub fn opened(self, bytes: u64, pages: u64, took_ms: u64) -> Pace {
        let replay_us = took_ms.saturating_sub(self.start_ms).saturating_mul(1000);
        let page_us = match pages {
            PAGES_MIN.. => average(self.page_us, replay_us / pages),
            _ => self.page_us,
        };
        Pace { page_us, ..self.opened_in(bytes, took_ms) }
    }

    fn opened_in(self, bytes: u64, took_ms: u64) -> Pace {
        if bytes < RATE_BYTES_MIN {
            let replay_ms = self.replay_ms(bytes);
            return Pace {
                start_ms: learned(self.start_ms, took_ms.saturating_sub(replay_ms), false),
                ..self
            };
        }
        self.replayed(bytes, took_ms.saturating_sub(self.start_ms).max(took_ms / 4))
    }

    /// What a recovery point shows in which this log has changed so many pages, however soon it was made. That log is
    /// replayed faster than is planned with at first only openings show: what comes next may change more pages.
    #[must_use]
    pub fn changed(self, bytes: u64, pages: u64) -> Pace {
        let most = self.bytes_per_second.max(Pace::default().bytes_per_second);
        self.with_rate(bytes, rate(bytes, pages.saturating_mul(self.page_us) / 1000).min(most))
    }

    /// What a replay alone shows.
    #[must_use]
    pub fn replayed(self, bytes: u64, took_ms: u64) -> Pace {
        self.with_rate(bytes, rate(bytes, took_ms))
    }

    fn with_rate(self, bytes: u64, rate: u64) -> Pace {
        if bytes < RATE_BYTES_MIN {
            return self;
        }
        Pace { bytes_per_second: learned(self.bytes_per_second, rate, true).max(1), ..self }
    }
}

fn rate(bytes: u64, took_ms: u64) -> u64 {
    bytes.saturating_mul(1000) / took_ms.max(1)
}

/// What becomes of an estimate. It follows what is worse at once, by half the way, and what is better slowly: what is
/// promised holds at full load too, and points that a quiet hour did without cannot be made afterwards.
fn learned(old: u64, seen: u64, more_is_better: bool) -> u64 {
    let worse = if more_is_better { seen < old } else { seen > old };
    let part = if worse { 2 } else { 32 };
    toward(old, seen, |gap| gap.div_ceil(part))
}

/// The same of one that is better neither smaller nor larger; at least 1.
fn average(old: u64, seen: u64) -> u64 {
    toward(old, seen, |gap| gap / PAGE_PART).max(1)
}

fn toward(old: u64, seen: u64, step: impl Fn(u64) -> u64) -> u64 {
    match seen >= old {
        true => old.saturating_add(step(seen - old)),
        false => old - step(old - seen),
    }
}

/// How long the moments of a range take to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTimes {
    /// Half of them open sooner, in milliseconds.
    pub typical_ms: u64,
    /// None takes longer.
    pub longest_ms: u64,
}

impl Pace {
    /// How long the moments from one position to another take to open from these snapshots; none where none is before
    /// them.
    pub fn open_times(
        &self,
        snapshots: &[Snapshot],
        (from, to): (LogPosition, LogPosition),
    ) -> Option<OpenTimes> {
        let mut images: Vec<&Snapshot> =
            snapshots.iter().filter(|one| one.follows_log() && !one.is_failed()).collect();
        images.sort_by_key(|one| one.position.log);
        // The nearest of all images at or before each: a later one may begin earlier.
        let mut nearest: Vec<(LogPosition, LogPosition)> = Vec::with_capacity(images.len());
        for one in images {
            let begins = nearest.last().map_or(one.replay_from, |last| last.1.max(one.replay_from));
            nearest.push((one.position.log, begins));
        }
        let bytes = |at: LogPosition| {
            let image = nearest.partition_point(|(position, _)| *position <= at).checked_sub(1)?;
            Some(at.bytes_since(nearest.get(image)?.1))
        };
        let length = to.bytes_since(from);
        let sample = |number: u64| {
            let offset = u128::from(length) * u128::from(number) / u128::from(SAMPLES);
            bytes(LogPosition(from.0 + u64::try_from(offset).unwrap_or(0)))
        };
        let mut typical: Vec<u64> = (0..=SAMPLES).filter_map(sample).collect();
        typical.sort_unstable();
        // Just before each image, and at the end, most log is replayed.
        let ends = nearest.iter().map(|(position, _)| LogPosition(position.0.saturating_sub(1)));
        let within = ends.filter(|at| (from..=to).contains(at)).chain([to]);
        let longest = within.filter_map(bytes).max()?;
        Some(OpenTimes {
            typical_ms: self.expected_ms(*typical.get(typical.len() / 2)?),
            longest_ms: self.expected_ms(longest),
        })
    }
}

#[cfg(test)]
mod tests;
