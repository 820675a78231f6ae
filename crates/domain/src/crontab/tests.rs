use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn it_is_due_at_its_times() {
    let now = at("2026-11-27T02:30:00Z");
    for (text, next) in [
        ("30 2 * * *", "2026-11-28T02:30:00Z"),
        ("*/10 * * * *", "2026-11-27T02:40:00Z"),
        ("0 4 * * MON UTC", "2026-11-30T04:00:00Z"),
        (" 0 0 29 2 * ", "2028-02-29T00:00:00Z"),
    ] {
        let crontab = Crontab::new(text, now).unwrap();
        assert_eq!(crontab.next_after(now), Some(at(next)), "{text}");
    }
}

#[test]
fn what_says_no_time_is_refused() {
    for text in ["", "often", "* * * *", "61 * * * *", "0 0 30 2 *", "0 4 * * * Mars/Olympus"] {
        let refused = Crontab::new(text, at("2026-11-27T00:00:00Z")).unwrap_err();
        assert_eq!(refused.code, ErrorKind::InvalidInput, "{refused:?}");
        assert!(refused.hint.contains("every 5min"), "{refused:?}");
    }
}
