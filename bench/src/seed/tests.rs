use super::*;

#[test]
fn a_stream_is_the_same_for_ever() {
    // The first output of SplitMix64 from state 0 is published with the algorithm.
    assert_eq!(Stream(0).next_bits(), 0xe220_a839_7b1d_cdaf);
    let mut stream = Stream::of(7, &[1, 2]);
    let seen: Vec<u64> = (0..3).map(|_| stream.below(1_000_000)).collect();
    assert_eq!(seen, FROZEN, "generated data changes for everybody who compares with older runs");
}

const FROZEN: [u64; 3] = [18_959, 213_320, 851_951];

#[test]
fn choices_stay_in_their_range_and_reach_its_ends() {
    let mut stream = Stream::of(1, &[]);
    let seen: Vec<u64> = (0..1_000).map(|_| stream.between(3, 6)).collect();
    assert_eq!((seen.iter().min(), seen.iter().max()), (Some(&3), Some(&6)));
    let all = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let early = (0..1_000).filter(|_| *stream.pick_early(&all) < 5).count();
    assert!((780..920).contains(&early), "{early} of 1,000 in the first half");
}

#[test]
fn neighbours_have_nothing_in_common() {
    let first = |row| Stream::of(7, &[1, row]).below(1_000);
    let same = (0..1_000).filter(|row| first(*row) == first(row + 1)).count();
    assert!(same < 10, "{same} of 1,000 neighbours begin alike");
}
