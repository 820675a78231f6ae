//! Everything that decodes bytes from a disk, a network or another process, each as a target for a
//! fuzzer.
//!
//! A target may refuse its input, but not with a panic, a hang or excessive memory; what it accepts it
//! must be able to write again. Checksums are corrected before a target decodes (`sealed`), or no
//! fuzzer would ever get past them.
//!
//! `scripts/fuzz.sh` searches, with libFuzzer; `cargo test` replays what `corpus/` keeps.

pub mod corpus;
mod directory;
mod format;
mod keeper;
mod masking;
mod memory;
mod postgres;
mod replication;
mod requests;
mod store;
mod target;

pub use target::Target;

#[global_allocator]
static MEMORY: memory::Bounded = memory::Bounded;

/// Every target.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    [
        format::TARGETS,
        store::TARGETS,
        postgres::TARGETS,
        requests::TARGETS,
        keeper::TARGETS,
        masking::TARGETS,
        replication::TARGETS,
    ]
    .into_iter()
    .flatten()
}
