//! What the intent log holds that no durable commit contains.

use crate::Result;
use crate::share::may_take_more;
use offshoot_intent_log::IntentLog;
use offshoot_types::DatasetId;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;

/// Log records that hold operations not yet in a durable commit.
#[derive(Default)]
pub(crate) struct LoggedRecords(Mutex<BTreeMap<DatasetId, VecDeque<LoggedRecord>>>);

struct LoggedRecord {
    /// Number of its last operation.
    last: u64,
    /// Its sequence in the log.
    sequence: u64,
    /// Its bytes there.
    bytes: u64,
}

impl LoggedRecords {
    /// Appends a record and registers it, under one lock so that a trim in between cannot miss it.
    ///
    /// # Errors
    /// Those of the log; `Full` also for a dataset that has more than its share of it.
    pub(crate) fn append(
        &self,
        log: &IntentLog,
        dataset: DatasetId,
        last: u64,
        parts: &[IoSlice<'_>],
    ) -> Result<u64, offshoot_intent_log::Error> {
        let mut records = self.0.lock();
        // D1 of `durability`: replay would mistake a step back for damage.
        let before = records.get(&dataset).and_then(VecDeque::back);
        assert!(before.is_none_or(|before| before.last < last), "{dataset} logs {last} again");
        let own = records.get(&dataset).into_iter().flatten();
        let (held, space) = (own.map(|record| record.bytes).sum(), log.space());
        if !may_take_more(held, space.used, space.total) {
            return Err(offshoot_intent_log::Error::Full);
        }
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        let sequence = log.append(dataset.0, last, parts)?;
        let record = LoggedRecord { last, sequence, bytes };
        records.entry(dataset).or_default().push_back(record);
        Ok(sequence)
    }

    /// Everything of the dataset up to `applied` is in a durable commit; `None`: the dataset is
    /// durably deleted. Trims the log (D3 of `durability`).
    pub(crate) fn commit_done(
        &self,
        log: Option<&IntentLog>,
        dataset: DatasetId,
        applied: Option<u64>,
    ) {
        let mut records = self.0.lock();
        if let Some(own) = records.get_mut(&dataset) {
            while own.front().is_some_and(|record| applied.is_none_or(|to| record.last <= to)) {
                own.pop_front();
            }
            if own.is_empty() {
                records.remove(&dataset);
            }
        }
        let Some(log) = log else { return };
        let oldest = records.values().filter_map(|own| own.front()).map(|front| front.sequence);
        log.trim(oldest.min().unwrap_or_else(|| log.next_sequence()));
    }

    /// The datasets that hold the log back, the one with the oldest record first.
    pub(crate) fn oldest(&self) -> Vec<DatasetId> {
        let records = self.0.lock();
        let mut fronts: Vec<_> = records
            .iter()
            .filter_map(|(id, own)| own.front().map(|front| (front.sequence, *id)))
            .collect();
        fronts.sort_unstable();
        fronts.into_iter().map(|(_, id)| id).collect()
    }
}

#[cfg(test)]
mod tests;
