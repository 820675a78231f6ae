use super::*;

fn made(text: &str, database: Option<&str>, seconds: Option<u64>) -> Result<Hook, Failure> {
    made_of((HookEvent::AfterRefresh, HookKind::Sql), text, database, seconds)
}

fn made_of(
    of: (HookEvent, HookKind),
    text: &str,
    database: Option<&str>,
    seconds: Option<u64>,
) -> Result<Hook, Failure> {
    Hook::new("1".into(), of, text, database.map(str::to_owned), seconds.map(Duration::from_secs))
}

#[test]
fn sql_needs_a_server_and_a_program_its_interpreter() {
    for event in HookEvent::ALL {
        let sql = made_of((event, HookKind::Sql), "SELECT 1", None, None);
        assert_eq!(sql.is_ok(), event.has_server(), "{event}");
        made_of((event, HookKind::Program), "#!/bin/sh\ntrue", None, None).unwrap();
    }
    for text in ["true", "#! /bin/sh", "#!sh", "\n#!/bin/sh"] {
        let of = (HookEvent::AfterStop, HookKind::Program);
        let refused = made_of(of, text, None, None).unwrap_err();
        assert_eq!(refused.code, ErrorKind::InvalidInput, "{text:?}");
    }
}

#[test]
fn what_runs_before_runs_after() {
    let before = HookEvent::ALL.into_iter().filter_map(|event| Some((event, event.counterpart()?)));
    for (before, after) in before {
        assert_eq!(before.as_str().replace("before", "after"), after.as_str());
        assert_eq!(after.counterpart(), None);
    }
}

#[test]
fn hooks_are_text_of_bounded_size_and_time() {
    let hook = made("SELECT 1", Some("shop"), None).unwrap();
    assert_eq!((hook.bytes, hook.time_limit()), (8, Hook::TIME_LIMIT));
    made(&" ;".repeat(BYTES_MAX / 2), None, Some(86_400)).unwrap();
    for (text, database, seconds) in [
        ("", None, None),
        (" \n\t", None, None),
        ("SELECT '\0'", None, None),
        ("SELECT 1", Some(""), None),
        ("SELECT 1", Some("a\nb"), None),
        ("SELECT 1", None, Some(0)),
        ("SELECT 1", None, Some(86_401)),
    ] {
        let refused = made(text, database, seconds).unwrap_err();
        assert_eq!(refused.code, ErrorKind::InvalidInput, "{text:?} {database:?} {seconds:?}");
        assert!(!refused.hint.is_empty());
    }
    assert!(made(&"x".repeat(BYTES_MAX + 1), None, None).is_err());
}

#[test]
fn events_are_stored_as_users_write_them() {
    for event in HookEvent::ALL {
        assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
    }
}
