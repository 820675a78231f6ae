//! What precedes a block in a segment of frames: plain, or sealed in an encrypted pool.
//!
//! A sealed frame does not tell its block's name, which is a plain hash of the content: whoever has the
//! device could try whether some content is in the pool. With the key the name is found by opening the
//! content and hashing it.

use crate::block::name_of;
use crate::compress::decompress;
use crate::table::Entry;
use offshoot_format::seal::Seals;
use offshoot_format::segment::{FRAME_LEN, Frame, Layout, SealedFrame};
use offshoot_types::BlockHash;
use std::borrow::Cow;

/// A block as it is written to its segment.
pub(crate) struct Block<'a> {
    pub(crate) layout: Layout,
    pub(crate) stored_len: u32,
    /// Goes before the content, unless it is a page.
    pub(crate) header: [u8; FRAME_LEN as usize],
    pub(crate) content: Cow<'a, [u8]>,
}

/// Seals what is stored of a block, if the pool is encrypted.
pub(crate) fn seal<'a>(seals: &Seals, frame: &Frame, stored: &'a [u8]) -> crate::Result<Block<'a>> {
    let (layout, stored_len) = (frame.codec.layout(), frame.stored_len);
    if !seals.are_on() {
        let (header, content) = (frame.encode(), Cow::Borrowed(stored));
        return Ok(Block { layout, stored_len, header, content });
    }
    let mut sealed = stored.to_vec();
    let header = frame.seal(seals, &mut sealed)?;
    Ok(Block { layout, stored_len, header, content: Cow::Owned(sealed) })
}

/// What was stored of a block, given what its segment has of it.
pub(crate) fn open<'a>(
    seals: &Seals,
    header: &[u8],
    stored: &'a [u8],
) -> Result<Cow<'a, [u8]>, String> {
    if !seals.are_on() {
        return Ok(Cow::Borrowed(stored));
    }
    let frame = SealedFrame::decode(header).map_err(|error| error.to_string())?;
    frame.open(seals, stored).map(Cow::Owned).map_err(|error| error.to_string())
}

/// What the frame with this header is; a place without one is none. If its content is sealed and does
/// not open, its name is unknown: zeros. `stored` gets the length of what the segment has of the block.
pub(crate) fn identify<'a>(
    seals: &Seals,
    header: &[u8],
    stored: impl FnOnce(u32) -> Option<&'a [u8]>,
) -> Option<Frame> {
    if !seals.are_on() {
        return Frame::decode(header).ok();
    }
    let sealed = SealedFrame::decode(header).ok()?;
    let SealedFrame { kind, codec, stored_len, raw_len, .. } = sealed;
    let content = stored(stored_len)
        .and_then(|stored| sealed.open(seals, stored).ok())
        .and_then(|stored| decompress(codec, stored, raw_len).ok());
    let hash = content.map_or(BlockHash::ZERO, |content| name_of(kind, &content));
    Some(Frame { hash, kind, codec, stored_len, raw_len })
}

/// Compares a frame with what the table says of it; a page has none. A sealed one has no name: its
/// content says it.
pub(crate) fn check(
    seals: &Seals,
    bytes: &[u8],
    hash: &BlockHash,
    entry: &Entry,
) -> Result<(), String> {
    if entry.place().layout == Layout::Pages {
        return Ok(());
    }
    let frame = match seals.are_on() {
        false => Frame::decode(bytes),
        true => SealedFrame::decode(bytes).map(|frame| {
            let SealedFrame { kind, codec, stored_len, raw_len, .. } = frame;
            Frame { hash: *hash, kind, codec, stored_len, raw_len }
        }),
    };
    let frame = frame.map_err(|error| error.to_string())?;
    let (kind, codec) = (entry.kind(), entry.codec());
    let (stored_len, raw_len) = (entry.place().stored_len, entry.raw_len());
    if frame == (Frame { hash: *hash, kind, codec, stored_len, raw_len }) {
        Ok(())
    } else {
        Err("its frame says another thing than the block table".to_owned())
    }
}
