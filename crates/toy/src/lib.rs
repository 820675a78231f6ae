//! A toy database and its connector: what tests of the engine run on where PostgreSQL would take minutes.
//!
//! The database is a map of keys to values, made by an append-only journal of commits. Its server, `toyd`
//! ([`serve`]), is a real process that a test can kill; it speaks lines of text on a Unix socket and, if told to,
//! on a loopback port.
//!
//! ```text
//! DATA_DIR
//!   state         the last checkpoint, with a checksum          (state.rs)
//!   toy.conf      what the server is for, and its settings      (conf.rs)
//!   journal/      files of 64 KiB, NNNNNNNNNNNN.toy, of records (journal.rs, record.rs)
//!   reservations  up to where the journal must stay, by name    (database.rs)
//! ```
//! A position is a byte of the journal, written `j1234`; a commit's label is its number. The journal of a source
//! is received into files of the same form, so a replay is just a journal that was cut there.
//!
//! The connector does all its file work through `DataDir`, as the engine demands; the server uses plain files.

mod address;
mod checker;
mod client;
mod conf;
mod connector;
mod daemon;
mod database;
mod follow;
mod inquirer;
mod journal;
mod masker;
mod program;
mod received;
mod record;
mod remembered;
mod server;
mod source;
mod state;
mod stream;

pub use client::{Client, Refused};
pub use connector::{KIND, Toy};
pub use daemon::serve;
pub use journal::{BEGIN, SEGMENT_BYTES, segment_name};
pub use server::LOGIN;
pub use state::{VERSION, create, create_of_version};
