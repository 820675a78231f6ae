use super::*;

#[test]
fn messages_have_their_frozen_form() {
    let tls = Some(Tls { certificate: "c".into(), key: "k".into() });
    let serve = Request::Serve(Backend {
        port: 7,
        tls,
        allow: vec!["10.0.0.0/8".parse().unwrap()],
        logins: BTreeMap::from([("role".to_owned(), "md5".to_owned())]),
    });
    let hold = Request::Hold(Hold { grace_ms: 5, why: Why::Asleep });
    let status = Status {
        version: VERSION,
        state: State::Holding,
        sessions: 3,
        parked: 2,
        waiting: 1,
        idle_ms: 9,
        parked_roles: vec!["role".to_owned()],
    };
    let refused = Reply::Refused { message: "no".to_owned() };
    for (request, text) in [
        (
            serve,
            r#"{"do":"serve","port":7,"tls":{"certificate":"c","key":"k"},"allow":["10.0.0.0/8"],"logins":{"role":"md5"}}"#,
        ),
        (hold, r#"{"do":"hold","grace_ms":5,"why":"asleep"}"#),
        (Request::Status, r#"{"do":"status"}"#),
        (Request::Watch, r#"{"do":"watch"}"#),
        (Request::End, r#"{"do":"end"}"#),
    ] {
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
        assert_eq!(serde_json::from_str::<Request>(text).unwrap(), request);
    }
    for (reply, text) in [
        (
            Reply::Done(status),
            r#"{"done":{"version":1,"state":"holding","sessions":3,"parked":2,"waiting":1,"idle_ms":9,"parked_roles":["role"]}}"#,
        ),
        (Reply::Wanted, r#""wanted""#),
        (refused, r#"{"refused":{"message":"no"}}"#),
    ] {
        assert_eq!(serde_json::to_string(&reply).unwrap(), text);
        assert_eq!(serde_json::from_str::<Reply>(text).unwrap(), reply);
    }
}

#[test]
fn without_a_gateway_the_state_is_wrong() {
    let path = Path::new("/var/tmp/no gateway here");
    let failure = Control::connect(path, Duration::from_secs(1)).unwrap_err();
    assert_eq!(failure.code, ErrorKind::WrongState);
}
