use super::*;
use crate::blocks::memory::MemoryNodes;
use crate::tests::dice;
use std::collections::BTreeMap;

fn hash(number: u64) -> BlockHash {
    let mut bytes = [0xee; 32];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    BlockHash(bytes)
}

#[test]
fn updates_give_what_a_map_gives() {
    let mut dice = dice(1);
    for run in 0..30 {
        let nodes = MemoryNodes::default();
        let far = [1, 100, 20_000, 1 << 31][run % 4];
        let (mut map, mut model, mut blocks) = (BlockMap::EMPTY, BTreeMap::new(), 0i64);
        for _ in 0..30 {
            let mut cleared = RangeSet::default();
            for _ in 0..dice(3) {
                let start = dice(far);
                let end = if dice(4) == 0 { u64::MAX } else { start + dice(far) + 1 };
                cleared.insert(start, end);
                model.retain(|index, _| !(start..end).contains(index));
            }
            let mut changes = BTreeMap::new();
            let start = dice(far);
            for _ in 0..dice(300) {
                let near = (start + dice(200)).min(far - 1);
                let zero = dice(5) == 0;
                changes.insert(near, if zero { BlockHash::ZERO } else { hash(dice(1000) + 1) });
            }
            model.extend(changes.clone());
            model.retain(|_, hash: &mut BlockHash| !hash.is_zero());
            let changes: Vec<_> = changes.into_iter().collect();
            let size = model.last_key_value().map_or(0, |(last, _)| last + 1);
            let (now, grown) = map.update(&nodes, &cleared, &changes, size).unwrap();
            (map, blocks) = (now, blocks + grown);
            assert_eq!(blocks as usize, model.len());
            assert_eq!(map.root.is_zero(), model.is_empty());
        }
        for index in model.keys().flat_map(|index| [*index, index + 1, index.saturating_sub(140)]) {
            let mut found = [BlockHash::ZERO; 150];
            map.lookup(&nodes, index, &mut found).unwrap();
            for (offset, found) in found.iter().enumerate() {
                let expected = model.get(&(index + offset as u64)).copied();
                assert_eq!(*found, expected.unwrap_or(BlockHash::ZERO));
            }
            let data = model.range(index..).next().map(|(index, _)| *index);
            assert_eq!(map.next(&nodes, index, true).unwrap(), data);
            let hole = (index..).find(|index| !model.contains_key(index)).unwrap();
            if let Some(found) = map.next(&nodes, index, false).unwrap() {
                assert_eq!(found, hole);
            }
        }
    }
}

#[test]
fn what_differs_is_what_two_models_say() {
    let mut dice = dice(7);
    for run in 0..60 {
        let nodes = MemoryNodes::default();
        let far = [1, 2, 128, 129, 20_000, 1 << 31][run % 6];
        let mut fill = |map: BlockMap, mut model: BTreeMap<u64, BlockHash>, count: u64| {
            for _ in 0..count {
                let zero = dice(4) == 0;
                let hash = if zero { BlockHash::ZERO } else { hash(dice(1000) + 1) };
                model.insert(dice(far), hash);
            }
            model.retain(|index, _| run % 4 > 0 || *index < far / 2 + 1);
            let changes: Vec<_> = model.iter().map(|(index, hash)| (*index, *hash)).collect();
            model.retain(|_, hash| !hash.is_zero());
            let size = model.last_key_value().map_or(0, |(last, _)| last + 1);
            let mut cleared = RangeSet::default();
            cleared.insert(0, u64::MAX);
            let (map, _) = map.update(&nodes, &cleared, &changes, size).unwrap();
            (map, model)
        };
        let (one, ones) = fill(BlockMap::EMPTY, BTreeMap::new(), 300);
        let (other, others) = fill(one, ones.clone(), [0, 1, 5, 400][run % 4]);
        let mut expected: Vec<u64> = ones.keys().chain(others.keys()).copied().collect();
        expected.retain(|index| ones.get(index) != others.get(index));
        expected.sort_unstable();
        expected.dedup();
        for (a, b) in [(one, other), (other, one)] {
            let found = a.differing(&nodes, &b, usize::MAX).unwrap();
            assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start), "{found:?}");
            assert_eq!(found.clone().into_iter().flatten().collect::<Vec<_>>(), expected);
            let joined = a.differing(&nodes, &b, 7).unwrap();
            assert!(joined.len() <= 7 && (joined == found || found.len() > 7), "{joined:?}");
            assert!(joined.windows(2).all(|pair| pair[0].end < pair[1].start));
            assert!(expected.iter().all(|block| joined.iter().any(|one| one.contains(block))));
            let edges = joined.iter().flat_map(|one| [one.start, one.end - 1]);
            assert!(edges.into_iter().all(|edge| expected.binary_search(&edge).is_ok()));
        }
        assert!(one.differing(&nodes, &one, 1).unwrap().is_empty());
    }
}
