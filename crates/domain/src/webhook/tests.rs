use super::*;

fn webhook(events: &[&str]) -> Webhook {
    Webhook {
        id: WebhookId(1),
        name: "ci".parse().unwrap(),
        url: "https://ci.example/hook".to_owned(),
        events: events.iter().map(|text| text.parse().unwrap()).collect(),
        insecure: false,
        created_at: at(0),
        cursor: 7,
        missed: 0,
        delivered_at: None,
        failures: 0,
        failing_since: None,
        error: None,
        old_key_until: None,
    }
}

fn at(hour: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + 3600 * hour).unwrap()
}

#[test]
fn signs_as_the_specification_says() {
    // Its example: https://github.com/standard-webhooks/standard-webhooks, in the tests of its libraries.
    let key = WebhookKey::parse(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")).unwrap();
    let signature =
        key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn a_key_is_long_enough_and_written_in_one_way() {
    let made = WebhookKey::written(&[7; 32]);
    assert!(WebhookKey::parse(&made).is_ok());
    assert!(!format!("{made:?}").contains("whsec_"), "{made:?}");
    let of = |count| format!("whsec_{}", STANDARD.encode(vec![1; count]));
    for (text, good) in [
        (of(24), true),
        (of(64), true),
        (of(23), false),
        (of(65), false),
        ("whsec_".into(), false),
        ("whsec_not base64".into(), false),
        (STANDARD.encode([1; 32]), false),
    ] {
        assert_eq!(WebhookKey::parse(&Secret::new(text.as_str())).is_ok(), good, "{text}");
    }
}

#[test]
fn addresses_that_give_something_away_are_refused() {
    let taken = |text: &str| webhook_url(text, false);
    let long = format!("https://ci.example/{}", "x".repeat(2048));
    for good in [
        "https://ci.example/hook?team=a",
        "https://10.0.0.7:8443/",
        "http://127.0.0.1:8080/hook",
        "http://127.9.9.9/",
        "http://[::1]:80/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost/",
    ] {
        taken(good).unwrap_or_else(|failure| panic!("{good}: {failure}"));
    }
    for wrong in [
        "http://ci.example/hook",
        "http://localhost.evil.example/",
        "http://127.0.0.1.evil.example/",
        "http://0.0.0.0/",
        "http://169.254.169.254/latest",
        "https://eve:hunter2@ci.example/",
        "https://eve@ci.example/",
        "https://ci.example/#there",
        "ftp://ci.example/",
        "file:///etc/passwd",
        "unix:///run/x.socket",
        "https://",
        "ci.example",
        "",
        long.as_str(),
    ] {
        let failure = taken(wrong).expect_err(wrong);
        assert_eq!(failure.code, ErrorKind::InvalidInput, "{wrong}");
        assert!(!failure.to_string().contains("hunter2"), "{failure}");
    }
    assert!(webhook_url("http://ci.example/hook", true).is_ok());
    assert!(webhook_url("http://eve:x@ci.example/", true).is_err());
    // Every program reads the same host in what is kept.
    assert_eq!(taken("HTTPS://CI.example:443/a b").unwrap(), "https://ci.example/a%20b");
    assert_eq!(taken("http://0x7f.1/").unwrap(), "http://127.0.0.1/");
    assert_eq!(taken("https:\\\\ci.example\\a").unwrap(), "https://ci.example/a");
}

#[test]
fn patterns_say_which_events_are_meant() {
    let all =
        "fault.raised fault.cleared job.vdb_provision.done job.vdb_provision.failed job.diff.done";
    let meant = |pattern: &str| {
        let pattern: EventPattern = pattern.parse().unwrap();
        let all = all.split(' ').filter(|kind| pattern.matches(kind)).collect::<Vec<_>>();
        all.join(" ")
    };
    assert_eq!(meant("*"), all);
    assert_eq!(meant("fault.*"), "fault.raised fault.cleared");
    assert_eq!(meant("fault.raised"), "fault.raised");
    assert_eq!(meant("job.vdb_*"), "job.vdb_provision.done job.vdb_provision.failed");
    assert_eq!(meant("*.failed"), "job.vdb_provision.failed");
    assert_eq!(meant("job.*.done"), "job.vdb_provision.done job.diff.done");
    assert_eq!(meant("*v*o*"), "job.vdb_provision.done job.vdb_provision.failed");
    for nothing in
        ["", "faults", "fault", "fault.", "job", "job.vdb_provision", "jobs.*", "Fault.*"]
    {
        assert!(nothing.parse::<EventPattern>().is_err(), "{nothing}");
    }
    assert!("fault.r*".parse::<EventPattern>().is_ok());
    assert!("j*".parse::<EventPattern>().is_ok());
    assert!("x".repeat(200).parse::<EventPattern>().is_err());
    let one = webhook(&["fault.*", "job.diff.*"]);
    assert!(one.wants("job.diff.done") && !one.wants("job.vdb_provision.done"));
}

#[test]
fn a_part_of_a_pattern_is_not_used_twice() {
    let of = |text: &str| EventPattern(text.to_owned());
    assert!(!of("fault.raised*ed").matches("fault.raised"));
    assert!(!of("*.done.done").matches("job.diff.done"));
}

#[test]
fn pauses_grow_and_have_an_end() {
    let mut one = webhook(&["*"]);
    let seconds: Vec<u64> = (0..14)
        .map(|_| {
            let pause = one.pause().as_secs();
            one.failed(8, at(0), at(0), "it is away");
            pause
        })
        .collect();
    assert_eq!(seconds, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600]);
    one.answered();
    assert_eq!((one.pause(), one.cursor), (Duration::ZERO, 7));
    one.failures = u32::MAX;
    assert_eq!(one.pause().as_secs(), 600);
}

#[test]
fn a_failure_keeps_the_event_until_it_is_too_old() {
    let mut one = webhook(&["*"]);
    for hour in 0..4 {
        assert!(!one.is_failing());
        one.failed(8, at(0), at(hour), "it is away");
    }
    assert!(one.is_failing());
    assert_eq!((one.cursor, one.missed, one.failing_since), (7, 0, Some(at(0))));
    one.failed(8, at(0), at(73), "it is still away");
    assert_eq!((one.cursor, one.missed), (8, 1));
    assert_eq!(one.error.as_deref(), Some("it is still away"));
    one.delivered(9, at(74));
    assert_eq!((one.cursor, one.failures, one.failing_since), (9, 0, None));
    assert_eq!((one.error, one.delivered_at, one.missed), (None, Some(at(74)), 1));
}

#[test]
fn the_key_of_before_signs_for_a_day() {
    let mut one = webhook(&["*"]);
    assert!(!one.is_old_key_over(at(0)));
    one.rotated(at(0));
    assert_eq!(one.old_key_until, Some(at(24)));
    assert!(!one.is_old_key_over(at(23)) && one.is_old_key_over(at(24)));
}
