//! What a node of a dataset's tree refers to, and of which kind that is.

use crate::DecodeError;
use crate::inode::{InodeRecord, parse_inode_key};
use crate::segment::BlockKind;
use crate::tree::{MapView, NodeView, children};
use offshoot_types::BlockHash;

/// The blocks that a node of a dataset's tree, or of a file's block map, refers to, as often as it lists them. Not for
/// the directory of datasets.
///
/// # Errors
/// When the bytes are no such node.
pub fn links(node: &[u8]) -> Result<Vec<(BlockHash, BlockKind)>, DecodeError> {
    let all_of = |kind| {
        let children = children(node)?;
        Ok(children.into_iter().map(|child| (child, kind)).collect())
    };
    if let Ok(map) = MapView::new(node) {
        return all_of(if map.level() == 0 { BlockKind::Data } else { BlockKind::Node });
    }
    let view = NodeView::new(node)?;
    if view.level() > 0 {
        return all_of(BlockKind::Node);
    }
    let mut links = Vec::new();
    for index in 0..view.count() {
        let entry = view.leaf_entry(index)?;
        // Besides maps of files there are only values of attributes, which are data.
        let kind = match parse_inode_key(entry.key) {
            Some(_) if InodeRecord::decode(&entry.to_owned().value)?.height > 0 => BlockKind::Node,
            _ => BlockKind::Data,
        };
        links.extend(entry.children().map(|child| (child, kind)));
    }
    Ok(links)
}
