//! Passes states of files from one pool to another, by content.
//!
//! Everything in a pool hangs from hashes, so a state is known by the name of its root, and what two pools have in common
//! by names alone. Blocks travel as they are stored, compressed; whoever receives one compares its hash with its name. What
//! travels is a sequence of [frames](wire), described in `docs/replication-protocol.md`. This crate knows neither
//! databases nor the catalog: what the states are is said in a manifest, which is bytes here.
//!
//! - [`archive`]: all of it in one direction, into a file or a stream;
//! - [`exchange`]: by question and answer, so that only what the target lacks is sent, and a cut costs little;
//! - [`lacking`]: how much would come, before it does;
//! - [`talk`]: an exchange by a connection, and what two engines say to each other before it;
//! - [`code`]: what lets an engine in that is not known yet.

pub mod archive;
mod checkpoints;
pub mod code;
mod error;
pub mod exchange;
pub mod lacking;
mod opening;
pub mod talk;
pub mod walk;
pub mod wire;

pub use error::{Error, Result};
