use super::*;

#[test]
fn a_server_reports_how_far_it_is() {
    let line = "2026-11-24 04:43:28.001 UTC [77] LOG:  redo in progress, elapsed time: 1.20 s, \
        current LSN: 2/A0FF0028";
    assert_eq!(reported(line), Some(Lsn(0x2_A0FF_0028)));
    assert_eq!(reported("2026-11-24 04:43:28.001 UTC [77] LOG:  redo starts at 0/2000028"), None);
    assert_eq!(reported("LOG:  current LSN: nowhere"), None);
}

#[test]
fn a_page_header_between_end_and_target_is_no_gap() {
    assert!(reaches(Lsn(100), Lsn(100)));
    assert!(reaches(Lsn(101), Lsn(100)));
    assert!(!reaches(Lsn(100), Lsn(101)));
    assert!(reaches(Lsn(0x300_2000), Lsn(0x300_2018)));
    assert!(!reaches(Lsn(0x300_2000), Lsn(0x300_2030)));
}
