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
fn a_missed_goal_shows() {
    let mut figures = Figures::new("x");
    figures.at_most("a_ms", 1.0, 2.0);
    assert!(figures.reached());
    figures.at_least("b", 0.5, 0.8);
    assert!(!figures.reached());
    assert!(figures.table().contains("MISSED"));
}
