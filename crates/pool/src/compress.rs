//! Compression of single blocks.
//!
//! zstd at level 1 is the default: on pages of a database it makes 2.0–4.0× where LZ4 makes 1.5–2.0×,
//! and decoding (7–15 µs for 8 KiB) stays small against a read from disk. A sample first detects content
//! that does not shrink, since trying costs as much as succeeding. If it is a page, it is stored as one,
//! and the device gets its room back as soon as it is dead.

use offshoot_format::segment::{BlockKind, Codec, PAGE_LEN};
use std::cell::RefCell;

const LEVEL: i32 = 1;
/// Bytes sampled to detect compressible content.
const SAMPLE_LEN: usize = 1024;
/// Blocks shorter than this are compressed without sampling.
const SAMPLED_LEN_MIN: usize = 2048;

thread_local! {
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
}

/// The codec to store `content` with, and the bytes when that is not the content itself. `pages`:
/// whether there may be segments of pages.
pub(crate) fn compress(kind: BlockKind, content: &[u8], pages: bool) -> (Codec, Option<Vec<u8>>) {
    let page = pages && kind == BlockKind::Data && content.len() == PAGE_LEN as usize;
    let as_it_is = if page { Codec::Page } else { Codec::Raw };
    if looks_random(content) {
        return (as_it_is, None);
    }
    let compressed = COMPRESSOR.with_borrow_mut(|slot| {
        if slot.is_none() {
            *slot = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        slot.as_mut()?.compress(content).ok()
    });
    match compressed {
        // Saving less than a sixteenth is not worth the decoding.
        Some(bytes) if bytes.len() < content.len() - content.len() / 16 => {
            (Codec::Zstd, Some(bytes))
        }
        _ => (as_it_is, None),
    }
}

/// The content of stored bytes; the caller compares its hash.
pub(crate) fn decompress(
    codec: Codec,
    stored: impl AsRef<[u8]> + Into<Vec<u8>>,
    raw_len: u32,
) -> Result<Vec<u8>, String> {
    let raw_len = raw_len as usize;
    let content = match codec {
        Codec::Raw | Codec::Page => stored.into(),
        Codec::Zstd => DECOMPRESSOR.with_borrow_mut(|slot| {
            if slot.is_none() {
                *slot = zstd::bulk::Decompressor::new().ok();
            }
            let decompressor = slot.as_mut().ok_or("no memory for decompression")?;
            decompressor
                .decompress(stored.as_ref(), raw_len)
                .map_err(|error| format!("zstd: {error}"))
        })?,
        Codec::Lz4 => lz4_flex::block::decompress(stored.as_ref(), raw_len)
            .map_err(|error| format!("LZ4: {error}"))?,
    };
    if content.len() != raw_len {
        return Err(format!("{} bytes instead of {raw_len}", content.len()));
    }
    Ok(content)
}

/// Whether a sample's bytes are spread as evenly as encrypted or compressed content's.
///
/// With `n` bytes spread evenly over 256 values the sum of the squared counts is about n + n²/256 (5,120
/// for 1,024), with a standard deviation of about 90. Text and database pages have several times that. A
/// quarter more of n²/256 means 7.7 bits for a byte: less than a sixteenth to save.
fn looks_random(content: &[u8]) -> bool {
    if content.len() < SAMPLED_LEN_MIN {
        return false;
    }
    let mut counts = [0u32; 256];
    // Runs of eight from all over: page headers and tails are rarely alike.
    let step = content.len() / (SAMPLE_LEN / 8);
    for run in content.chunks_exact(step) {
        run[..8.min(run.len())].iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    }
    let n: u32 = counts.iter().sum();
    let squares: u32 = counts.iter().map(|count| count * count).sum();
    squares < n + n * n / 256 + n * n / 1024
}

#[cfg(test)]
mod tests;
