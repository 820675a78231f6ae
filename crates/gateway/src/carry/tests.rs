use super::*;
use crate::messages::message;

fn carried(rows: &[Row<'_>]) -> Result<Carried, String> {
    let mut carried = Carried::default();
    rows.iter().try_for_each(|row| carried.add(*row)).map(|()| carried)
}

#[test]
fn a_row_is_four_texts() {
    let whole = b"\0\x04\0\0\0\x01a\0\0\0\0\xff\xff\xff\xff\0\0\0\x02bc";
    assert_eq!(row(whole), Some([&b"a"[..], b"", b"", b"bc"]));
    for length in 0..whole.len() {
        assert_eq!(row(&whole[..length]), None, "{length} bytes");
    }
    assert_eq!(row(b"\0\x04\x7f\xff\xff\xff"), None);
    assert_eq!(row(b"\0\x03\0\0\0\0\0\0\0\0\0\0\0\0"), None);
}

#[test]
fn only_a_prepare_is_run_again() {
    for text in ["PREPARE a AS SELECT 1", " \nprepare\ta AS SELECT 1"] {
        assert!(carried(&[[b"sql", b"a", text.as_bytes(), b""]]).is_ok());
    }
    for text in ["DROP TABLE a", "PREPAREa", "", "-- x\nPREPARE a AS SELECT 1"] {
        assert!(carried(&[[b"sql", b"a", text.as_bytes(), b""]]).is_err(), "{text}");
    }
    assert!(carried(&[[b"protocol", b"a", b"SELECT 1", b"23,x"]]).is_err());
}

#[test]
fn values_go_back_as_parameters() {
    let carried = carried(&[
        [b"setting", b"work_mem", b"1'; DROP TABLE a", b""],
        [b"setting", b"client_encoding", b"LATIN1", b""],
        [b"setting", b"transaction_isolation", b"serializable", b""],
        [b"role", b"none", b"", b""],
        [b"authorization", b"app", b"", b""],
        [b"channel", b"a\"b", b"", b""],
    ])
    .unwrap();
    let (bytes, awaited) = carried.restore(b"app");
    assert_eq!(awaited, 2);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
    assert!(at("client_encoding") < at("work_mem"));
    assert!(text.contains("LISTEN \"a\"\"b\""));
    assert!(!text.contains("session_authorization") && !text.contains("role"));
    assert!(!text.contains("transaction_isolation"));
}

#[test]
fn a_login_needs_nothing_put_back() {
    for user in [&b"app"[..], &[b'x'; 70]] {
        let carried = Carried::of_login(user);
        assert!(!carried.listens());
        let nothing = [message(b'S', &[]), message(b'S', &[])].concat();
        assert_eq!(carried.restore(user), (nothing, 2));
    }
}
