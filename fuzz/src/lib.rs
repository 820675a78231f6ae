//! Everything that decodes bytes of a disk, a network or another process, each as a target for a fuzzer.
//!
//! A target may refuse its input in any way but a panic, a hang or memory out of proportion; what it
//! accepts it must be able to write again. Checksums are put right before a target decodes (`sealed`),
//! or no fuzzer would ever see what lies behind them.
//!
//! `scripts/fuzz.sh` searches, with libFuzzer; `cargo test` replays what `corpus/` keeps.

pub mod corpus;
mod directory;
mod format;
mod keeper;
mod memory;
mod postgres;
mod requests;
mod store;
mod target;

pub use target::Target;

#[global_allocator]
static MEMORY: memory::Bounded = memory::Bounded;

/// Every target.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    [format::TARGETS, store::TARGETS, postgres::TARGETS, requests::TARGETS, keeper::TARGETS]
        .into_iter()
        .flatten()
}
