use super::*;

const PLACE: Place = Place { segment: 9, offset: OFFSET_MASK - 7, stored_len: 65_536 };

fn hash(byte: u8) -> BlockHash {
    BlockHash([byte; 32])
}

fn entry() -> Entry {
    Entry::uncommitted(PLACE, 65_536, BlockKind::Node, Codec::Lz4)
}

#[test]
fn an_entry_is_small_and_holds_the_extremes() {
    assert_eq!(size_of::<(BlockHash, Entry)>(), 52);
    let mut entry = entry();
    assert_eq!(entry.place(), PLACE);
    assert_eq!(
        (entry.raw_len(), entry.kind(), entry.codec()),
        (65_536, BlockKind::Node, Codec::Lz4)
    );
    entry.set_committed(true);
    entry.set_dying(true);
    let moved = Place { segment: u32::MAX, offset: 64, ..PLACE };
    entry.set_place(moved);
    assert!(entry.is_committed() && entry.is_dying() && entry.kind() == BlockKind::Node);
    assert_eq!(entry.place(), moved);
    entry.set_dying(false);
    assert_eq!(Entry::committed(&entry.durable(7)).durable(7), entry.durable(7));
}

#[test]
fn an_uncommitted_block_goes_with_its_last_pin() {
    let table = Table::new();
    table.insert_or_pin(hash(1), entry());
    assert!(table.insert_or_pin(hash(1), entry()).1, "the second writer finds the first's");
    assert_eq!(table.unpin(&hash(1)), Unpinned::Kept);
    assert_eq!(table.unpin(&hash(1)), Unpinned::Freed(PLACE));
    assert_eq!(table.len(), 0);
}

#[test]
fn a_pinned_block_is_not_dropped_and_a_dying_one_can_be_pinned() {
    let table = Table::new();
    table.insert_or_pin(hash(1), entry());
    assert_eq!(table.apply(&hash(1), 2, false), Unpinned::Kept);
    assert!(!table.mark_dying(&hash(1), 0), "somebody else's pin");
    assert_eq!(table.unpin(&hash(1)), Unpinned::Kept);
    assert!(table.mark_dying(&hash(1), 0));
    assert!(table.pin(&hash(1)).unwrap().is_dying());
    assert_eq!(table.apply(&hash(1), 0, true), Unpinned::Kept, "pinned while dying");
    let kept = table.get(&hash(1)).unwrap();
    assert!(!kept.is_committed() && !kept.is_dying());
    assert_eq!(table.unpin(&hash(1)), Unpinned::Freed(PLACE));
}

#[test]
fn a_dead_node_waits_for_its_children_to_be_released() {
    let table = Table::new();
    table.insert_or_pin(hash(1), entry());
    table.apply(&hash(1), 1, false);
    assert_eq!(table.apply(&hash(1), 0, false), Unpinned::Kept);
    assert_eq!(table.unpin(&hash(1)), Unpinned::Dead);
    assert_eq!(table.len(), 1);
    assert_eq!(table.totals.blocks.load(Ordering::Relaxed), 0);
    table.mark_dying(&hash(1), 0);
    assert_eq!(table.apply(&hash(1), 0, true), Unpinned::Freed(PLACE));
}
