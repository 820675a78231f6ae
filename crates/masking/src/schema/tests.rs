//! What the schema accepts and refuses, held against what is read.

use super::*;
use crate::Ruleset;
use crate::document;

/// Rules of the guide, of the command line and of other tests.
const GOOD: [&str; 5] = [
    include_str!("../../../cli/src/commands/mask/start.yaml"),
    include_str!("../../../postgres/tests/server_side/masking/rules.yaml"),
    "{version: 1, key: main, tables: {\"public.customers\": {columns: {email: email, name: {algorithm: full-name, \
     keep: gender}, born: {algorithm: date-shift, min: -30d, max: 30d}}, where: \"a > 1\"}}}",
    "version = 1\nkey = 'a'\nk_anonymity = 3\n[tables.t]\nquasi_identifiers = ['a', 'b']\n\
     columns = {a = ['email', {algorithm = 'segments', pattern = '(a)', groups = {1 = 'keep'}, otherwise = 'null'}]}",
    "{version: '1', key: a, tables: {t: {quasi_identifiers: [[a], [b]], columns: {c: {algorithm: secure-lookup, \
     values: {file: names.txt}}, d: {algorithm: cleansing, map: {a: 1}, otherwise: x}}}, 'u*': {empty: true}}}",
];

/// What is wrong with each is wrong in its form.
const BAD: [&str; 16] = [
    "{key: a, tables: {t: {empty: true}}}",
    "{version: 2, key: a, tables: {t: {empty: true}}}",
    "{version: 1, tables: {t: {empty: true}}}",
    "{version: 1, key: a}",
    "{version: 1, key: a, tables: {}}",
    "{version: 1, key: a, more: 1, tables: {t: {empty: true}}}",
    "{version: 1, key: a, k_anonymity: 1, tables: {t: {empty: true}}}",
    "{version: 1, key: a, tables: {t: {empty: yes}}}",
    "{version: 1, key: a, tables: {t: {colums: {a: email}}}}",
    "{version: 1, key: a, tables: {t: {columns: {a: e-mail}}}}",
    "{version: 1, key: a, tables: {t: {columns: {a: {algorithm: email, keep: bin}}}}}",
    "{version: 1, key: a, tables: {t: {columns: {a: {algorithm: email, min: 1}}}}}",
    "{version: 1, key: a, tables: {t: {columns: {a: secure-lookup}}}}",
    "{version: 1, key: a, tables: {t: {columns: {a: {algorithm: chain, steps: [nothing]}}}}}",
    "{version: 1, key: a, tables: {t: {columns: {a: []}}}}",
    "{version: 1, key: a, tables: {t: {quasi_identifiers: [[a], b]}}}",
];

fn document_of(text: &str) -> Value {
    // As an editor sees it: numbers are numbers.
    fn value(node: crate::node::Node) -> Value {
        use crate::node::Node;
        match node {
            Node::Null => Value::Null,
            Node::Bool(flag) => json!(flag),
            Node::Number(text) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            Node::Text(text) => json!(text),
            Node::List(list) => list.into_iter().map(value).collect(),
            Node::Map(map) => {
                Value::Object(map.into_iter().map(|(name, node)| (name, value(node))).collect())
            }
        }
    }
    value(document::read(text).unwrap())
}

#[test]
fn every_example_is_accepted_and_can_be_read() {
    for text in GOOD {
        let document = document_of(text);
        assert!(holds(&schema(), &document), "{text}");
        let lists = document::assemble(text, &mut |_| Ok("a\nb\n".to_owned())).unwrap();
        Ruleset::parse(&lists).unwrap();
    }
    // The examples of the guide.
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/masking.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    for (form, examples) in [("yaml", 1), ("toml", 1)] {
        let blocks: Vec<&str> = guide.split(&format!("```{form}\n")).skip(1).collect();
        assert!(blocks.len() >= examples, "{form}");
        for block in blocks {
            let text = block.split("```").next().unwrap();
            assert!(holds(&schema(), &document_of(text)), "{text}");
            let lists = document::assemble(text, &mut |_| Ok("a\nb\n".to_owned())).unwrap();
            Ruleset::parse(&lists).unwrap();
        }
    }
}

