use super::{Moment, parse_time, parse_time_near};
use jiff::Timestamp;
use offshoot_types::{ErrorKind, SnapshotId};

fn time(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

#[test]
fn times_with_a_zone() {
    let expected = time("2026-11-21T14:03:27.5Z");
    for text in [
        "2026-11-21 14:03:27.5+00",
        "2026-11-21 14:03:27.5+00:00",
        "2026-11-21T14:03:27.5Z",
        "2026-11-21 16:03:27.500000+02",
        "2026-11-21 14:03:27.5 +00",
        "2026-11-21 14:03:27.5 UTC",
        "  2026-11-21 08:33:27.5-05:30 ",
    ] {
        let parsed = parse_time(text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert_eq!((parsed.time, parsed.assumed_utc), (expected, false), "{text}");
    }
}

#[test]
fn a_time_without_a_zone_is_utc_and_says_so() {
    let parsed = parse_time("2026-11-21 14:03:27.5").expect("a time");
    assert_eq!(parsed.time, time("2026-11-21T14:03:27.5Z"));
    assert!(parsed.assumed_utc);
    let day = parse_time("2026-11-21").expect("a day");
    assert_eq!((day.time, day.assumed_utc), (time("2026-11-21T00:00:00Z"), true));
}

#[test]
fn microseconds_are_kept() {
    let parsed = parse_time("2026-11-21 14:03:27.123456+00").expect("a time");
    assert_eq!(parsed.time.as_microsecond() % 1_000_000, 123_456);
}

#[test]
fn what_is_no_time_is_refused() {
    for text in ["", "yesterday", "2026-13-01 00:00:00Z", "2026-02-30", "14:03", "0/3A2B1C0", "+00"]
    {
        let failure = parse_time(text).expect_err(text);
        assert_eq!(failure.code, ErrorKind::InvalidInput);
        assert!(failure.hint.contains("2026-11-21 14:03:27.5+00"));
    }
}

#[test]
fn times_by_now() {
    let now = time("2026-11-21T14:03:27.5Z");
    for (text, expected, assumed_utc) in [
        ("now", "2026-11-21T14:03:27.5Z", false),
        ("-1h", "2026-11-21T13:03:27.5Z", false),
        (" 90s ago ", "2026-11-21T14:01:57.5Z", false),
        ("2d ago", "2026-11-19T14:03:27.5Z", false),
        ("today 09:15", "2026-11-21T09:15:00Z", true),
        ("yesterday 14:03:27.25", "2026-11-20T14:03:27.25Z", true),
        ("yesterday 14:03 +02", "2026-11-20T12:03:00Z", false),
        ("yesterday", "2026-11-20T00:00:00Z", true),
        ("2026-11-20 01:00:00+00", "2026-11-20T01:00:00Z", false),
    ] {
        let parsed =
            parse_time_near(text, now).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert_eq!((parsed.time, parsed.assumed_utc), (time(expected), assumed_utc), "{text}");
    }
    for text in ["-", "-x", "ago", "yesterday 25:00", "tomorrow", "-99999999999d", "-1"] {
        parse_time_near(text, now).expect_err(text);
    }
}

#[test]
fn moments_keep_their_json_form() {
    let cases = [
        (Moment::Latest, r#""latest""#),
        (Moment::Snapshot(SnapshotId(3)), r#"{"snapshot":"snapshot-3"}"#),
        (Moment::At(time("2026-11-21T14:03:27.5Z")), r#"{"at":"2026-11-21T14:03:27.5Z"}"#),
        (Moment::Log("0/3A2B1C0".to_owned()), r#"{"log":"0/3A2B1C0"}"#),
        (Moment::Transaction("7".to_owned()), r#"{"transaction":"7"}"#),
    ];
    for (moment, json) in cases {
        assert_eq!(serde_json::to_string(&moment).expect("JSON"), json);
        assert_eq!(serde_json::from_str::<Moment>(json).expect("a moment"), moment);
    }
}

#[test]
fn moments_in_jobs_of_the_first_release_are_read() {
    let read = |json: &str| serde_json::from_str::<Moment>(json).expect("a moment");
    assert_eq!(read(r#"{"lsn":"0/3A2B1C0"}"#), Moment::Log("0/3A2B1C0".to_owned()));
    assert_eq!(read(r#"{"xid":7}"#), Moment::Transaction("7".to_owned()));
}
