use super::*;

#[test]
fn a_header_behind_the_last_flushed_page_is_no_log() {
    let covers = |flushed, written| super::covers(Lsn(flushed), Lsn(written));
    assert!(covers(0x0200_0000, 0x0200_0000) && covers(0x0200_0100, 0x0200_0000));
    // The first page of a file, and another one.
    assert!(covers(0x0200_0000, 0x0200_0028));
    assert!(covers(0x0200_2000, 0x0200_2018));
    // A record behind the header, or in the middle of a page.
    assert!(!covers(0x0200_2000, 0x0200_2018 + 24));
    assert!(!covers(0x0200_0000, 0x0200_0028 + 24));
    assert!(!covers(0x0200_2008, 0x0200_2020));
}

#[test]
fn a_clock_is_compared_with_the_middle_of_its_answer_if_that_came_soon() {
    let at = |ms: i64| Timestamp::from_millisecond(1_800_000_000_000 + ms).unwrap();
    let skew = |theirs, took| skew_ms(at(theirs), at(1_000), Duration::from_millis(took));
    assert_eq!(skew(990, 20), Some(0));
    assert_eq!(skew(3_000, 0), Some(2_000));
    assert_eq!(skew(-500, 100), Some(-1_450));
    assert_eq!(skew(0, 10_000), None);
}
