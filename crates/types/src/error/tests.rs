use super::*;

#[test]
fn a_failure_quotes_no_commands_of_terminals() {
    let failure = Failure::new(
        ErrorKind::SourceRefused,
        "a\u{1b}[2J\u{1b}]0;title\u{7} b\r\u{8}c\u{9b}31m",
        "d\u{202e}e\0\n\tf ü",
    );
    assert_eq!(
        failure.message,
        "a\u{fffd}[2J\u{fffd}]0;title\u{fffd} b\u{fffd}\u{fffd}c\u{fffd}31m"
    );
    assert_eq!(failure.hint, "d\u{fffd}e\u{fffd}\n\tf ü");
}
