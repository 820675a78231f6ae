use super::*;

#[test]
fn a_missed_goal_shows() {
    let mut figures = Figures::default();
    figures.at_most("a_ms", vec![1.0, 9.0, 1.5], 2.0);
    assert!(figures.reached());
    figures.at_least("b", 0.5, 0.8);
    assert!(!figures.reached());
    let table = figures.table();
    assert!(table.contains("MISSED"), "{table}");
    assert!(table.contains("1.000 – 9.000"), "the ends are missing: {table}");
}

#[test]
fn what_was_not_measured_reaches_nothing() {
    let mut figures = Figures::default();
    figures.at_most("a_ms", Vec::new(), 2.0);
    assert!(!figures.reached());
}

#[test]
fn a_selection_takes_goals_and_ratios() {
    let (mut one, mut all) = (Figures::default(), Figures::default());
    one.note("seen_mb", 3.0);
    one.note("vdb to plain", 1.1);
    one.at_most("wait_ms", 3.0, 4.0);
    all.append_ratios("link", one);
    let names: Vec<&str> = all.all().iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["link: vdb to plain", "link: wait_ms"]);
}
