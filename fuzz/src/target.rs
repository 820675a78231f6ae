//! What a fuzzer is given.

/// Something that decodes.
pub struct Target {
    /// What `scripts/fuzz.sh` and `corpus/` call it.
    pub name: &'static str,
    /// Decodes; panics where that went wrong.
    pub run: fn(&[u8]),
    /// Inputs that are real encodings.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// A copy of `bytes` with the CRC32C of a range at `at`, where both lie inside.
pub(crate) fn sealed(bytes: &[u8], range: std::ops::Range<usize>, at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(covered) = bytes.get(range) {
        let checksum = crc32c::crc32c(covered);
        if let Some(place) = bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&checksum.to_le_bytes());
        }
    }
    bytes
}
