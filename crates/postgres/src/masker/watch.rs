//! How far masking has come, and whether it goes on.

use super::wire::{Door, Wire};
use offshoot_connector::{MaskedTable, TableState};
use offshoot_types::{ErrorKind, Failure};
use parking_lot::Mutex;
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
