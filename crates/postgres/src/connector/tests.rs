use super::state::Remembered;
use super::*;
use offshoot_launcher::ThisHost;

#[test]
fn facts_of_the_first_release_are_read_and_newer_ones_refused() {
    let data = serde_json::json!({
        "system_identifier": 7_575_757_575_757_575_757_u64, "timeline": 2, "wal_segment_bytes": 16_777_216,
    });
    let read = Remembered::load(&ConnectorState { version: 1, data: data.clone() }).unwrap();
    assert_eq!((read.timeline, read.wal_segment_bytes), (2, 16 << 20));
    assert_eq!(read.store().unwrap().data, data);
    let newer = Remembered::load(&ConnectorState { version: 2, data }).unwrap_err();
    assert_eq!(newer.code, ErrorKind::WrongState);
    let unknown = Remembered::load(&ConnectorState::default()).unwrap_err();
    assert_eq!(unknown.code, ErrorKind::WrongState);
}

#[test]
fn a_database_is_found_in_a_uri_with_parameters() {
    let connector = Postgres::new(Arc::new(ThisHost::as_ourselves()), Vec::new());
    let of = |uri: &str| connector.database_of(uri);
    let with = "postgresql://u@127.0.0.1:5432/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem";
    assert_eq!(of(with).as_deref(), Some("shop"));
    assert_eq!(of("postgresql://u@127.0.0.1:5432/shop").as_deref(), Some("shop"));
    assert_eq!(of("no uri"), None);
}
