use super::*;
use crate::Moment;
use serde_json::json;

fn set(change: Value, said: &ProvisionVdb) -> Result<(ProvisionVdb, Vec<HookEvent>), Failure> {
    serde_json::from_value::<SetTemplate>(change).unwrap().of(said)
}

fn said() -> ProvisionVdb {
    serde_json::from_value(json!({
        "name": "ci", "from": "prod", "memory_bytes": 1 << 29, "superuser": true, "gateway": true,
        "settings": {"jit": "off", "work_mem": "4MB"}, "description": "for tests",
        "moment": {"kind": "bookmark", "name": "release"}, "expires_in_ms": 1000,
    }))
    .unwrap()
}

#[test]
fn what_is_absent_stays_and_null_takes_away() {
    assert_eq!(set(json!({}), &said()).unwrap(), (said(), vec![]));
    let change = json!({
        "from": null, "memory_bytes": null, "gateway": false, "expires_in_ms": 2000,
        "settings": {"jit": null, "fsync": "off"}, "labels": {"kind": "qa", "old": null},
        "moment": {"kind": "lsn", "lsn": "0/1"}, "remove_hooks": ["after-stop"],
    });
    let (now, removed) = set(change, &said()).unwrap();
    assert_eq!(removed, [HookEvent::AfterStop]);
    let expected = ProvisionVdb {
        from: String::new(),
        memory_bytes: None,
        gateway: false,
        expires_in_ms: Some(2000),
        settings: [("fsync", "off"), ("work_mem", "4MB")].map(|(k, v)| (k.into(), v.into())).into(),
        labels: [("kind".into(), "qa".into())].into(),
        moment: Moment::Lsn { lsn: "0/1".into() },
        ..said()
    };
    assert_eq!(now, expected);
    let (now, _) = set(json!({"moment": null, "settings": null}), &said()).unwrap();
    assert!(now.moment == Moment::Latest && now.settings.is_empty());
}

#[test]
fn what_is_no_request_is_refused() {
    for change in [
        json!({"memory": 1}),
        json!({"name": null}),
        json!({"settings": {"jit": 1}}),
        json!({"superuser": "yes"}),
        json!({"remove_hooks": ["after-lunch"]}),
        json!({"moment": {"name": "release"}}),
    ] {
        let refused = set(change.clone(), &said()).unwrap_err();
        assert_eq!(refused.code, ErrorKind::InvalidInput, "{change}: {refused}");
    }
}

#[test]
fn a_request_says_what_is_not_usual() {
    let nothing = SetTemplate::saying(&ProvisionVdb::default(), &[]);
    assert!(nothing.0.is_empty(), "{nothing:?}");
    let change = SetTemplate::saying(&said(), &[HookEvent::AfterStop]);
    let usual = ProvisionVdb { name: "x".into(), ..ProvisionVdb::default() };
    assert_eq!(change.of(&usual).unwrap(), (said(), vec![HookEvent::AfterStop]));
    let hook = json!({"name": "x", "hooks": [{"event": "after-stop", "sql": "SELECT 'hunter2'"}]});
    let change: SetTemplate = serde_json::from_value(hook).unwrap();
    assert!(!format!("{change:?}").contains("hunter2"));
}
