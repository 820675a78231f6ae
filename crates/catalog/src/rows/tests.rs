#![allow(clippy::unwrap_used)]

use super::*;

fn db(key: Option<u8>) -> Connection {
    let db = Connection::open_in_memory().unwrap();
    register(&db, key.map(|byte| [byte; 32]).as_ref()).unwrap();
    db
}

fn value(db: &Connection, sql: &str, of: &dyn rusqlite::ToSql) -> Value {
    db.query_row(sql, [of], |row| row.get(0)).unwrap()
}

fn blob(db: &Connection, sql: &str, text: &str) -> Vec<u8> {
    match value(db, sql, &text) {
        Value::Blob(blob) => blob,
        other => panic!("{other:?}"),
    }
}

const SEAL: &str = "SELECT seal('x', ?1)";
const LABEL: &str = "SELECT label('x', ?1)";
const UNSEAL: &str = "SELECT unseal('x', ?1)";

#[test]
fn what_is_sealed_opens_in_its_column_with_its_key() {
    let mine = db(Some(1));
    for sql in [SEAL, LABEL] {
        let sealed = blob(&mine, sql, "production");
        assert!(!sealed.windows(4).any(|window| window == b"prod"));
        assert_eq!(value(&mine, UNSEAL, &sealed), Value::Text("production".into()));
        assert_eq!(value(&mine, "SELECT unseal('y', ?1)", &sealed), Value::Null);
        assert_eq!(value(&db(Some(2)), UNSEAL, &sealed), Value::Null);
        assert_eq!(value(&db(None), UNSEAL, &sealed), Value::Null);
        for at in 0..sealed.len() {
            let mut wrong = sealed.clone();
            wrong[at] ^= 1;
            assert_eq!(value(&mine, UNSEAL, &wrong), Value::Null, "byte {at}");
        }
    }
    // What somebody wrote into the file himself.
    assert_eq!(value(&mine, UNSEAL, &"production"), Value::Null);
}

#[test]
fn labels_of_a_text_are_equal_and_seals_are_not() {
    let db = db(Some(1));
    assert_eq!(blob(&db, LABEL, "prod"), blob(&db, LABEL, "prod"));
    assert_ne!(blob(&db, LABEL, "prod"), blob(&db, LABEL, "prox"));
    assert_ne!(blob(&db, LABEL, "prod"), blob(&db, "SELECT label('y', ?1)", "prod"));
    assert_ne!(blob(&db, SEAL, "prod"), blob(&db, SEAL, "prod"));
}

#[test]
fn without_a_key_texts_stay_as_they_are() {
    let db = db(None);
    for sql in [SEAL, LABEL, UNSEAL] {
        assert_eq!(value(&db, sql, &"text"), Value::Text("text".into()));
        assert_eq!(value(&db, sql, &Value::Null), Value::Null);
    }
}
