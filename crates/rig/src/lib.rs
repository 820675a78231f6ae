//! The basis of the demonstration, the benchmarks and the black-box tests: a sample PostgreSQL
//! [`Source`] with steady, recorded writes, and an [`Engine`] in a process of its own that is spoken to
//! as a user would, through the command line.
//!
//! Nothing here knows the engine from inside: whatever stands on it, any script can do.

mod cluster;
mod database;
mod engine;
mod history;
mod installation;
mod running;
mod scratch;
mod source;
mod waiting;
mod writer;

pub use cluster::Initdb;
pub use database::Database;
pub use engine::{CommandError, Engine, EngineOptions};
pub use history::{History, Tick};
pub use installation::{find_installations, find_newest, major_version};
pub use scratch::{Scratch, bytes_below, clean_on_signal};
pub use source::{Source, SourceOptions};
pub use waiting::wait_until;
pub use writer::Writer;
