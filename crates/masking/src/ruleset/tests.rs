use super::*;

fn refused(text: &str) -> String {
    match Ruleset::parse(text) {
        Ok(_) => panic!("it is accepted: {text}"),
        Err(failure) => {
            assert_eq!(failure.code, ErrorKind::InvalidInput);
            assert!(!failure.hint.is_empty(), "{failure}");
            format!("{}: {}", failure.message, failure.hint)
        }
    }
}

fn rule(rule: &str) -> String {
    format!("version: 1\nkey: main\ntables:\n  \"public.t\":\n    columns:\n      c: {rule}\n")
}

#[test]
fn yaml_and_json_are_read() {
    let yaml = rule("{algorithm: full-name, keep: [gender, case]}");
    assert_eq!(Ruleset::parse(&yaml).unwrap().key_name(), "main");
    let json = r#"{"version": 1, "key": "main", "tables": {"t": {"columns": {"c": {"algorithm": "email"}}}}}"#;
    assert_eq!(Ruleset::parse(json).unwrap().tables.len(), 1);
}

#[test]
fn a_wrong_rule_is_named_with_what_is_possible() {
    let cases = [
        (
            "scramble",
            "there is no algorithm 'scramble': possible are: address, array, binary-lookup",
        ),
        (
            "{algorithm: email, domian: x}",
            "'email' has no parameter 'domian': possible are: domain",
        ),
        ("{algorithm: 'null', value: x}", "'null' has no parameter 'value': it takes none"),
        ("{keep: gender}", "`algorithm` is missing"),
        ("5", "the rule is a number"),
        ("", "the rule is empty"),
        ("{algorithm: email, domain: 'a b'}", "`domain: a b` is no domain"),
        ("{algorithm: full-name, keep: colour}", "'colour': possible are: gender, case"),
        ("{algorithm: date-shift, min: -30}", "`min: -30` is no duration"),
        ("{algorithm: date-shift, min: 5d, max: 2d}", "holds no shift"),
        ("{algorithm: date-shift, min: 0d, max: 0d}", "holds no shift"),
        ("{algorithm: number-noise}", "`percent` is missing"),
        ("{algorithm: number-noise, percent: x}", "is no number"),
        ("{algorithm: number-noise, percent: 10, amount: 1}", "exclude each other"),
        ("{algorithm: secure-lookup, values: []}", "has 0 values"),
        ("{algorithm: secure-lookup}", "`values` is missing"),
        ("{algorithm: secure-lookup, values: {a: b}}", "`values` is a map"),
        ("{algorithm: segments, pattern: '(', groups: {1: email}}", "cannot be read"),
        ("{algorithm: segments, pattern: 'a', groups: {1: email}}", "no group '1'"),
        ("{algorithm: json, paths: {'$x': email}}", "'$x' is no path"),
        ("{algorithm: json, paths: {a: nothing}}", "path 'a': there is no algorithm"),
        ("{algorithm: sql, expression: ' '}", "is no SQL"),
        ("{algorithm: national-id, country: XX}", "possible are: BR, CA"),
        ("{algorithm: postcode, country: DE}", "`country` needs `per`"),
        ("[email, phoney]", "there is no algorithm 'phoney'"),
        ("[]", "has no rule"),
    ];
    for (text, expected) in cases {
        let message = refused(&rule(text));
        assert!(message.starts_with("table 'public.t', column 'c': "), "{message}");
        assert!(message.contains(expected), "{message} has not: {expected}");
    }
}

#[test]
fn a_wrong_ruleset_is_refused() {
    let cases = [
        ("", "the rules"),
        ("a", "the rules are a text"),
        ("{", "cannot be read"),
        ("version: 1", "`key` is missing"),
        ("key: main", "`version` is missing"),
        ("{version: 2, key: main, tables: {t: {empty: true}}}", "this version"),
        ("{version: 1, key: 'a b', tables: {t: {empty: true}}}", "`key`"),
        ("{version: 1, key: main}", "`tables` is missing"),
        ("{version: 1, key: main, tables: {}}", "names no table"),
        ("{version: 1, key: main, table: {}}", "no field 'table'"),
        ("{version: 1, key: main, tables: {t: {}}}", "nothing is to be done"),
        ("{version: 1, key: main, tables: {t: {colums: {}}}}", "no field 'colums'"),
        ("{version: 1, key: main, tables: {t: {empty: true, columns: {c: email}}}}", "other rules"),
        ("{version: 1, key: main, tables: {t: {empty: yes}}}", "`empty`"),
        ("{version: 1, key: main, tables: {t: {where: 1, columns: {c: email}}}}", "`where`"),
        ("{version: 1, key: main, tables: {t: {empty: true}, t: {empty: true}}}", "cannot be read"),
    ];
    for (text, expected) in cases {
        let message = refused(text);
        assert!(message.contains(expected), "{message} has not: {expected}");
    }
}

