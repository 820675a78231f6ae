//! Making operations durable: by the intent log where that is possible, by a commit otherwise.
//!
//! Rules:
//! - D1: operations of a dataset enter the log in the order of their numbers, without a gap. Once
//!   some cannot be logged, no later ones are until a commit has caught up.
//! - D2: operations that a running commit covers are still logged when someone syncs: the commit may
//!   fail or take long, and a sync must not wait for it.
//! - D3: the log is trimmed only up to the oldest record that holds an operation no durable commit
//!   contains, of whichever dataset ([`crate::logged::LoggedRecords`]); a dataset without such records does not
//!   hold it back.

use super::Dataset;
use crate::Result;
use crate::queue::Queued;
use offshoot_format::operation::{BATCH_HEADER_LEN, encode_batch_header};
use offshoot_intent_log::IntentLog;
use std::io::IoSlice;

/// A log record is closed when it has this many bytes.
const RECORD_LEN_GOAL: usize = 1 << 20;

impl Dataset {
    /// Makes everything done so far to this dataset durable (`fsync`, `fdatasync`, `syncfs`).
    pub fn sync(&self) -> Result<()> {
        self.check_usable()?;
        let target = {
            let queue = self.queue.lock();
            if queue.applied >= queue.last {
                return Ok(());
            }
            queue.last
        };
        let logged = self.ground.log.get().zip(self.log_queue(target));
        if logged.is_some_and(|(log, sequence)| log.sync(sequence).is_ok()) {
            return Ok(());
        }
        self.commit_up_to(target)
    }

    /// Puts the queue into the log. Returns the sequence of a record at or after the one that holds
    /// operation `target`, or `None` if it could not be logged.
    fn log_queue(&self, target: u64) -> Option<u64> {
        let log = self.ground.log.get()?;
        // D1: a second caller finds the queue empty and waits for the same record.
        let mut last_sequence = self.log_order.lock();
        let (mut first, entries) = {
            let mut queue = self.queue.lock();
            if !queue.can_log() {
                return None;
            }
            queue.take()
        };
        if entries.is_empty() {
            return (*last_sequence > 0).then_some(*last_sequence);
        }
        let mut batch: Vec<Queued> = Vec::new();
        let mut batch_len = 0;
        let mut entries = entries.into_iter().peekable();
        while let Some(entry) = entries.next() {
            batch_len += entry.len() + 4;
            batch.push(entry);
            if entries.peek().is_some() && batch_len < RECORD_LEN_GOAL {
                continue;
            }
            match self.append_batch(log, first, &batch) {
                Ok(sequence) => *last_sequence = sequence,
                Err(reason) => {
                    tracing::debug!(dataset = %self.id, %reason, "a commit instead of the log");
                    self.queue.lock().give_up_log();
                    self.ground.request_commit();
                    return None;
                }
            }
            first += batch.len() as u64;
            batch.clear();
            batch_len = 0;
        }
        debug_assert!(first > target);
        Some(*last_sequence)
    }

    fn append_batch(
        &self,
        log: &IntentLog,
        first: u64,
        batch: &[Queued],
    ) -> Result<u64, offshoot_intent_log::Error> {
        let header = encode_batch_header(self.id, first, batch.len() as u32);
        debug_assert_eq!(header.len(), BATCH_HEADER_LEN);
        let lengths: Vec<[u8; 4]> =
            batch.iter().map(|queued| (queued.len() as u32).to_le_bytes()).collect();
        let mut parts = vec![IoSlice::new(&header)];
        for (queued, length) in batch.iter().zip(&lengths) {
            parts.push(IoSlice::new(length));
            parts.push(IoSlice::new(&queued.head));
            parts.extend(queued.data.iter().map(|piece| IoSlice::new(piece.bytes())));
        }
        let last = first + batch.len() as u64 - 1;
        self.ground.logged.append(log, self.id, last, &parts)
    }
}
