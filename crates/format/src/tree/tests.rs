use super::*;

fn hash(byte: u8) -> BlockHash {
    BlockHash([byte; 32])
}

#[test]
fn leaf_finds_keys_and_lists_children() {
    let entries: Vec<_> = (0..50u8)
        .map(|n| LeafEntry {
            key: vec![n * 2],
            value: Value { children: vec![hash(n + 1); usize::from(n % 3)], bytes: vec![n; 5] },
        })
        .collect();
    let bytes = encode_leaf(&entries);
    let view = NodeView::new(&bytes).unwrap();
    assert_eq!((view.level(), view.count()), (0, 50));
    for (index, entry) in entries.iter().enumerate() {
        assert_eq!(&view.leaf_entry(index).unwrap().to_owned(), entry);
        assert_eq!(view.lower_bound(&entry.key).unwrap(), index);
    }
    assert_eq!(view.lower_bound(&[3]).unwrap(), 2);
    assert_eq!(view.lower_bound(&[255]).unwrap(), 50);
    assert_eq!(children(&bytes).unwrap().len(), (0..50).map(|n| n % 3).sum::<usize>());
}

#[test]
fn branch_leads_to_the_subtree_of_a_key() {
    let entries: Vec<_> =
        (1..4u8).map(|n| BranchEntry { key: vec![n * 10], child: hash(n) }).collect();
    let bytes = encode_branch(1, &entries);
    let view = NodeView::new(&bytes).unwrap();
    for (key, child) in [(0, 1), (10, 1), (15, 1), (20, 2), (29, 2), (30, 3), (200, 3)] {
        let index = view.child_index(&[key]).unwrap();
        assert_eq!(view.child(index).unwrap(), hash(child), "key {key}");
    }
    assert_eq!(children(&bytes).unwrap(), vec![hash(1), hash(2), hash(3)]);
}

#[test]
fn map_keeps_holes() {
    let mut map = [BlockHash::ZERO; MAP_FAN_OUT];
    (map[0], map[77], map[127]) = (hash(1), hash(2), hash(3));
    let bytes = encode_map(2, &map);
    let view = MapView::new(&bytes).unwrap();
    assert_eq!(view.to_array(), map);
    assert_eq!((view.get(77), view.get(76), view.get(127)), (hash(2), BlockHash::ZERO, hash(3)));
    assert_eq!(children(&bytes).unwrap(), vec![hash(1), hash(2), hash(3)]);
}

#[test]
fn damaged_nodes_are_errors() {
    let entries = vec![LeafEntry {
        key: b"key".to_vec(),
        value: Value { children: vec![hash(1)], bytes: vec![1] },
    }];
    let bytes = encode_leaf(&entries);
    for len in 0..bytes.len() {
        assert!(children(&bytes[..len]).is_err(), "cut at {len}");
    }
    for index in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x55;
        let _ = children(&damaged); // any answer, no panic
    }
    assert!(children(&[9, 0, 0, 0]).is_err());
}
