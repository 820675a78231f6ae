//! Reading and verifying everything; checking the counts.

use crate::check::recount;
use crate::pool::{Pool, verify};
use crate::table::Entry;
use crate::{Error, Result, ScrubReport};
use offshoot_types::BlockHash;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

impl Pool {
    /// Reads and verifies every block at most `bytes_per_s` fast, until done or `stop` is set.
    pub fn scrub(&self, bytes_per_s: u64, stop: &AtomicBool) -> Result<ScrubReport> {
        let mut report = ScrubReport::default();
        let begun = self.clock.elapsed();
        let mut index = 0;
        while let Some(mut entries) = self.table.part(index) {
            index += 1;
            entries.sort_by_key(|(_, entry)| entry.place());
            for (hash, entry) in entries {
                if stop.load(Ordering::Relaxed) {
                    report.stopped = true;
                    return Ok(report);
                }
                match self.scrub_block(&hash, &entry) {
                    Ok(()) => {}
                    Err(Error::Missing(_)) => continue, // dropped meanwhile
                    Err(_) => report.damaged += 1,
                }
                report.blocks += 1;
                report.bytes += u64::from(entry.place().room());
                let due = Duration::from_micros(
                    report.bytes.saturating_mul(1_000_000) / bytes_per_s.max(1),
                );
                let ahead = due.saturating_sub(self.clock.elapsed().saturating_sub(begun));
                if ahead > Duration::from_millis(5) {
                    self.clock.sleep(ahead.min(Duration::from_millis(100)));
                }
            }
        }
        Ok(report)
    }

    /// Reads a block from disk, not from the cache.
    fn scrub_block(&self, hash: &BlockHash, entry: &Entry) -> Result<()> {
        let sound = self
            .segments
            .read(entry.place())
            .is_ok_and(|stored| verify(hash, entry, stored).is_ok());
        if sound {
            self.forget_fault(hash);
            return Ok(());
        }
        // The slow way tells a moved block from a damaged one, and keeps the fault.
        let Err(error) = self.load(hash) else { return Ok(()) };
        match self.cache.peek(hash) {
            Some(content) if self.heal(hash, &content)? => Ok(()),
            _ => Err(error),
        }
    }

    /// Walks everything the root reaches and compares with the table: references, live bytes, nothing
    /// missing, nothing left over. Returns what does not add up. For a pool at rest: running
    /// transactions, pins and dead nodes still queued are taken into account only as blocks without
    /// references.
    pub fn check(&self) -> Result<Vec<String>> {
        let journal = self.journal.lock();
        let mut problems = recount(&self.table, journal.root.hash, &|hash| self.children_of(hash));
        let mut live = 0;
        self.table.visit(|_, entry| {
            if entry.is_committed() && entry.refs > 0 {
                live += u64::from(entry.place().room());
            }
        });
        let counted = self.table.totals.live.load(Ordering::Relaxed);
        if live != counted {
            problems.push(format!("{live} bytes are live, {counted} are counted"));
        }
        let in_segments: u64 = self.segments.summaries().iter().map(|of| of.live).sum();
        let mut in_table = 0;
        self.table.visit(|_, entry| in_table += u64::from(entry.place().room()));
        if in_segments != in_table {
            problems.push(format!("segments count {in_segments} bytes, the table {in_table}"));
        }
        Ok(problems)
    }
}
