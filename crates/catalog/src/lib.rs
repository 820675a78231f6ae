//! The catalog: what the engine must remember, in one SQLite file.
//!
//! - **Objects** ([`Record`]: dSources, VDBs, timeflows, snapshots, bookmarks, users, tokens) are rows of one table:
//!   kind, id, unique name, owner and a JSON body, so that a new field needs no migration.
//! - **Jobs** ([`Job`]) are the durable progress of workflows.
//! - **Faults** and **events** say what is wrong and what happened; **settings** are key and value;
//!   **secrets** are passwords, never printed, and in the file only sealed, under keys kept elsewhere.
//! - The **audit** says who asked for what. Entries are only added; the oldest go when there are many.
//!
//! Invariants:
//! 1. A method that returns `Ok` has made its change durable (WAL mode, `synchronous=FULL`).
//! 2. Several changes that belong together go through [`Catalog::transaction`]: all or nothing.
//! 3. An id is never given twice, not even after a deletion or a crash.
//! 4. A name is unique among dSources and VDBs together, and among bookmarks.
//! 5. What is secret is in no table but `sealed`, and there only as [`Keyring`] sealed it.
//! 6. In an encrypted pool, whatever says what something is called or contains goes through `seal` or `label` (`rows`).
//! 7. Invalid bytes in the file are [`Error::Damaged`], never a panic.
//!
//! One connection behind one mutex: transactions are short and the catalog is never on the path of
//! data reads or writes.

mod audit;
mod error;
mod event;
mod job;
mod job_state;
mod key_id;
mod migration;
mod record;
mod rows;
mod seal;
mod sealed;
mod secret;
mod store;
mod subject;

pub use audit::{AUDIT_KEPT, AuditEntry, AuditFilter};
pub use error::Error;
pub use event::{Event, Fault, Happening};
pub use job::{Job, Progress, StepRecord, StepState};
pub use job_state::JobState;
pub use key_id::KeyId;
pub use record::Record;
pub use rows::{RowKey, register as register_row_functions};
pub use seal::{Keyring, SecretKey};
pub use store::{Catalog, Transaction};
pub use subject::Subject;