#[test]
fn what_grows_without_end_is_refused() {
    let mut bomb = String::from("version: 1\nkey: main\na: &a0 [x]\n");
    for level in 1..40 {
        bomb += &format!("b{level}: &a{level} [*a{0}, *a{0}, *a{0}]\n", level - 1);
    }
    refused(&bomb);
    refused(&"[".repeat(100_000));
    refused(&rule(&format!("{}email{}", "[".repeat(100), "]".repeat(100))));
}

#[test]
fn numbers_stay_as_they_were_written() {
    let text =
        rule("{algorithm: secure-lookup, values: [01234, 1_000, yes, 12345678901234567890123]}");
    let debug = format!("{:?}", Ruleset::parse(&text).unwrap());
    for value in ["\"01234\"", "\"1_000\"", "\"yes\""] {
        assert!(debug.contains(value), "{value} in {debug}");
    }
}

#[test]
fn quasi_identifiers_are_bound_to_the_tables_that_have_them() {
    let parse = |table: &str| {
        Ruleset::parse(&format!("version: 1\nkey: main\nk_anonymity: 9\ntables: {{{table}}}"))
    };
    let column = |name: &str| crate::ColumnFacts {
        name: name.into(),
        class: crate::TypeClass::Text,
        type_name: "text".into(),
        chars_max: None,
        nullable: true,
        unique: false,
        references: false,
        generated: false,
    };
    let table = |name: &str, columns: &[&str]| crate::TableFacts {
        schema: "public".into(),
        name: name.into(),
        columns: columns.iter().map(|name| column(name)).collect(),
    };
    let tables = [table("a", &["id", "zip", "born"]), table("b", &["id"])];
    let bind = |rules: &Ruleset| rules.bind(&tables, &crate::MaskingKey::new(b"x"));
    let rules = parse("'*': {quasi_identifiers: [born, zip]}").unwrap();
    assert_eq!(rules.k(), 9);
    let bound = bind(&rules);
    assert!(bound.problems.is_empty() && bound.idle.is_empty(), "{bound:?}");
    let columns = vec![2, 1];
    assert_eq!(bound.quasi_identifiers, [crate::BoundQuasiIdentifiers { table: 0, columns }]);
    // A table's very name promises that it has them.
    let bound = bind(&parse("b: {quasi_identifiers: [[id], [zip]]}").unwrap());
    assert!(bound.problems[0].contains("'zip'"), "{bound:?}");
    for bad in ["zip", "[[]]", "[{a: b}]", "[[a], b]", "{}"] {
        let refused = parse(&format!("a: {{quasi_identifiers: {bad}}}")).unwrap_err();
        assert!(refused.message.contains("quasi_identifiers"), "{bad}: {refused:?}");
    }
    for bad in ["1", "x", "-1", "[]", "99999999"] {
        let rules =
            format!("version: 1\nkey: a\nk_anonymity: {bad}\ntables: {{a: {{empty: true}}}}");
        assert!(Ruleset::parse(&rules).unwrap_err().message.contains("k_anonymity"), "{bad}");
    }
}

#[test]
fn rows_to_keep_are_a_condition_of_their_own() {
    let parse = |table: &str| {
        Ruleset::parse(&format!("version: 1\nkey: main\ntables:\n  customers: {table}\n"))
    };
    let rules = parse("{keep_rows: id > 3}").unwrap();
    assert_eq!(rules.tables[0].keep_rows.as_deref(), Some("id > 3"));
    assert!(rules.tables[0].columns.is_empty());
    for (table, wanted) in [
        ("{keep_rows: 3}", "`keep_rows` is no SQL condition"),
        ("{keep_rows: ''}", "`keep_rows` is no SQL condition"),
        ("{keep_rows: id > 3, empty: true}", "it is emptied, and has other rules"),
        ("{keep: id > 3}", "keep_rows"),
    ] {
        let refused = parse(table).unwrap_err();
        let told = format!("{} {}", refused.message, refused.hint);
        assert!(told.contains(wanted), "{table}: {told}");
    }
}
