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

#[global_allocator]
static MEMORY: memory::Bounded = memory::Bounded;

/// Something that decodes.
pub struct Target {
    /// What `scripts/fuzz.sh` and `corpus/` call it.
    pub name: &'static str,
    /// Decodes; panics where that went wrong.
    pub run: fn(&[u8]),
    /// Inputs that are real encodings.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    [format::TARGETS, store::TARGETS, postgres::TARGETS, requests::TARGETS, keeper::TARGETS]
        .into_iter()
        .flatten()
}

/// A copy of `bytes` with the CRC32C of a range at `at`, where both lie inside.
fn sealed(bytes: &[u8], range: std::ops::Range<usize>, at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(covered) = bytes.get(range) {
        let checksum = crc32c::crc32c(covered);
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&checksum.to_le_bytes());
        }
    }
    bytes
}
