//! What a block is: its name, what makes it sound, what it refers to.

use crate::compress::decompress;
use crate::table::Entry;
use offshoot_format::DecodeError;
use offshoot_format::segment::BlockKind;
use offshoot_types::BlockHash;

/// The longest a block may be, in bytes, before compression.
pub const BLOCK_LEN_MAX: usize = 64 << 10;
/// Separates the names of nodes from those of data blocks with the same bytes.
const NODE_KEY: &[u8; 32] = b"offshoot.node.names.version.0001";

/// The name of a block with this content.
pub(crate) fn name_of(kind: BlockKind, content: &[u8]) -> BlockHash {
    BlockHash(match kind {
        BlockKind::Data => *blake3::hash(content).as_bytes(),
        BlockKind::Node => *blake3::keyed_hash(NODE_KEY, content).as_bytes(),
    })
}

/// Whether a block is all zeros.
pub(crate) fn is_zero(content: &[u8]) -> bool {
    content.chunks(64).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Decodes stored bytes and compares them with the block's name.
pub(crate) fn verify(
    hash: &BlockHash,
    entry: &Entry,
    stored: impl AsRef<[u8]> + Into<Vec<u8>>,
) -> std::result::Result<Vec<u8>, String> {
    let content = decompress(entry.codec(), stored, entry.raw_len())?;
    if name_of(entry.kind(), &content) != *hash {
        return Err("its content has another hash".to_owned());
    }
    Ok(content)
}

/// Tells the pool which blocks a node refers to.
pub trait NodeChildren: Send + Sync {
    /// The children of a node, as often as it lists them; holes ([`BlockHash::ZERO`]) are ignored.
    fn children(&self, node: &[u8]) -> std::result::Result<Vec<BlockHash>, DecodeError>;
}
