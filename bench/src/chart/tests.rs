use super::*;
use crate::record::Line;

#[test]
fn axes_end_on_round_numbers() {
    assert_eq!(round_up(0.0), 1.0);
    assert_eq!(round_up(7.2), 8.0);
    assert_eq!(round_up(1_000.0), 1_000.0);
    assert_eq!(round_up(1_010.0), 1_500.0);
}

#[test]
fn names_cannot_break_the_page() {
    let chart = Chart {
        title: "a<b".into(),
        x: "s".into(),
        y: "TPS".into(),
        lines: vec![Line::counted("<script>", [1.0, 4.0, 2.0])],
    };
    let svg = lines(&chart);
    assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;"), "{svg}");
    assert_eq!(svg.matches("<polyline").count(), 1);
}

#[test]
fn a_point_at_the_top_is_at_the_top() {
    let line = Line { name: "l".into(), points: vec![(1.0, 0.0), (2.0, 8.0)] };
    let chart =
        Chart { title: String::new(), x: String::new(), y: String::new(), lines: vec![line] };
    let svg = lines(&chart);
    let (bottom, top) = (HEIGHT - BOTTOM, TOP);
    let want = format!("points=\"{LEFT:.1},{bottom:.1} {:.1},{top:.1}\"", WIDTH - RIGHT);
    assert!(svg.contains(&want), "{want} is not in {svg}");
}
