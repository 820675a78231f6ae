//! What differs between files that have blocks in common.

use super::Dataset;
use crate::block_map::BlockMap;
use crate::{Error, Result};
use offshoot_types::{BLOCK_SIZE, Ino};
use std::ops::Range;

/// Ranges answered for one file; more are joined.
const RANGES_MAX: usize = 4096;

impl Dataset {
    /// The blocks of a file that may differ from those of a file of `other`, a dataset of the same store: ascending
    /// ranges that cover everything that differs. Where there would be very many ranges, they also contain blocks that
    /// do not differ. The trees are compared by their hashes, so the cost follows what differs, not the size.
    pub fn differing_blocks(
        &self,
        ino: Ino,
        other: &Dataset,
        other_ino: Ino,
    ) -> Result<Vec<Range<u64>>> {
        loop {
            let (map, blocks) = self.committed_map(ino)?;
            let (other_map, _) = other.committed_map(other_ino)?;
            // What is not committed has no hash yet.
            let (Some(map), Some(other_map)) = (map, other_map) else {
                return Ok(std::iter::once(0..blocks).filter(|all| !all.is_empty()).collect());
            };
            match map.differing(&self.reader, &other_map, RANGES_MAX) {
                Ok(mut ranges) => {
                    ranges.iter_mut().for_each(|range| range.end = range.end.min(blocks));
                    ranges.retain(|range| !range.is_empty());
                    return Ok(ranges);
                }
                Err(Error::Missing(hash)) => {
                    // A commit has replaced a map in the meantime, or a node is lost.
                    self.wait_for_commit()?;
                    other.wait_for_commit()?;
                    let same = self.committed_map(ino)?.0 == Some(map)
                        && other.committed_map(other_ino)?.0 == Some(other_map);
                    if same {
                        return Err(Error::Missing(hash));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The map of a file, or none if it has uncommitted blocks; and its length in blocks.
    fn committed_map(&self, ino: Ino) -> Result<(Option<BlockMap>, u64)> {
        let inode = self.inode(ino)?;
        inode.expect_file()?;
        let state = inode.state.read();
        if state.gone {
            return Err(Error::Stale);
        }
        let map = state.is_all_committed().then_some(state.map);
        Ok((map, state.size.div_ceil(BLOCK_SIZE as u64)))
    }
}
