//! Damage on the device.

use anyhow::Result;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The bit that is flipped.
pub const FLIPPED: u8 = 0x10;

/// Flips a bit of the first of these bytes wherever they occur in a pool's segments; returns how many places there were.
///
/// # Errors
/// When a segment cannot be read or written.
pub fn flip(segments: &Path, pattern: &[u8]) -> Result<usize> {
    let mut flipped = 0;
    for entry in std::fs::read_dir(segments)? {
        let file = std::fs::File::options().read(true).write(true).open(entry?.path())?;
        let mut bytes = vec![0; usize::try_from(file.metadata()?.len())?];
        file.read_exact_at(&mut bytes, 0)?;
        let places = bytes.windows(pattern.len()).enumerate().filter(|(_, at)| *at == pattern);
        for at in places.map(|(at, _)| at) {
            file.write_all_at(&[bytes[at] ^ FLIPPED], u64::try_from(at)?)?;
            flipped += 1;
        }
        file.sync_all()?;
    }
    Ok(flipped)
}
