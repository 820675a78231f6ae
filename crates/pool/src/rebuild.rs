//! Rebuilds the block table from the segments when its own files are damaged.
//!
//! Frames are found by walking each file, and after a hole or damage by looking for the next frame at
//! every possible place; a frame counts only if its content has the hash it names. A page's name is the
//! hash of its content. References are then counted by walking from the root. A block that is referenced
//! but found nowhere stays in the table as lost, with its references.

use crate::block::{NodeChildren, name_of, verify};
use crate::frames;
use crate::segments;
use crate::table::{Entry, Place, Table};
use crate::{Error, Result, Seals};
use offshoot_cache::BlockHashBuilder;
use offshoot_format::segment::{
    BlockKind, Codec, FRAME_ALIGN, FRAME_LEN, Layout, PAGE_LEN, SEGMENT_LEN_MAX,
    decode_segment_header,
};
use offshoot_os::disk::{Disk, DiskFile, read_exact_at};
use offshoot_types::BlockHash;
use std::collections::HashMap;
use std::sync::Arc;

type Found = HashMap<BlockHash, Entry, BlockHashBuilder>;

/// Fills an empty table with what `root` reaches.
pub(crate) fn rebuild(
    disk: &dyn Disk,
    pool_id: &[u8; 16],
    seals: &Seals,
    nodes: &dyn NodeChildren,
    root: BlockHash,
    table: &Table,
) -> Result<()> {
    let names = disk.list(segments::DIR);
    let names = names.map_err(|error| Error::io(format!("list '{}'", segments::DIR), &error))?;
    let mut found = Found::default();
    let mut files = HashMap::new();
    for number in names.iter().filter_map(|name| segments::number_of(name)) {
        let path = segments::path_of(number);
        let io = |error: std::io::Error| Error::io(format!("read '{path}'"), &error);
        let file = disk.open_uncached(&path).map_err(io)?;
        let len = file.len().map_err(io)?.min(SEGMENT_LEN_MAX);
        let mut bytes = vec![0; len as usize];
        read_exact_at(&*file, 0, &mut bytes).map_err(io)?;
        match decode_segment_header(&bytes) {
            Ok((pool, of, _)) if (pool, of) != (*pool_id, number) => continue,
            Ok((_, _, Layout::Frames)) => find_frames(number, seals, &bytes, &mut found),
            Ok((_, _, Layout::Pages)) => find_pages(number, &bytes, &mut found),
            Err(_) => continue,
        }
        files.insert(number, path);
    }
    let mut refs: HashMap<BlockHash, u32, BlockHashBuilder> = HashMap::default();
    let mut stack = vec![root];
    while let Some(hash) = stack.pop() {
        if hash.is_zero() {
            continue;
        }
        let count = refs.entry(hash).or_default();
        *count = count.saturating_add(1);
        if *count > 1 {
            continue;
        }
        match found.get(&hash) {
            None => {}
            Some(entry) if entry.kind() == BlockKind::Node => {
                let path = files.get(&entry.place().segment).map_or("", String::as_str);
                let file = disk.open_uncached(path);
                let file = file.map_err(|error| Error::io(format!("open '{path}'"), &error))?;
                match read_block(&file, seals, &hash, entry)
                    .and_then(|node| nodes.children(&node).map_err(|error| error.to_string()))
                {
                    Ok(children) => stack.extend(children),
                    // Already read once: it counts as lost.
                    Err(_) => drop(found.remove(&hash)),
                }
            }
            Some(_) => {}
        }
    }
    for (hash, count) in refs {
        let entry = found.get(&hash).map(|entry| Entry::committed(&entry.durable(count)));
        table.load(hash, entry.unwrap_or(Entry::lost(count)));
    }
    Ok(())
}

fn read_block(
    file: &Arc<dyn DiskFile>,
    seals: &Seals,
    hash: &BlockHash,
    entry: &Entry,
) -> std::result::Result<Vec<u8>, String> {
    let place = entry.place();
    let frame_len = place.layout.frame_len();
    let mut bytes = vec![0; (frame_len + place.stored_len) as usize];
    read_exact_at(&**file, u64::from(place.offset), &mut bytes)
        .map_err(|error| error.to_string())?;
    let (header, stored) = bytes.split_at(frame_len as usize);
    verify(hash, entry, frames::open(seals, header, stored)?)
}

/// Takes each page of a segment for a block, named by its hash.
fn find_pages(segment: u32, bytes: &[u8], found: &mut Found) {
    let layout = Layout::Pages;
    let pages = bytes.get(layout.begin() as usize..).unwrap_or_default();
    for (page, offset) in
        pages.chunks_exact(PAGE_LEN as usize).zip((layout.begin()..).step_by(PAGE_LEN as usize))
    {
        if page.iter().any(|byte| *byte != 0) {
            let place = Place { segment, offset, stored_len: PAGE_LEN, layout };
            let entry = Entry::uncommitted(place, PAGE_LEN, BlockKind::Data, Codec::Page);
            found.insert(name_of(BlockKind::Data, page), entry);
        }
    }
}

/// Finds the sound blocks of a segment of frames.
fn find_frames(segment: u32, seals: &Seals, bytes: &[u8], found: &mut Found) {
    let mut at = Layout::Frames.begin();
    while let Some(header) = bytes.get(at as usize..(at + FRAME_LEN) as usize) {
        let begin = (at + FRAME_LEN) as usize;
        let stored = |len: u32| bytes.get(begin..begin + len as usize);
        let block = frames::identify(seals, header, stored).and_then(|frame| {
            let stored = frames::open(seals, header, stored(frame.stored_len)?).ok()?;
            let (stored_len, layout) = (frame.stored_len, Layout::Frames);
            let place = Place { segment, offset: at, stored_len, layout };
            let entry = Entry::uncommitted(place, frame.raw_len, frame.kind, frame.codec);
            verify(&frame.hash, &entry, stored).ok()?;
            Some((frame.hash, entry))
        });
        match block {
            Some((hash, entry)) => {
                at = entry.place().end();
                found.insert(hash, entry);
            }
            None => at += FRAME_ALIGN,
        }
    }
}
