use super::*;
use crate::lsn::Lsn;

fn entries(times: &[i64]) -> Vec<Entry> {
    let entry = |(at, time_us): (usize, &i64)| Entry {
        lsn: 1000 + at as u64 * 100,
        time_us: *time_us,
        xid: 700,
        length: 48,
    };
    times.iter().enumerate().map(entry).collect()
}

#[test]
fn each_part_has_its_beginning_and_not_its_end() {
    let mut counted = Counted::new(100, 400, 3);
    counted.add(&entries(&[99, 100, 199, 200, 299, 300, 399, 400]));
    assert_eq!(counted.counts, [2, 2, 2]);
}

#[test]
fn a_summary_is_enough_only_where_all_lie_in_one_part_or_outside() {
    let mut counted = Counted::new(100, 400, 3);
    let summary = |times: &[i64]| Summary::of(&entries(times), Lsn(1));
    for (times, enough) in [
        (&[1, 99][..], true),
        (&[400, 500], true),
        (&[], true),
        (&[210, 290], true),
        (&[290, 310], false),
        (&[99, 100], false),
        (&[399, 400], false),
    ] {
        assert_eq!(counted.add_whole(&summary(times)), enough, "{times:?}");
    }
    assert_eq!(counted.counts, [0, 2, 0]);
}

#[test]
fn no_time_has_no_commits_and_the_longest_time_overflows_nothing() {
    let mut counted = Counted::new(100, 100, 2);
    counted.add(&entries(&[100]));
    assert_eq!(counted.counts, [0, 0]);
    let mut counted = Counted::new(0, i64::MAX, 2);
    counted.add(&entries(&[0, i64::MAX - 1]));
    assert_eq!(counted.counts, [1, 1]);
}
