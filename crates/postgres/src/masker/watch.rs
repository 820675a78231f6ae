//! How far masking has come, and whether it goes on.

use crate::wire::{Door, Wire};
use offshoot_connector::{MaskedTable, TableState};
use offshoot_types::{ErrorKind, Failure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Ends all sessions of the masker but the one that asks.
const END_SESSIONS: &str = "SELECT pg_catalog.pg_terminate_backend(pid) \
    FROM pg_catalog.pg_stat_activity \
    WHERE application_name = 'offshoot masking' AND pid <> pg_catalog.pg_backend_pid()";

/// What the threads of a masking share.
#[derive(Debug, Default)]
pub(super) struct Watch {
    stopped: AtomicBool,
    values: AtomicU64,
    tables: Mutex<Vec<MaskedTable>>,
    /// Rows before and after, by table.
    counts: Mutex<BTreeMap<usize, (u64, u64)>>,
    /// What was removed, and how many.
    removed: Mutex<BTreeMap<String, u64>>,
}

impl Watch {
    pub(super) fn new(tables: Vec<MaskedTable>) -> Watch {
        Watch { tables: Mutex::new(tables), ..Watch::default() }
    }

    pub(super) fn tables(&self) -> Vec<MaskedTable> {
        self.tables.lock().clone()
    }

    pub(super) fn values(&self) -> u64 {
        self.values.load(Ordering::Relaxed)
    }

    /// Some rows were written, in which so many values were replaced.
    pub(super) fn wrote(&self, table: usize, rows: u64, values: u64) {
        self.values.fetch_add(values, Ordering::Relaxed);
        if let Some(table) = self.tables.lock().get_mut(table) {
            table.rows += rows;
            table.state = TableState::Running;
        }
    }

    /// So many rows of a table were there, and so many are left.
    pub(super) fn counted(&self, table: usize, before: u64, after: u64) {
        let mut counts = self.counts.lock();
        let sum = counts.entry(table).or_default();
        *sum = (sum.0 + before, sum.1 + after);
    }

    /// So many rows of a table were there, and so many are left, whatever was counted.
    pub(super) fn count(&self, table: usize, before: u64, after: u64) {
        self.counts.lock().insert(table, (before, after));
    }

    /// So many rows of a table will be written.
    pub(super) fn expect(&self, table: usize, rows: u64) {
        if let Some(table) = self.tables.lock().get_mut(table) {
            table.rows_total = rows;
        }
    }

    pub(super) fn counts(&self, table: usize) -> (u64, u64) {
        self.counts.lock().get(&table).copied().unwrap_or_default()
    }

    /// So many of something were removed.
    pub(super) fn removed(&self, what: &str, count: u64) {
        *self.removed.lock().entry(what.to_owned()).or_default() += count;
    }

    pub(super) fn all_removed(&self) -> BTreeMap<String, u64> {
        self.removed.lock().clone()
    }

    pub(super) fn begin(&self, table: usize) {
        self.wrote(table, 0, 0);
    }

    /// All of it is masked: what was estimated is known now.
    pub(super) fn done(&self, table: usize) {
        if let Some(table) = self.tables.lock().get_mut(table) {
            table.rows_total = table.rows;
            table.state = TableState::Done;
        }
    }

    /// Nothing new is begun, and what runs in the server ends.
    pub(super) fn stop(&self, door: &Door) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Ok(mut wire) = Wire::connect_any(door) {
            let _ = wire.execute(END_SESSIONS);
        }
    }

    /// # Errors
    /// `Cancelled` if nothing may go on.
    pub(super) fn go_on(&self) -> Result<(), Failure> {
        match self.stopped.load(Ordering::Relaxed) {
            true => Err(Failure::new(ErrorKind::Cancelled, "the masking was cancelled", "")),
            false => Ok(()),
        }
    }
}
