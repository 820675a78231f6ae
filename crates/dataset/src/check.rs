//! Verifies a whole store that no engine has open: the pool, then the datasets in it.

use crate::blocks::{NodeSource, StoreNodes};
use crate::holders::{Search, StateId};
use crate::tree;
use crate::{Holders, Result};
use offshoot_format::directory::{
    DatasetRecord, DirectoryKey, SnapshotRecord, StoreExtra, TreeState,
};
use offshoot_format::operation::{Batch, Operation};
use offshoot_intent_log::{Damage, IntentLog};
use offshoot_os::disk::Disk;
use offshoot_pool::{BlockData, DataKey, Finding, PoolCheck};
use offshoot_types::{BlockHash, DatasetId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) mod files;

/// What a check looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Blocks read and verified.
    pub blocks: u64,
    /// Their stored bytes.
    pub bytes: u64,
    /// Datasets.
    pub datasets: u64,
    /// Snapshots.
    pub snapshots: u64,
    /// Inodes of all of these; states that datasets and snapshots share count once.
    pub inodes: u64,
    /// Records of the intent log that wait for the next start.
    pub log_records: u64,
    /// What is not as it should be; empty for a sound store.
    pub findings: Vec<Finding>,
    /// Damaged and lost blocks, with those who hold them.
    pub damage: Vec<(BlockHash, Holders)>,
}

/// Verifies everything in a store: label, roots, block table, every block of every segment, reference
/// counts, directory, inodes, names, links, block maps, intent log. Changes nothing. `progress` gets bytes
/// done and bytes in all.
///
/// # Errors
/// If it cannot begin: no store, in use, another version, or no valid root.
pub fn check(disk: Arc<dyn Disk>, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
    check_encrypted(disk, None, progress)
}

/// As [`check`], with the key of an encrypted pool.
///
/// # Errors
/// As [`check`]; also where the key is missing.
pub fn check_encrypted(
    disk: Arc<dyn Disk>,
    data_key: Option<&DataKey>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CheckReport> {
    let mut pool = PoolCheck::open(disk, Arc::new(StoreNodes), data_key)?;
    pool.verify_segments(progress);
    pool.count_references();
    let mut report =
        CheckReport { blocks: pool.blocks, bytes: pool.bytes, ..CheckReport::default() };
    let applied = check_directory(&mut pool, &mut report);
    check_log(&mut pool, &applied, &mut report);
    report.damage.sort_unstable_by_key(|(hash, _)| *hash);
    report.findings = pool.into_findings();
    Ok(report)
}

/// The pool's nodes, read past any cache.
struct Nodes<'a>(&'a PoolCheck);

impl NodeSource for Nodes<'_> {
    fn read_node(&self, hash: &BlockHash) -> Result<BlockData> {
        Ok(BlockData::new(self.0.read(hash)?))
    }
}

