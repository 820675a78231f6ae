use super::*;

const COLUMNS: &[Column<(u64, &str)>] = &[
    usual("name", |one| one.1.to_owned(), |one| Key::text(one.1)),
    usual("in-use", |one| one.0.to_string(), |one| Key::Number(one.0)),
    more("twice", |one| (2 * one.0).to_string(), |one| Key::Number(2 * one.0)),
];

fn list(sort: Option<&str>, limit: Option<usize>, columns: &[&str]) -> Result<String, Failure> {
    let columns = columns.iter().map(|&name| name.to_owned()).collect();
    let args = ListArgs { sort: sort.map(str::to_owned), limit, columns };
    let mut all = vec![(10, "b"), (9, "c"), (10, "a")];
    arrange(&mut all, &args, COLUMNS)?;
    let shown = text(&all, 3, &args, COLUMNS, "nothing");
    Ok(shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
        .collect())
}

#[test]
fn lists_are_ordered_and_cut_with_the_columns_that_are_named() {
    assert_eq!(list(None, None, &[]).unwrap(), "NAME IN USE\nb 10\nc 9\na 10\n");
    assert_eq!(list(Some("name"), Some(2), &[]).unwrap(), "NAME IN USE\na 10\nb 10\n");
    assert_eq!(list(Some("in_use"), None, &["name"]).unwrap(), "NAME\nc\nb\na\n", "by number");
    assert_eq!(list(Some("-in-use"), Some(1), &["twice", "NAME"]).unwrap(), "TWICE NAME\n20 a\n");
    for (sort, column) in [(Some("size"), "name"), (None, "size"), (Some("--name"), "name")] {
        let refused = list(sort, None, &[column]).unwrap_err();
        assert_eq!(refused.code, ErrorKind::InvalidInput);
        assert_eq!(refused.hint, "use one of name, in-use, twice");
    }
}

#[test]
fn an_empty_list_says_whether_anything_was_left_out() {
    let args = ListArgs::default();
    assert_eq!(text(&[], 0, &args, COLUMNS, "nothing"), "nothing");
    assert_eq!(text(&[], 3, &args, COLUMNS, "nothing"), "none of 3 is like that");
    assert_eq!(list(None, Some(0), &[]).unwrap(), "none of 3 is like that\n");
}

#[test]
fn words_choose_only_where_there_are_any() {
    let mut all = vec![1, 2, 3];
    retain_in(&mut all, &[], u64::to_string);
    assert_eq!(all, [1, 2, 3]);
    retain_in(&mut all, &["3".to_owned(), "1".to_owned()], u64::to_string);
    assert_eq!(all, [1, 3]);
}
