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

#[test]
fn places_are_ordered_by_their_numbers() {
    assert_eq!(by_place(b"(9,10)", b"(10,1)"), Ordering::Less);
    assert_eq!(by_place(b"(10,9)", b"(10,10)"), Ordering::Less);
    assert_eq!(by_place(b"(10,9)", b"(10,9)"), Ordering::Equal);
    assert_eq!(by_place(b"(4294967294,65535)", b"(4294967293,65535)"), Ordering::Greater);
    assert_eq!(by_place(b"none", b"(0,1)"), Ordering::Less);
}