/// Checks the directory and each state in it. Returns the last operation applied to each dataset.
fn check_directory(pool: &mut PoolCheck, report: &mut CheckReport) -> BTreeMap<DatasetId, u64> {
    const OBJECT: &str = "directory";
    let mut applied = BTreeMap::new();
    let mut problems = Vec::new();
    let mut found = Vec::new();
    // States by their root, with everyone who has them.
    let mut states: BTreeMap<BlockHash, (TreeState, String)> = BTreeMap::new();
    let extra = StoreExtra::decode(pool.extra()).unwrap_or_else(|error| {
        problems.push(error.to_string());
        StoreExtra { next_dataset: u64::MAX, next_snapshot: u64::MAX }
    });
    let mut add_state = |state: TreeState, holder: String| {
        let known = states.entry(state.root).or_insert_with(|| (state, String::new()));
        let separator = if known.1.is_empty() { "" } else { ", " };
        known.1.push_str(&format!("{separator}{holder}"));
    };
    let scanned = tree::scan(&Nodes(pool), pool.root(), &[], &mut |entry| {
        let outcome = DirectoryKey::decode(&entry.key).and_then(|key| {
            match key {
                DirectoryKey::Dataset(id) => {
                    let record = DatasetRecord::decode(&entry.value)?;
                    report.datasets += 1;
                    if id.0 >= extra.next_dataset {
                        problems.push(format!("{id} has a number that is still to be given"));
                    }
                    if record.lost {
                        let detail = "acknowledged writes are lost with a damaged intent log";
                        problems.push(format!("{id}: {detail}"));
                    }
                    applied.insert(id, record.applied);
                    found.push((StateId::Dataset(id), record.tree.clone()));
                    add_state(record.tree, id.to_string());
                }
                DirectoryKey::Snapshot(id) => {
                    let record = SnapshotRecord::decode(&entry.value)?;
                    report.snapshots += 1;
                    if id.0 >= extra.next_snapshot {
                        problems.push(format!("{id} has a number that is still to be given"));
                    }
                    found.push((StateId::Snapshot(id), record.tree.clone()));
                    add_state(record.tree, id.to_string());
                }
            }
            Ok(())
        });
        if let Err(error) = outcome {
            problems.push(error.to_string());
        }
        ControlFlow::Continue(())
    });
    problems.extend(scanned.err().map(|error| error.to_string()));
    problems.into_iter().for_each(|problem| pool.add(OBJECT, problem));
    let mut maps = files::Maps::default();
    report.damage = holders_of(pool, &found);
    for (state, holders) in states.into_values() {
        report.inodes += state.inodes;
        for problem in files::check_state(&Nodes(pool), &state, &mut maps) {
            pool.add(&holders, problem);
        }
    }
    applied
}

/// Who holds what is damaged.
fn holders_of(pool: &PoolCheck, states: &[(StateId, TreeState)]) -> Vec<(BlockHash, Holders)> {
    let damaged = pool.damaged();
    if damaged.is_empty() {
        return Vec::new();
    }
    let nodes = Nodes(pool);
    let mut search = Search::new(&nodes, &damaged);
    search.look_at_directory(pool.root());
    states.iter().for_each(|(id, tree)| search.look(*id, tree));
    search.end().into_iter().collect()
}

/// Decodes what waits in the intent log, and checks that it continues from what is applied.
fn check_log(pool: &mut PoolCheck, applied: &BTreeMap<DatasetId, u64>, report: &mut CheckReport) {
    const OBJECT: &str = "intent log";
    let replay = match IntentLog::replay_sealed(pool.disk(), pool.seals()) {
        Ok(replay) => replay,
        // A creation that was cut short leaves none; the first opening makes it.
        Err(_) if pool.root().is_zero() => return,
        Err(error) => return pool.add(OBJECT, error.to_string()),
    };
    for damage in &replay.damage {
        let Damage { first, last, .. } = damage;
        pool.add(OBJECT, format!("records {first} to {last} are damaged"));
    }
    if replay.mended > 0 {
        let detail =
            format!("{} records have a flipped bit; the next start fixes it", replay.mended);
        pool.add(OBJECT, detail);
    }
    let records = replay.records;
    report.log_records = records.len() as u64;
    let mut next: BTreeMap<DatasetId, u64> =
        applied.iter().map(|(id, last)| (*id, last + 1)).collect();
    for record in &records {
        let batch = match Batch::decode(&record.payload) {
            Ok(batch) => batch,
            Err(error) => {
                pool.add(OBJECT, format!("record {}: {error}", record.sequence));
                continue;
            }
        };
        for operation in &batch.operations {
            if let Err(error) = Operation::decode(operation) {
                pool.add(OBJECT, format!("record {}: {error}", record.sequence));
            }
        }
        // Records of a dataset that was deleted since belong to nobody.
        let Some(next) = next.get_mut(&batch.dataset) else { continue };
        if batch.first > *next {
            let (from, until) = (*next, batch.first - 1);
            pool.add(
                OBJECT,
                format!("{}: operations {from} to {until} are missing", batch.dataset),
            );
        }
        *next = (*next).max(batch.first.saturating_add(batch.operations.len() as u64));
    }
}

#[cfg(test)]
mod tests;
