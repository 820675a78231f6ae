use super::*;

const RECORD: &str = r#"{"id":"dsource-1","name":"shop","state":"active","problem":null,"connector":"postgres",
    "source":"postgresql://offshoot@127.0.0.1:5432/shop","server_version":"15.18",
    "system_identifier":7575757575757575757,"timeline":2,"wal_segment_bytes":16777216,
    "slot":"offshoot_1_19a","created_at":"2026-11-21T16:06:15Z","log_dataset":"dataset-1","staging_dataset":"dataset-2",
    "timeflow":"timeflow-1","synced_to":{"lsn":"0/2910FAA0","time":"2026-11-21T16:06:15Z"}}"#;

#[test]
fn a_record_of_the_first_release_keeps_all_it_says() {
    let read: Dsource = serde_json::from_str(RECORD).unwrap();
    assert_eq!(read.identity, "7575757575757575757");
    assert_eq!(read.reservation.as_deref(), Some("offshoot_1_19a"));
    assert_eq!(read.connector_state.version, 1);
    assert_eq!(read.connector_state.data["system_identifier"], 7_575_757_575_757_575_757_u64);
    assert_eq!(read.connector_state.data["timeline"], 2);
    assert_eq!(read.connector_state.data["wal_segment_bytes"], 16_777_216);
    assert_eq!(read.synced_to.unwrap().log.0, 0x2910_FAA0);
    let again: Dsource = serde_json::from_str(&serde_json::to_string(&read).unwrap()).unwrap();
    assert_eq!(again, read);
}
