//! Rules in YAML, JSON and TOML, and lists in files.

use super::*;
use crate::Ruleset;

const YAML: &str = r#"
version: 1
key: main
tables:
  "public.people":
    where: "country <> 'CH'"
    quasi_identifiers: [[born, zip]]
    columns:
      email: email
      born: {algorithm: date-shift, min: -30d, max: 30d}
      since: {algorithm: constant, value: 1990-01-01}
      code: {algorithm: cleansing, map: {"007": x}}
      note: [free-text-redaction, tokenize]
  visits: {empty: true}
"#;

const TOML: &str = r#"
# The same.
version = 1
key = "main"

[tables."public.people"]
where = "country <> 'CH'"
quasi_identifiers = [["born", "zip"]]

[tables."public.people".columns]
email = "email"
born = {algorithm = "date-shift", min = "-30d", max = "30d"}
since = {algorithm = "constant", value = 1990-01-01}
code = {algorithm = "cleansing", map = {"007" = "x"}}
note = ["free-text-redaction", "tokenize"]

[tables.visits]
empty = true
"#;

/// Maps in the order of their names.
fn sorted(node: Node) -> Node {
    match node {
        Node::Map(mut map) => {
            map.sort_by(|a, b| a.0.cmp(&b.0));
            Node::Map(map.into_iter().map(|(name, node)| (name, sorted(node))).collect())
        }
        Node::List(list) => Node::List(list.into_iter().map(sorted).collect()),
        node => node,
    }
}

/// Numbers as the texts that every rule takes as well.
fn texts(node: Node) -> Node {
    match node {
        Node::Number(text) => Node::Text(text),
        Node::List(list) => Node::List(list.into_iter().map(texts).collect()),
        Node::Map(map) => {
            Node::Map(map.into_iter().map(|(name, node)| (name, texts(node))).collect())
        }
        node => node,
    }
}

fn no_file(name: &str) -> Result<String, Failure> {
    panic!("{name} is opened")
}

#[test]
fn toml_says_the_same_as_yaml() {
    assert_eq!(sorted(read(TOML).unwrap()), sorted(read(YAML).unwrap()));
    Ruleset::parse(TOML).unwrap();
}

#[test]
fn what_is_toml_is_told_by_its_first_line() {
    for toml in ["a = 1", "\u{feff}\n# x: y\n[tables]", "[[x]]", "key=\"a: b\""] {
        assert!(is_toml(toml), "{toml}");
    }
    for other in [
        "",
        "version: 1",
        "{\"a\": 1}",
        "a: b = c",
        "# a = 1\nversion: 1",
        "\"a=b\": c",
        "{a: b=c}",
    ] {
        assert!(!is_toml(other), "{other}");
    }
}

#[test]
fn bad_toml_is_refused_with_its_line_and_without_its_values() {
    let refused =
        Ruleset::parse("version = 1\nkey = \"main\"\ntables = {secret value}").unwrap_err();
    assert_eq!(refused.code, ErrorKind::InvalidInput);
    assert!(refused.message.contains("line 3"), "{refused}");
    assert!(!refused.message.contains("secret"), "{refused}");
    Ruleset::parse("version = 1\nkey = 'a'\nkey = 'b'\n[tables]").unwrap_err();
    let deep = format!("version = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    Ruleset::parse(&deep).unwrap_err();
}

#[test]
fn lists_in_files_are_put_in_and_everything_else_stays() {
    assert_eq!(assemble(YAML, &mut no_file).unwrap(), YAML);
    assert_eq!(assemble(TOML, &mut no_file).unwrap(), TOML);
    let rules = |lookup: &str| {
        format!(
            "version: 1\nkey: main\ntables: {{t: {{columns: {{c: {lookup}, file: {{algorithm: constant, value: \"1.10\"}}}}}}}}"
        )
    };
    let mut opened = Vec::new();
    let mut open = |name: &str| {
        opened.push(name.to_owned());
        Ok("\u{feff}red\r\n\ngreen: \"x\"\n007\n".to_owned())
    };
    let nested = "[email, {algorithm: secure-lookup, values: {file: lists/a.txt}}]";
    let text = assemble(&rules(nested), &mut open).unwrap();
    assert_eq!(opened, ["lists/a.txt"]);
    let inline =
        rules("[email, {algorithm: secure-lookup, values: [red, 'green: \"x\"', \"007\"]}]");
    assert_eq!(texts(read(&text).unwrap()), texts(read(&inline).unwrap()));
    Ruleset::parse(&text).unwrap();

    // Nothing but lists may be in files.
    let other = rules("{algorithm: cleansing, map: {file: a.txt}}");
    assert_eq!(assemble(&other, &mut no_file).unwrap(), other);
    let refused = assemble(&rules("{algorithm: secure-lookup, values: {file: a}}"), &mut |_| {
        Ok("\n\n".into())
    });
    assert!(refused.unwrap_err().message.contains("no value"));
    // The engine opens none.
    let refused = Ruleset::parse(&rules("{algorithm: secure-lookup, values: {file: /etc/passwd}}"))
        .unwrap_err();
    assert!(refused.message.contains("file of its own"), "{refused}");
}
