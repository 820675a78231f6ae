use super::*;

#[test]
fn lines_are_counted_by_characters() {
    let text = "ä;\nö;\n\nü";
    assert_eq!([1, 2, 3, 4, 6, 7, 8].map(|at| line_of(text, at)), [1, 1, 1, 2, 2, 3, 4]);
    assert_eq!((line_of(text, 0), line_of("", 5)), (1, 1));
}

#[test]
fn messages_are_one_line_of_bounded_length() {
    assert_eq!(one_line("a\nb\u{1b}[2Jc"), "a b [2Jc");
    assert_eq!(one_line(&"x".repeat(5000)).len(), MESSAGE_CHARS_MAX);
}
