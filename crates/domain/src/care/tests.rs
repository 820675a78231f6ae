use super::{Care, CareChange, LABELS_MAX};
use jiff::{SignedDuration, Timestamp};
use offshoot_types::ErrorKind;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn labels<const N: usize>(all: [(&str, Option<&str>); N]) -> CareChange {
    let owned = all.map(|(key, value)| (key.to_owned(), value.map(str::to_owned)));
    CareChange { labels: owned.into_iter().collect(), ..CareChange::default() }
}

#[test]
fn what_is_not_named_stays() {
    let change = CareChange {
        description: Some("for the review".to_owned()),
        expires_in_ms: Some(Some(1000)),
        ..labels([("team", Some("checkout")), ("pr", Some("17"))])
    };
    let care = Care::default().changed(&change, NOW).unwrap();
    assert_eq!(care.changed(&CareChange::default(), NOW), Ok(care.clone()));
    let later = NOW + SignedDuration::from_millis(1000);
    assert_eq!(care.expires_at, Some(later));
    assert!(!care.has_expired(NOW) && care.has_expired(later));
    let left = care.changed(&labels([("pr", None), ("unknown", None)]), NOW).unwrap();
    assert_eq!(left.labels.into_iter().collect::<Vec<_>>(), [("team".into(), "checkout".into())]);
    let never = CareChange { expires_in_ms: Some(None), ..CareChange::default() };
    assert!(!care.changed(&never, NOW).unwrap().has_expired(Timestamp::MAX));
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would() {
    let none = CareChange::default();
    let expires = |ms| CareChange { expires_in_ms: Some(Some(ms)), ..CareChange::default() };
    let cases = [
        (CareChange { description: Some("x".repeat(501)), ..none.clone() }, "500"),
        (CareChange { description: Some("two\nlines".to_owned()), ..none.clone() }, "one line"),
        (labels([("", Some("x"))]), "no key"),
        (labels([("with space", Some("x"))]), "no key"),
        (labels([("key", Some("\u{1b}[31m"))]), "one line"),
        (expires(0), "at once"),
        (expires(u64::MAX), "ten years"),
        (CareChange { protected: Some(true), ..expires(1000) }, "does not expire"),
    ];
    for (change, word) in cases {
        let failure = Care::default().changed(&change, NOW).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput);
        assert!(failure.message.contains(word), "{failure:?}");
        assert!(!failure.hint.is_empty());
    }
    let many = (0..=LABELS_MAX).map(|number| (format!("k{number}"), Some(String::new())));
    let change = CareChange { labels: many.collect(), ..none };
    assert!(Care::default().changed(&change, NOW).unwrap_err().message.contains("32 labels"));
}
