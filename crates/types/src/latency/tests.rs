#![allow(clippy::unwrap_used)]

use super::*;

/// Which bucket one such duration is in.
fn bound_of(took: Duration) -> Option<Duration> {
    let latency = Latency::default();
    latency.record(took);
    let counts = latency.counts();
    let mut filled = counts.buckets().filter(|(_, count)| *count > 0);
    let (bound, count) = filled.next().unwrap();
    assert_eq!((count, filled.next()), (1, None));
    bound
}

#[test]
fn buckets_double_from_16_us_to_16_8_s() {
    let bounds: Vec<_> = LatencyCounts::default().buckets().map(|(bound, _)| bound).collect();
    assert_eq!(bounds.len(), 22);
    assert_eq!(bounds[0], Some(Duration::from_micros(16)));
    assert_eq!(bounds[20], Some(Duration::from_micros(16 << 20)));
    assert_eq!(bounds[21], None);
    assert!(bounds[..21].windows(2).all(|two| two[1] == two[0].map(|bound| bound * 2)));
}

#[test]
fn a_bound_belongs_to_its_bucket_and_more_to_the_next() {
    for (bound, next) in
        LatencyCounts::default().buckets().zip(LatencyCounts::default().buckets().skip(1))
    {
        let bound = bound.0.unwrap();
        assert_eq!(bound_of(bound), Some(bound));
        assert_eq!(bound_of(bound + Duration::from_nanos(1)), next.0);
    }
    assert_eq!(bound_of(Duration::ZERO), Some(Duration::from_micros(16)));
    assert_eq!(bound_of(Duration::MAX), None);
}

#[test]
fn count_and_sum_are_of_all() {
    let latency = Latency::default();
    assert_eq!(latency.counts(), LatencyCounts::default());
    for took in [1, 20, 20_000, 20_000_000] {
        latency.record(Duration::from_micros(took));
    }
    let counts = latency.counts();
    assert_eq!((counts.count(), counts.sum()), (4, Duration::from_micros(20_020_021)));
    assert_eq!(counts.buckets().map(|(_, count)| count).sum::<u64>(), 4);
}

#[test]
fn what_threads_add_at_the_same_time_is_all_there() {
    const EACH: u64 = 20_000;
    let latency = Latency::default();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let latency = &latency;
            scope.spawn(move || {
                (0..EACH).for_each(|_| latency.record(Duration::from_micros(10 << thread)));
            });
        }
    });
    let counts = latency.counts();
    assert_eq!(counts.count(), 4 * EACH);
    assert_eq!(counts.sum(), Duration::from_micros(EACH * (10 + 20 + 40 + 80)));
    let filled: Vec<u64> = counts.buckets().take(4).map(|(_, count)| count).collect();
    assert_eq!(filled, [EACH; 4]);
}
