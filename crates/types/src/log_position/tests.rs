use super::LogPosition;

#[test]
fn it_is_stored_as_a_number() {
    let text = serde_json::to_string(&LogPosition(0x1_0000_002A)).unwrap();
    assert_eq!(text, "4294967338");
    assert_eq!(serde_json::from_str::<LogPosition>(&text).unwrap(), LogPosition(0x1_0000_002A));
}

#[test]
fn records_of_earlier_releases_are_read() {
    let read = |text: &str| serde_json::from_str::<LogPosition>(text);
    assert_eq!(read("\"1/2A\"").unwrap(), LogPosition(0x1_0000_002A));
    for wrong in ["\"\"", "\"1\"", "\"1/\"", "\"x/1\"", "-1", "1.5", "\"1/123456789\""] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
