use super::*;

#[test]
fn a_fatal_error_is_an_error_response() {
    let fatal = Fatal { detail: "why\0not".to_owned(), ..Fatal::new(NOT_ALLOWED, "no") };
    let frame = frame_at(&fatal.encode(), 1000).unwrap().unwrap();
    assert_eq!(frame.tag(), b'E');
    assert_eq!(error_field(frame.body(), b'S'), "FATAL");
    assert_eq!(error_field(frame.body(), b'C'), "28000");
    assert_eq!(error_words(frame.body()), "no: whynot");
    assert_eq!(error_field(frame.body(), b'H'), "");
}

#[test]
fn a_frame_is_taken_when_it_is_whole() {
    let bytes = message(b'Q', &[b"ab", b"c"]);
    assert_eq!(frame_at(&bytes[..4], 100).unwrap(), Err(5));
    assert_eq!(frame_at(&bytes[..7], 100).unwrap(), Err(8));
    assert_eq!(frame_at(&[&bytes[..], b"more"].concat(), 100).unwrap().unwrap().body(), b"abc");
    assert!(frame_at(&bytes, 7).is_err());
    assert!(frame_at(b"Q\0\0\0\x03", 100).is_err());
    assert!(frame_at(b"Q\xff\xff\xff\xff", 100).is_err());
}

#[test]
fn parameters_have_a_name_and_a_value() {
    assert_eq!(parameter(b"a\0b\0"), Some((&b"a"[..], &b"b"[..])));
    assert_eq!(parameter(b"a"), None);
}
