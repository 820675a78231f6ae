use super::*;

#[test]
fn quantiles_take_the_nearest_rank() {
    let samples: Vec<f64> = (1..=20).map(f64::from).collect();
    assert_eq!(median(&samples), 10.0);
    assert_eq!(quantile(&samples, 0.95), 19.0);
    assert_eq!(quantile(&samples, 1.0), 20.0);
    assert_eq!(quantile(&[7.0], 0.95), 7.0);
    assert_eq!(quantile(&[], 0.5), 0.0);
}

#[test]
fn a_spread_names_both_ends() {
    let spread = Spread::of(&[3.0, 1.0, 2.0]);
    assert_eq!(spread, Spread { median: 2.0, min: 1.0, max: 3.0 });
    assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
    assert_eq!(mean(&[]), 0.0);
}

#[test]
fn the_order_alternates() {
    assert_eq!(interleaved(2, 3), [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)]);
}
