use super::*;
use offshoot_dataset::{BlockKind, Codec};

fn block(number: u32) -> PassingBlock {
    let stored = number.to_le_bytes().repeat(64);
    PassingBlock { kind: BlockKind::Data, codec: Codec::Raw, raw_len: stored.len() as u32, stored }
}

/// What came back, in order; none: it did not open.
fn numbers(opened: Vec<Opened>) -> Vec<Option<u32>> {
    let number = |one: &OpenedBlock| u32::from_le_bytes(*one.content().first_chunk().unwrap());
    opened.iter().map(|one| one.as_ref().map(number)).collect()
}

#[test]
fn each_block_comes_back_once() {
    for count in [1, BATCH as u32, 10_000] {
        std::thread::scope(|scope| {
            let mut opening = Opening::new(scope);
            let mut back = Vec::new();
            for number in 0..count {
                opening.add(block(number));
                back.extend(numbers(opening.take(false)));
                assert_eq!(opening.pending(), number as usize + 1 - back.len());
            }
            while opening.pending() > 0 {
                let some = numbers(opening.take(true));
                assert!(!some.is_empty(), "who waits gets something");
                back.extend(some);
            }
            back.sort_unstable();
            assert_eq!(back, (0..count).map(Some).collect::<Vec<_>>());
        });
    }
}

#[test]
fn what_does_not_open_comes_back_as_such() {
    std::thread::scope(|scope| {
        let mut opening = Opening::new(scope);
        for number in 0..100 {
            let raw_len = if number == 50 { 7 } else { 256 };
            opening.add(PassingBlock { raw_len, ..block(number) });
        }
        let mut wrong = 0;
        while opening.pending() > 0 {
            wrong += opening.take(true).iter().filter(|one| one.is_none()).count();
        }
        assert_eq!(wrong, 1);
    });
}

#[test]
fn what_is_given_up_keeps_nobody_waiting() {
    std::thread::scope(|scope| {
        let mut opening = Opening::new(scope);
        (0..1_000).for_each(|number| opening.add(block(number)));
    });
}
