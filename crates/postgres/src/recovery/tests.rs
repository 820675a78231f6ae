use super::*;

#[test]
fn a_page_header_between_end_and_target_is_no_gap() {
    assert!(reaches(Lsn(100), Lsn(100)));
    assert!(reaches(Lsn(101), Lsn(100)));
    assert!(!reaches(Lsn(100), Lsn(101)));
    assert!(reaches(Lsn(0x300_2000), Lsn(0x300_2018)));
    assert!(!reaches(Lsn(0x300_2000), Lsn(0x300_2030)));
}
