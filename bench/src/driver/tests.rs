use super::*;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn what_users_felt_adds_up() {
    let (mut one, mut two) = (Tally::new(2), Tally::new(2));
    one.record(Transaction::OrderProducts, ms(10), ms(500), Ok(()));
    one.record(Transaction::OrderProducts, ms(30), ms(1_500), Ok(()));
    two.record(Transaction::BrowseOrders, ms(20), ms(1_600), Ok(()));
    two.record(Transaction::BrowseOrders, ms(5), ms(1_700), Err("40P01: deadlock".into()));
    // Done after the end: its latency counts, the second does not exist.
    two.record(Transaction::BrowseOrders, ms(400), ms(2_100), Ok(()));
    one.add(two);
    let felt = one.felt(2);
    assert_eq!((felt.transactions, felt.errors), (3, 1));
    assert_eq!((felt.tps, felt.tpm, felt.per_second_min), (1.5, 90.0, 1));
    assert_eq!(felt.per_second, [1, 2]);
    assert_eq!(felt.error_texts["40P01: deadlock"], 1);
    let orders = &felt.by_kind["order_products"];
    assert_eq!((orders.count, orders.errors), (2, 0));
    assert!((orders.mean_ms - 20.0).abs() < 0.1, "{orders:?}");
    assert!((felt.latency.max_ms - 400.0).abs() < 1.0, "{:?}", felt.latency);
}

#[test]
fn gaps_of_a_fixed_rate_have_the_mean_they_should() {
    let mut stream = Stream::of(3, &[]);
    let total: f64 = (0..10_000).map(|_| exponential(&mut stream, 0.01).as_secs_f64()).sum();
    assert!((95.0..105.0).contains(&total), "{total} s for 10,000 gaps of 10 ms");
}

#[test]
fn a_mix_is_drawn_as_it_is_weighted() {
    let mut stream = Stream::of(3, &[]);
    let drawn: Vec<_> = (0..12_500).map(|_| Mix::Oltp.draw(&mut stream)).collect();
    let of = |kind| drawn.iter().filter(|one| **one == kind).count();
    assert!((4_700..5_300).contains(&of(Transaction::BrowseProducts)));
    assert!((3_750..4_250).contains(&of(Transaction::OrderProducts)));
    assert_eq!(of(Transaction::SalesRep), 0, "queries are off by default");
    let writes = (0..1_000).map(|_| Mix::Read.draw(&mut stream)).filter(|kind| {
        use Transaction::*;
        matches!(kind, RegisterCustomer | UpdateDetails | OrderProducts | ProcessOrders)
    });
    assert_eq!(writes.count(), 0, "the READ mix writes nothing");
}
