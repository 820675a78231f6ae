use super::*;
use crate::tests::dice;

#[test]
fn ranges_behave_as_a_set_of_numbers() {
    let mut dice = dice(7);
    for _ in 0..200 {
        let (mut ranges, mut model) = (RangeSet::default(), [false; 64]);
        for _ in 0..dice(12) {
            let start = dice(64);
            let end = (start + dice(10)).min(64);
            ranges.insert(start, end);
            model[start as usize..end as usize].fill(true);
            let pairs: Vec<_> = ranges.iter().collect();
            assert!(pairs.windows(2).all(|pair| pair[0].1 < pair[1].0), "{pairs:?}");
        }
        for start in 0..64u64 {
            assert_eq!(ranges.contains(start), model[start as usize]);
            let next =
                (start..64).find(|&n| model[n as usize] && (n == 0 || !model[n as usize - 1]));
            assert_eq!(ranges.next_start(start), next);
            for end in start + 1..=64 {
                let part = &model[start as usize..end as usize];
                assert_eq!(ranges.covers(start, end), part.iter().all(|&set| set));
                assert_eq!(ranges.intersects(start, end), part.iter().any(|&set| set));
            }
        }
    }
}

#[test]
fn a_newer_layer_hides_the_older() {
    let data = |byte: u8| Slot::Data(BlockData::new(vec![byte; BLOCK_SIZE]));
    let (mut older, mut newer) = (Layer::default(), Layer::default());
    for block in 0..10 {
        older.put_block(block, data(1));
    }
    newer.put_block(2, data(2));
    newer.clear_blocks(1, 5);
    newer.put_block(3, data(3));
    older.overlay(newer);
    for block in 0..11 {
        let found = match older.find(block) {
            Found::Slot(Slot::Data(bytes)) => i32::from(bytes[0]),
            Found::Slot(Slot::Shared(_)) => unreachable!(),
            Found::Hole => 0,
            Found::Below => -1,
        };
        let expected = [1, 0, 0, 3, 0, 1, 1, 1, 1, 1, -1][block as usize];
        assert_eq!(found, expected, "block {block}");
    }
    assert_eq!(older.weight(), 7 * BLOCK_SIZE as u64);
    older.drop_blocks();
    assert_eq!(older.weight(), 0);
}
