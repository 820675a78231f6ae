use super::*;

const PLACE: Place =
    Place { segment: 9, offset: OFFSET_MASK - 7, stored_len: 65_536, layout: Layout::Frames };

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
    entry.set_place(moved, entry.codec());
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

/// Against a plain map: what was added, replaced, removed and kept is found, and nothing else.
#[test]
fn a_part_holds_what_a_map_holds() {
    use std::collections::HashMap;
    let mut state = 1_u64;
    let mut roll = move |sides: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % sides
    };
    let name = |number: u64| {
        let mut name = [0; 32];
        // Few different first bytes, so that positions in the hash table collide.
        name[0] = (number % 3) as u8;
        name[8..16].copy_from_slice(&number.to_le_bytes());
        BlockHash(name)
    };
    let mut part = Shard::default();
    let mut model: HashMap<BlockHash, u32> = HashMap::new();
    for step in 0..60_000_u32 {
        // Grows, then shrinks again.
        let (range, removals) = if step < 30_000 { (2000, 3) } else { (2000, 8) };
        let name = name(roll(range));
        if roll(10) < removals {
            part.remove(&name);
            model.remove(&name);
        } else {
            part.insert(name, Entry { refs: step, ..entry() });
            model.insert(name, step);
        }
        if step % 10_000 == 9_999 {
            part.retain(|_, entry| entry.refs % 2 == 0);
            model.retain(|_, refs| *refs % 2 == 0);
            assert_eq!(part.len(), model.len());
            assert!(part.iter().all(|(name, entry)| model.get(name) == Some(&entry.refs)));
        }
        assert_eq!(part.get(&name).map(|entry| entry.refs), model.get(&name).copied());
    }
    model.keys().for_each(|name| part.remove(name));
    assert_eq!(part.len(), 0);
    assert!(part.allocation_size() < 16 << 10, "{} bytes", part.allocation_size());
}
