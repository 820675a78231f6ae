use super::clock_warning;

#[test]
fn clocks_more_than_a_second_apart_are_a_warning() {
    assert!([0, 1_000, -1_000].iter().all(|skew| clock_warning("shop", *skew).is_none()));
    for (skew, said) in [(1_001, "ahead of"), (-2_500, "behind")] {
        let warning = clock_warning("shop", skew).unwrap();
        assert!(warning.message.contains("'shop'") && warning.message.contains(said), "{warning}");
        assert!(!warning.hint.is_empty());
    }
}
