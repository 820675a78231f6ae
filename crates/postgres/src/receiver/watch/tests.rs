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
