use super::*;
use crate::blocks::memory::MemoryNodes;
use crate::tests::dice;
use std::collections::BTreeMap;

fn all(nodes: &MemoryNodes, root: BlockHash, from: &[u8]) -> BTreeMap<Vec<u8>, Value> {
    let mut found = BTreeMap::new();
    scan(nodes, root, from, &mut |entry| {
        assert!(found.last_key_value().is_none_or(|(last, _)| *last < entry.key));
        found.insert(entry.key, entry.value);
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

#[test]
fn batches_give_what_a_map_gives() {
    for seed in 0..20 {
        let mut dice = dice(seed);
        let nodes = MemoryNodes::default();
        let mut model = BTreeMap::new();
        let mut root = BlockHash::ZERO;
        let keys = 1 + dice(5000);
        for _ in 0..60 {
            let mut changes = BTreeMap::new();
            let remove = dice(10);
            for _ in 0..dice(400) {
                let mut key = dice(keys).to_be_bytes().to_vec();
                key.resize(8 + (key[7] % 40) as usize, 7);
                let bytes = vec![1; dice(300) as usize];
                let value = (dice(10) >= remove).then_some(Value { children: vec![], bytes });
                changes.insert(key, value);
            }
            for (key, value) in &changes {
                match value {
                    Some(value) => model.insert(key.clone(), value.clone()),
                    None => model.remove(key),
                };
            }
            root = merge(&nodes, root, changes.into_iter().collect()).unwrap();
            assert_eq!(root.is_zero(), model.is_empty());
        }
        assert_eq!(all(&nodes, root, &[]), model, "seed {seed}");
        for number in 0..keys {
            let mut key = number.to_be_bytes().to_vec();
            key.resize(8 + (key[7] % 40) as usize, 7);
            assert_eq!(get(&nodes, root, &key).unwrap().as_ref(), model.get(&key));
        }
        let from = (keys / 2).to_be_bytes();
        let tail: BTreeMap<_, _> =
            model.range(from.to_vec()..).map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(all(&nodes, root, &from), tail);
        let everything = model.keys().map(|key| (key.clone(), None)).collect();
        assert_eq!(merge(&nodes, root, everything).unwrap(), BlockHash::ZERO);
    }
}

#[test]
fn a_small_change_writes_few_nodes() {
    let nodes = MemoryNodes::default();
    let value = Value { children: vec![], bytes: vec![0; 100] };
    let changes = (0..100_000u32).map(|n| (n.to_be_bytes().to_vec(), Some(value.clone())));
    let root = merge(&nodes, BlockHash::ZERO, changes.collect()).unwrap();
    *nodes.writes.borrow_mut() = 1 << 40;
    let change = vec![(50_000u32.to_be_bytes().to_vec(), Some(Value::default()))];
    let changed = merge(&nodes, root, change).unwrap();
    assert_ne!(changed, root);
    let writes = *nodes.writes.borrow() - (1 << 40);
    assert!(writes <= 4, "{writes} nodes for one key");
}

#[test]
fn a_visit_can_stop() {
    let nodes = MemoryNodes::default();
    let changes = (0..1000u32).map(|n| (n.to_be_bytes().to_vec(), Some(Value::default())));
    let root = merge(&nodes, BlockHash::ZERO, changes.collect()).unwrap();
    let mut seen = 0;
    scan(&nodes, root, &[], &mut |_| {
        seen += 1;
        if seen == 700 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    assert_eq!(seen, 700);
}
