//! Blocks that pass from one pool to another, as they are stored: compressed, but never sealed, as a key belongs to
//! one pool.

use crate::block::{BLOCK_LEN_MAX, is_zero, name_of, verify};
use crate::compress::decompress;
use crate::frames;
use crate::pool::Pool;
use crate::read_many::RUN_LEN_MAX_AHEAD;
use crate::runs::{Run, runs};
use crate::table::Entry;
use crate::transaction::{Children, Transaction};
use crate::{BlockData, Error, Result};
use offshoot_format::DecodeError;
use offshoot_format::segment::{BlockKind, Codec};
use offshoot_types::BlockHash;
use std::ops::ControlFlow;

/// A block on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassingBlock {
    /// Whether it is a node.
    pub kind: BlockKind,
    /// How `stored` is compressed; never [`Codec::Page`].
    pub codec: Codec,
    /// Bytes of its content.
    pub raw_len: u32,
    /// The content, compressed.
    pub stored: Vec<u8>,
}

/// What is done with blocks before they are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// Their frames are compared with the block table. A damaged one may be among them: who gets it has to compare its
    /// name, and then wants to have it [by content](Checked::Content).
    Frame,
    /// Each is decompressed and compared with its name. Damage is noted, and none is handed out.
    Content,
}

/// A block that came, decompressed, with the name that its content has.
pub struct OpenedBlock {
    block: PassingBlock,
    content: BlockData,
    name: BlockHash,
}

impl OpenedBlock {
    /// As it came.
    pub fn block(&self) -> &PassingBlock {
        &self.block
    }

    /// The content, which may be anything until its [name](OpenedBlock::name) is compared.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// What a block of its kind with its content is called.
    pub fn name(&self) -> BlockHash {
        self.name
    }
}

impl PassingBlock {
    /// Decompresses it.
    ///
    /// # Errors
    /// `Decode` when it does not decompress to its length. Takes no more memory than a block may have.
    pub fn open(self) -> Result<OpenedBlock> {
        let wrong = |problem: String| Error::Decode(DecodeError::new("received block", problem));
        let len = self.raw_len as usize;
        if len == 0 || len > BLOCK_LEN_MAX || self.stored.len() > BLOCK_LEN_MAX {
            return Err(wrong(format!("has {len} bytes")));
        }
        let content =
            decompress(self.codec, self.stored.as_slice(), self.raw_len).map_err(wrong)?;
        let name = name_of(self.kind, &content);
        Ok(OpenedBlock { block: self, content: BlockData::new(content), name })
    }

    fn stored_as(entry: &Entry, stored: Vec<u8>) -> PassingBlock {
        let codec = if entry.codec() == Codec::Page { Codec::Raw } else { entry.codec() };
        PassingBlock { kind: entry.kind(), codec, raw_len: entry.raw_len(), stored }
    }
}

impl Pool {
    /// A block as it is stored, and its content, which was compared with its name. The cache stays as it is.
    ///
    /// # Errors
    /// As [`Pool::read`].
    pub fn read_passing(&self, hash: &BlockHash) -> Result<(PassingBlock, Vec<u8>)> {
        let entry = self.table.get(hash).ok_or(Error::Missing(*hash))?;
        if !entry.is_lost()
            && let Ok(stored) = self.segments.read(entry.place())
            && let Ok(content) = verify(hash, &entry, stored.as_slice())
        {
            return Ok((PassingBlock::stored_as(&entry, stored), content));
        }
        // It was moved meanwhile, or is damaged: this finds out, and notes damage.
        let content = self.load(hash)?.to_vec();
        let raw_len = content.len() as u32;
        let block = PassingBlock {
            kind: entry.kind(),
            codec: Codec::Raw,
            raw_len,
            stored: content.clone(),
        };
        Ok((block, content))
    }

    /// Hands blocks to `take` as they are stored, in no particular order. Those near each other on disk are read together.
    /// `take` may end it.
    ///
    /// # Errors
    /// As there.
    pub fn read_many_passing(
        &self,
        hashes: &[BlockHash],
        checked: Checked,
        take: &mut dyn FnMut(PassingBlock) -> ControlFlow<()>,
    ) -> Result<()> {
        let found = |hash: &BlockHash| match self.table.get(hash) {
            Some(entry) => Ok((*hash, entry)),
            None => Err(Error::Missing(*hash)),
        };
        let mut blocks = hashes.iter().map(found).collect::<Result<Vec<(BlockHash, Entry)>>>()?;
        blocks.sort_unstable_by_key(|(_, entry)| entry.place());
        for run in runs(&blocks, RUN_LEN_MAX_AHEAD) {
            let mut of_run = Vec::with_capacity(run.blocks.len());
            self.segments.with_run(run.segment, run.begin, run.end, &mut |bytes| {
                let cut = |block| self.cut_passing(&run, block, bytes, checked);
                of_run.extend(run.blocks.iter().map(cut));
            });
            for (at, (hash, _)) in run.blocks.iter().enumerate() {
                let block = match of_run.get_mut(at).and_then(Option::take) {
                    Some(block) => block,
                    None => self.read_passing(hash)?.0,
                };
                if take(block).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// A block in the bytes of its run; `None` if it is not there any more, lost or damaged.
    fn cut_passing(
        &self,
        run: &Run<'_>,
        (hash, entry): &(BlockHash, Entry),
        bytes: &[u8],
        checked: Checked,
    ) -> Option<PassingBlock> {
        let (frame, stored) = run.cut(bytes, entry.place())?;
        let stored = self.segments.open(frame, stored).ok().filter(|_| !entry.is_lost())?;
        // A page has no frame, and need not be decompressed.
        match checked {
            Checked::Frame if entry.codec() != Codec::Page => {
                frames::check(&self.seals, frame, hash, entry).ok()?;
            }
            _ => drop(verify(hash, entry, &*stored).ok()?),
        }
        Some(PassingBlock::stored_as(entry, stored.into_owned()))
    }

    /// What a node with these bytes is called.
    pub fn node_name(node: &[u8]) -> BlockHash {
        name_of(BlockKind::Node, node)
    }

    /// Whether a block is here, and with a node everything below it, as of the last commit.
    pub fn has_committed(&self, hash: &BlockHash) -> bool {
        let whole = |entry: Entry| entry.is_committed() && !entry.is_dying() && !entry.is_lost();
        self.table.get(hash).is_some_and(whole) && !self.faults.contains(hash)
    }
}

impl Transaction {
    /// Stores a block that came from another pool, compressed as it came; returns whether a commit has it already. A node's
    /// children must be in the pool, as for [`Transaction::write_node`].
    ///
    /// # Errors
    /// `Decode` when it is no block; otherwise as [`Transaction::write_node`].
    pub fn write_passing(&self, opened: &OpenedBlock) -> Result<bool> {
        let OpenedBlock { block, content, name } = opened;
        if is_zero(content) {
            return Err(Error::Decode(DecodeError::new("received block", "is a hole")));
        }
        let children = match block.kind {
            BlockKind::Data => None,
            BlockKind::Node => {
                let mut children = self.pool.nodes.children(content)?;
                children.retain(|child| !child.is_zero());
                self.hold_children(&children)?;
                self.count_node();
                Some(Children::All(children.into_boxed_slice()))
            }
        };
        let present = self.pool.has_committed(name);
        // What saves little is stored as this pool would store it.
        let saves = block.stored.len() < content.len() - content.len() / 16;
        let packed = (block.codec != Codec::Raw && saves).then_some((block.codec, &*block.stored));
        self.write_named(*name, (block.kind, content), packed, children)?;
        Ok(present)
    }
}
