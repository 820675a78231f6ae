use super::*;

#[test]
fn literals_and_comments_are_blanked_line_for_line() {
    let text =
        "let a = \"fn x() {\"; // fn y() {\nlet b = r#\"{\n\"{ \"#; /* { /* { */ */ let c = '{';";
    let code = code_only(text);
    assert_eq!(code.lines().count(), text.lines().count());
    assert!(!code.contains('{'), "{code}");
    assert!(code.contains("let c ="));
}

#[test]
fn lifetimes_are_not_literals() {
    let code = code_only("fn f<'a>(x: &'a str) -> &'a str { x }");
    assert_eq!(code, "fn f<'a>(x: &'a str) -> &'a str { x }");
    assert_eq!(code_only(r"let q = '\''; let z = 1;"), r"let q = '  '; let z = 1;");
}

#[test]
fn a_word_that_ends_in_r_opens_no_raw_string() {
    assert_eq!(code_only("for\"a\" x"), "for\" \" x");
}

#[test]
fn lines_of_tests_are_known() {
    let code = code_only("fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}");
    assert_eq!(test_lines(&code), [2..=5]);
    assert_eq!(test_lines("#[cfg(test)]\nmod tests;\nfn a() {}"), [1..=2]);
}