#[test]
fn what_is_wrong_in_form_is_refused_by_the_schema_and_when_it_is_read() {
    for text in BAD {
        assert!(!holds(&schema(), &document_of(text)), "{text}");
        Ruleset::parse(text).expect_err(text);
    }
}

#[test]
fn every_algorithm_is_in_it_with_all_its_parameters() {
    let schema = schema();
    let known = schema["$defs"]["algorithm"]["anyOf"].as_array().unwrap();
    assert_eq!(known.len(), algorithms::ENTRIES.len());
    for (entry, known) in algorithms::ENTRIES.iter().zip(known) {
        assert_eq!(known["properties"]["algorithm"]["const"], entry.name);
        assert_eq!(known["properties"].as_object().unwrap().len(), entry.parameters.len() + 1);
        // What it can do without, it is read without.
        let bare =
            format!("{{version: 1, key: a, tables: {{t: {{columns: {{c: {}}}}}}}}}", entry.name);
        let bare = bare.replace("c: null", "c: 'null'");
        let read = Ruleset::parse(&bare).is_ok();
        assert!(
            read || entry.name == "number-noise"
                || entry.name == "min-max"
                || !required(entry.name).is_empty(),
            "{}",
            entry.name
        );
        assert!(!read || required(entry.name).is_empty(), "{}", entry.name);
    }
}

/// Whether a document is as a schema says, for the words of JSON schema that ours uses; another word fails.
fn holds(schema: &Value, document: &Value) -> bool {
    Checker { root: schema }.holds(schema, document)
}

struct Checker<'a> {
    root: &'a Value,
}

impl Checker<'_> {
    fn holds(&self, schema: &Value, document: &Value) -> bool {
        schema
            .as_object()
            .unwrap()
            .iter()
            .all(|(word, says)| self.word(schema, word, says, document))
    }

    fn word(&self, schema: &Value, word: &str, says: &Value, document: &Value) -> bool {
        let (map, list) = (document.as_object(), document.as_array());
        let number = |of: &Value| of.as_u64().unwrap() as usize;
        match word {
            "$schema" | "title" | "description" | "default" | "$defs" => true,
            "$ref" => {
                let name = says.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                self.holds(self.root["$defs"].get(name).unwrap(), document)
            }
            "type" => match says {
                Value::Array(types) => types.iter().any(|one| is_of(one, document)),
                one => is_of(one, document),
            },
            "const" => document == says,
            "enum" => says.as_array().unwrap().contains(document),
            "anyOf" => says.as_array().unwrap().iter().any(|one| self.holds(one, document)),
            "required" => map.is_none_or(|map| {
                says.as_array().unwrap().iter().all(|name| map.contains_key(name.as_str().unwrap()))
            }),
            "properties" => map.is_none_or(|map| {
                let known = says.as_object().unwrap();
                map.iter()
                    .all(|(name, one)| known.get(name).is_none_or(|says| self.holds(says, one)))
            }),
            "additionalProperties" => map.is_none_or(|map| {
                let known = |name: &str| schema["properties"].get(name).is_some();
                map.iter().filter(|(name, _)| !known(name)).all(|(_, one)| match says {
                    Value::Bool(allowed) => *allowed,
                    says => self.holds(says, one),
                })
            }),
            "items" => list.is_none_or(|list| list.iter().all(|one| self.holds(says, one))),
            "minItems" => list.is_none_or(|list| list.len() >= number(says)),
            "maxItems" => list.is_none_or(|list| list.len() <= number(says)),
            "minProperties" => map.is_none_or(|map| map.len() >= number(says)),
            "minLength" => {
                document.as_str().is_none_or(|text| text.chars().count() >= number(says))
            }
            "minimum" => document.as_f64().is_none_or(|it| it >= says.as_f64().unwrap()),
            "maximum" => document.as_f64().is_none_or(|it| it <= says.as_f64().unwrap()),
            other => panic!("this test does not know the word {other}"),
        }
    }
}

fn is_of(kind: &Value, document: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => document.is_object(),
        "array" => document.is_array(),
        "string" => document.is_string(),
        "boolean" => document.is_boolean(),
        "integer" => document.is_i64() || document.is_u64(),
        "number" => document.is_number(),
        other => panic!("this test does not know the type {other}"),
    }
}
