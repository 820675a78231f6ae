//! What a source held at each moment, as its writer recorded it.

use jiff::Timestamp;

/// One acknowledged write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// The value written: 1, 2, 3, ….
    pub value: i64,
    /// The clock before the commit was asked for.
    pub before: Timestamp,
    /// The clock after it was acknowledged. The commit is between the two.
    pub after: Timestamp,
}

/// Acknowledged writes, oldest first. The writer and the source share one host and thus one clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    ticks: Vec<Tick>,
}

impl History {
    /// Adds the next write.
    pub fn push(&mut self, tick: Tick) {
        debug_assert!(tick.before <= tick.after);
        self.ticks.push(tick);
    }

    /// All writes.
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// The value a database of this moment must hold, 0 before the first write; `None` if the
    /// moment is inside a commit, so that either of two values is right.
    pub fn value_at(&self, moment: Timestamp) -> Option<i64> {
        let begun = self.ticks.partition_point(|tick| tick.before <= moment);
        let Some(last) = begun.checked_sub(1).map(|index| self.ticks[index]) else {
            return Some(0);
        };
        (last.after <= moment).then_some(last.value)
    }

    /// A moment from which on the value is `value`: the middle of the gap to the next write. `None`
    /// when there is no such write or none after it yet.
    pub fn moment_of(&self, value: i64) -> Option<Timestamp> {
        let index = self.ticks.iter().position(|tick| tick.value == value)?;
        let (from, until) = (self.ticks[index].after, self.ticks.get(index + 1)?.before);
        let gap = until.duration_since(from);
        (gap.as_micros() > 1).then(|| from + gap / 2)
    }

    /// The last value.
    pub fn last_value(&self) -> i64 {
        self.ticks.last().map_or(0, |tick| tick.value)
    }
}

#[cfg(test)]
mod tests;
