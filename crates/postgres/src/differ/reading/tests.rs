use super::*;

#[test]
fn ranges_are_joined_where_they_meet() {
    assert_eq!(joined(vec![5..7, 0..2, 2..3, 9..9, 6..8]), [0..3, 5..8]);
    assert_eq!(joined(vec![]), []);
}

#[test]
fn pages_that_a_table_does_not_have_are_not_counted() {
    let reading = Reading::Pages(vec![0..2, 8..20]);
    assert_eq!(reading.pages_of(10), 4);
    assert_eq!(reading.pages_of(3), 2);
    assert_eq!(Reading::Whole("").pages_of(3), 3);
}
