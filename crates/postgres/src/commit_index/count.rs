//! Counting commits by time. Of a WAL file whose commits all lie in one part of the time only the summary is looked
//! at, so that the files that are read are at most one more than there are parts, however much log there is.

use super::CommitIndex;
use super::segment::{Entry, Summary};
use jiff::Timestamp;
use offshoot_types::Failure;

impl CommitIndex {
    /// How many commits each of so many equal parts of a time has; its end is not in it.
    ///
    /// # Errors
    /// `DataDamaged` when an index file cannot be read.
    pub fn count_by_time(
        &self,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure> {
        let mut counted = Counted::new(from.as_microsecond(), to.as_microsecond(), parts);
        let state = self.state.lock();
        for (number, sealed) in &state.sealed {
            if !counted.add_whole(&sealed.summary) {
                counted.add(&self.entries(&state, *number, sealed)?);
            }
        }
        counted.add(&state.open);
        Ok(counted.counts)
    }
}

struct Counted {
    from_us: i64,
    to_us: i64,
    counts: Vec<u64>,
}

impl Counted {
    fn new(from_us: i64, to_us: i64, parts: usize) -> Counted {
        Counted { from_us, to_us: to_us.max(from_us), counts: vec![0; parts] }
    }

    fn part_of(&self, time_us: i64) -> Option<usize> {
        if !(self.from_us..self.to_us).contains(&time_us) {
            return None;
        }
        let (past, whole) =
            (i128::from(time_us - self.from_us), i128::from(self.to_us - self.from_us));
        usize::try_from(past * self.counts.len() as i128 / whole).ok()
    }

    /// Counts a file by its summary, if that is enough.
    fn add_whole(&mut self, summary: &Summary) -> bool {
        let (first, last) = (summary.earliest_us, summary.latest_us);
        if summary.count == 0 || last < self.from_us || first >= self.to_us {
            return true;
        }
        match (self.part_of(first), self.part_of(last)) {
            (Some(one), Some(same)) if one == same => {
                self.counts[one] += summary.count;
                true
            }
            _ => false,
        }
    }

    fn add(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Some(part) = self.part_of(entry.time_us) {
                self.counts[part] += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
