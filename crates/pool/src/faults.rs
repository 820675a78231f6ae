//! Damage found since the pool was opened.

use crate::table::Entry;
use crate::{Error, Fault};
use offshoot_os::Clock;
use offshoot_types::BlockHash;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Longest description of structures, in bytes.
const DETAIL_LEN_MAX: usize = 1000;

/// One fault for each damaged block, and one, [`BlockHash::ZERO`], for all structures.
pub(crate) struct Faults {
    clock: Arc<dyn Clock>,
    found: Mutex<HashMap<BlockHash, Fault>>,
}

impl Faults {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Faults {
        Faults { clock, found: Mutex::default() }
    }

    /// Records what is wrong with a block's stored copy.
    pub(crate) fn add(&self, hash: BlockHash, entry: &Entry, error: &Error) {
        let place = entry.place();
        self.note(hash, place.segment, place.offset, error.to_string());
    }

    /// Records what is wrong with a structure, which has no block name, or with a lost block.
    pub(crate) fn add_structure(&self, hash: BlockHash, detail: &str) {
        self.note(hash, 0, 0, detail.to_owned());
    }

    fn note(&self, hash: BlockHash, segment: u32, offset: u32, detail: String) {
        let now = self.clock.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut faults = self.found.lock();
        let fault = faults.entry(hash).or_insert_with(|| {
            tracing::error!(%hash, segment, offset, detail, "damage found");
            let detail = detail.clone();
            Fault { hash, segment, offset, detail, found_at_unix_s: now, count: 0 }
        });
        fault.count += 1;
        // All that is wrong with structures is one fault: they have no names.
        let new = !fault.detail.contains(&detail) && fault.detail.len() < DETAIL_LEN_MAX;
        if hash.is_zero() && new {
            tracing::error!(detail, "damage found");
            fault.detail = format!("{}; {detail}", fault.detail);
        }
    }

    /// A block is healed or gone.
    pub(crate) fn forget(&self, hash: &BlockHash) {
        self.found.lock().remove(hash);
    }

    /// Whether the stored copy of a block is known to be damaged. Cheap while nothing is.
    pub(crate) fn contains(&self, hash: &BlockHash) -> bool {
        self.found.lock().contains_key(hash)
    }

    pub(crate) fn len(&self) -> usize {
        self.found.lock().len()
    }

    /// All, in the order of block names.
    pub(crate) fn all(&self) -> Vec<Fault> {
        let mut faults: Vec<Fault> = self.found.lock().values().cloned().collect();
        faults.sort_by_key(|fault| fault.hash);
        faults
    }
}
