//! What a crash leaves of the journal.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::journal::{SEGMENT_BYTES, segment_name};

fn opened(data: &std::path::Path) -> Database {
    let mut database = Database::open(data).unwrap();
    while database.replay(1000).unwrap() {}
    database.open_for_writes().unwrap();
    database
}

fn keys(database: &Database) -> Vec<&str> {
    database.state.data.keys().map(String::as_str).collect()
}

/// Records of one length, the middle one torn: the last one is whole, begins where a later commit will
/// end, and names the right one before it.
#[test]
fn what_follows_a_torn_record_never_returns() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().join("data");
    crate::create(&data, "boss", "secret").unwrap();
    let mut database = opened(&data);
    let ends = ["a", "b", "c"].map(|key| database.commit(Kind::Data, key, "value").unwrap().end);
    drop(database);
    let torn = ends[1] - 1;
    let path = format!("{JOURNAL}/{}", segment_name(torn / SEGMENT_BYTES));
    let file = PlainDir::new(&data).open_writable(&path, 0o600).unwrap();
    file.write_at(torn % SEGMENT_BYTES, b"!").unwrap();

    let mut database = opened(&data);
    assert_eq!(keys(&database), ["a"]);
    database.commit(Kind::Data, "d", "value").unwrap();
    drop(database);
    assert_eq!(keys(&opened(&data)), ["a", "d"]);
}
