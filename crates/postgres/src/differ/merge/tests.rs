use super::*;

#[test]
fn what_copy_writes_is_read_back() {
    let mut row =
        Row { line: b"(\"a\\\\tb\")\ta\\tb\t\\N\t\\\\N\t\tc\\nd\n".to_vec(), key: vec![] };
    row.read_key();
    assert_eq!(row.key_text(), "(\"a\\tb\")");
    let texts: Vec<Option<String>> = row.values();
    let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
    assert_eq!(texts, [Some("a\tb"), None, Some("\\N"), Some(""), Some("c\nd")]);
}
