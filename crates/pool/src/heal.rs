//! Replacing the damaged copy of a block by a sound one that turned up.

use crate::compress::compress;
use crate::pool::Pool;
use crate::transaction::name_of;
use crate::{BlockData, Purpose, Result};
use offshoot_format::segment::Frame;
use offshoot_types::BlockHash;

impl Pool {
    /// Whether the stored copy of a block is known to be damaged. Cheap while nothing is.
    pub(crate) fn is_damaged(&self, hash: &BlockHash) -> bool {
        self.faults.lock().contains_key(hash)
    }

    /// Stores a damaged block's content anew and forgets the fault. Whether that was possible: not for a
    /// block that is not committed, or that would be stored in another length than the table says.
    pub(crate) fn heal(&self, hash: &BlockHash, content: &[u8]) -> Result<bool> {
        let Some(entry) = self.table.get(hash) else { return Ok(false) };
        let place = entry.place();
        let (codec, compressed) = compress(content);
        let stored = compressed.as_deref().unwrap_or(content);
        let same = codec == entry.codec() && stored.len() == place.stored_len as usize;
        if !entry.is_committed() || !same || name_of(entry.kind(), content) != *hash {
            return Ok(false);
        }
        let (stored_len, raw_len) = (place.stored_len, entry.raw_len());
        let frame = Frame { hash: *hash, kind: entry.kind(), codec, stored_len, raw_len };
        self.take_room(u64::from(place.room()), Purpose::Freeing)?;
        let to = self.segments.append(&frame, stored)?;
        // ORDER 1 for the new copy; from here on it is moved as compaction moves blocks.
        if let Err(error) = self.flush_segments() {
            self.segments.release(to);
            return Err(error);
        }
        self.move_blocks(&[(*hash, place, to)])?;
        self.cache.insert(*hash, BlockData::new(content));
        self.forget_fault(hash);
        tracing::info!(%hash, "a damaged block was replaced by a sound copy");
        Ok(true)
    }

    /// Nothing is wrong with a block any more, or it is gone.
    pub(crate) fn forget_fault(&self, hash: &BlockHash) {
        self.faults.lock().remove(hash);
    }
}
