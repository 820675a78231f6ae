//! Datasets that lack acknowledged operations because the log that held them was damaged.
//!
//! Such a dataset is a prefix of its history: nothing after a missing operation is applied. It is marked in
//! the directory, in a durable root, before the log is used again. From then on its files are refused with
//! [`Error::Lost`] until somebody accepts the prefix ([`Store::accept_loss`]) or deletes the dataset. Its
//! snapshots, which are in commits, and all other datasets are not affected.

use super::Store;
use crate::directory::DirectoryEntry;
use crate::{Error, Result};
use offshoot_format::directory::DatasetRecord;
use offshoot_intent_log::{Damage, Replay};
use offshoot_types::{BlockHash, DatasetId};
use std::collections::{BTreeMap, BTreeSet};

/// What a replay finds out about losses.
#[derive(Default)]
pub(super) struct Losses {
    lost: BTreeSet<DatasetId>,
    /// What outlived the engine elsewhere.
    complete: BTreeSet<DatasetId>,
    /// The last record of each dataset that followed what was applied before.
    applied: BTreeMap<DatasetId, u64>,
}

impl Losses {
    pub(super) fn has(&self, dataset: DatasetId) -> bool {
        self.lost.contains(&dataset)
    }

    pub(super) fn add(&mut self, dataset: DatasetId) {
        self.lost.insert(dataset);
    }

    pub(super) fn note_applied(&mut self, dataset: DatasetId, sequence: u64) {
        self.applied.insert(dataset, sequence);
    }

    pub(super) fn exclude(&mut self, dataset: DatasetId) {
        self.lost.remove(&dataset);
        self.complete.insert(dataset);
    }

    /// Whether a dataset with operations up to `last` lacks some that a damaged part of the log held.
    fn concerns(&self, damage: &Damage, dataset: DatasetId, last: u64) -> bool {
        if self.complete.contains(&dataset) {
            return false;
        }
        if damage.streams.get(&dataset.0).is_some_and(|position| *position > last) {
            return true;
        }
        // If later records follow without a gap, none of its operations were there.
        let later = self.applied.get(&dataset).is_some_and(|sequence| *sequence > damage.last);
        !damage.all_known && !later
    }
}

impl Store {
    /// Datasets that lost acknowledged operations; see [`Error::Lost`].
    pub fn lost(&self) -> Vec<DatasetId> {
        let directory = self.ground.directory.read();
        let lost = directory.datasets.iter().filter(|(_, record)| record.lost);
        lost.map(|(id, _)| *id).collect()
    }

    /// Accepts what is left of a dataset, durably. It is no error if nothing was lost.
    ///
    /// # Errors
    /// `NoDataset`, and the pool's.
    pub fn accept_loss(&self, dataset: DatasetId) -> Result<()> {
        let known = self.ground.directory.read().datasets.get(&dataset).map(|record| record.lost);
        match known {
            None => Err(Error::NoDataset(dataset)),
            Some(false) => Ok(()),
            Some(true) => self.set_lost(&[dataset], false),
        }
    }

    fn set_lost(&self, datasets: &[DatasetId], lost: bool) -> Result<()> {
        let transaction = self.ground.pool.begin_freeing();
        self.ground.directory.commit(&self.ground.pool, transaction, |directory, _| {
            let there = datasets.iter().filter_map(|id| Some((*id, directory.datasets.get(id)?)));
            let change = |(id, record): (DatasetId, &DatasetRecord)| {
                DirectoryEntry::Dataset(id, Some(DatasetRecord { lost, ..record.clone() }))
            };
            Ok(there.map(change).collect())
        })
    }

    /// Marks the datasets that a replay could not restore completely.
    pub(super) fn mark_lost(&self, losses: &Losses, replay: &Replay) -> Result<()> {
        let ground = &self.ground;
        let mut lost = losses.lost.clone();
        let records: Vec<(DatasetId, u64)> = {
            let directory = ground.directory.read();
            directory.datasets.iter().map(|(id, record)| (*id, record.applied)).collect()
        };
        for (id, applied) in records {
            let loaded = self.loaded.get(id).map(|dataset| dataset.last_operation());
            let last = loaded.unwrap_or(applied);
            if replay.damage.iter().any(|damage| losses.concerns(damage, id, last)) {
                lost.insert(id);
            }
        }
        self.report(replay);
        if lost.is_empty() {
            return Ok(());
        }
        let lost: Vec<DatasetId> = lost.into_iter().collect();
        self.set_lost(&lost, true)?;
        for dataset in lost.iter().filter_map(|id| self.loaded.remove(*id)) {
            dataset.forget();
        }
        Ok(())
    }

    fn report(&self, replay: &Replay) {
        let tell = |detail: &str| self.ground.pool.add_structure_fault(BlockHash::ZERO, detail);
        if replay.mended > 0 {
            tell("a flipped bit of the intent log was turned back; nothing is lost");
        }
        for damage in &replay.damage {
            let Damage { first, last, .. } = damage;
            tell(&format!("records {first} to {last} of the intent log are damaged"));
        }
    }
}

#[cfg(test)]
mod tests;
