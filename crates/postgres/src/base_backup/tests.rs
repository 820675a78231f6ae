use super::*;

#[test]
fn positions_are_found() {
    let label = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)\n\
                 CHECKPOINT LOCATION: 0/2000060\nSTART TIMELINE: 3\n";
    assert_eq!(parse_label(label), Some((Lsn(0x2000028), 3)));
    assert_eq!(parse_label("START TIMELINE: 3"), None);
}
