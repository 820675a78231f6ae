use super::*;

/// What is left when so many take all they may, a byte at a time and in turn.
fn left_beside(greedy: usize, total: u64) -> u64 {
    let mut held = vec![0; greedy];
    loop {
        let before: u64 = held.iter().sum();
        for number in 0..greedy {
            let used = held.iter().sum();
            if may_take_more(held[number], used, total) {
                held[number] += 1;
            }
        }
        if held.iter().sum::<u64>() == before {
            return total - before;
        }
    }
}

#[test]
fn something_is_left_beside_any_number() {
    for (greedy, least) in [(1, 240), (2, 140), (10, 30)] {
        let left = left_beside(greedy, 1000);
        assert!(left >= least && left < least * 3 / 2, "{left} beside {greedy}");
        assert!(may_take_more(least, 1000 - left, 1000), "one that has little takes it");
    }
    assert!(!may_take_more(1, 1000, 1000) && !may_take_more(1, 2000, 1000));
    assert!(may_take_more(0, 1000, 1000), "who has nothing is never held back");
}
