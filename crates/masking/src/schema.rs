//! The JSON schema of rulesets, for editors and checks in a repository. It is made of what the algorithms say they take.
//!
//! It holds the form of rules: names, parameters, what each of them takes. Whether a rule fits a column only
//! `mask check` can say.

use crate::algorithms;
use crate::parameters::Entry;
use serde_json::{Map, Value, json};

/// The JSON schema (draft 2020-12) of a ruleset in YAML, JSON or TOML.
pub fn schema() -> Value {
    let rules: Vec<Value> = algorithms::ENTRIES.iter().map(|entry| algorithm(entry)).collect();
    // `chain` is also a list, and one with a required parameter needs more than its name.
    let bare = algorithms::ENTRIES.iter().filter(|entry| required(entry.name).is_empty());
    let bare: Vec<&str> = bare.map(|entry| entry.name).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Masking rules of Offshoot",
        "type": "object",
        "required": ["version", "key", "tables"],
        "additionalProperties": false,
        "properties": {
            "version": {"enum": [1, "1"], "description": "The version of this form."},
            "key": {
                "$ref": "#/$defs/scalar",
                "description": "The key that masks depend on. Rules that name the same key give the same masks.",
            },
            "k_anonymity": {
                "type": "integer", "minimum": 2, "maximum": 1_000_000, "default": 5,
                "description": "How many rows should share each combination of quasi-identifiers, for reports.",
            },
            "tables": {
                "type": "object",
                "minProperties": 1,
                "description": "By name: table, schema.table or database.schema.table; * and ? stand for other characters.",
                "additionalProperties": {"$ref": "#/$defs/table"},
            },
        },
        "$defs": {
            "table": table(),
            "rule": {"anyOf": [
                {"enum": bare},
                {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/rule"}, "description": "Rules that are applied in turn."},
                {"$ref": "#/$defs/algorithm"},
            ]},
            "algorithm": {"type": "object", "required": ["algorithm"], "anyOf": rules},
            "scalar": {"type": ["string", "number", "boolean"]},
            "scalars": {"anyOf": [
                {"$ref": "#/$defs/scalar"},
                {"type": "array", "items": {"$ref": "#/$defs/scalar"}},
            ]},
            "list": {"anyOf": [{"$ref": "#/$defs/scalars"}, {
                "type": "object",
                "description": "A file with one value on each line, beside the rules; `offshoot mask` puts it in.",
                "required": ["file"],
                "properties": {"file": {"type": "string", "minLength": 1}},
                "additionalProperties": false,
            }]},
            "rules": {"type": "object", "additionalProperties": {"$ref": "#/$defs/rule"}},
        },
    })
}

fn table() -> Value {
    let names = json!({"type": "array", "minItems": 1, "maxItems": 32, "items": {"$ref": "#/$defs/scalar"}});
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "columns": {
                "type": "object",
                "description": "A rule for each column, by name.",
                "additionalProperties": {"$ref": "#/$defs/rule"},
            },
            "where": {"type": "string", "minLength": 1, "description": "An SQL condition: only rows for which it holds are masked."},
            "keep_rows": {"type": "string", "minLength": 1, "description": "An SQL condition: only rows for which it holds stay. Rows that refer to others by foreign keys go with them."},
            "empty": {"type": "boolean", "description": "Whether all rows are removed."},
            "quasi_identifiers": {
                "description": "Lists of columns that together could name a person, counted in reports.",
                "anyOf": [names, {"type": "array", "items": names}],
            },
        },
    })
}

fn algorithm(entry: &Entry) -> Value {
    let mut properties = Map::new();
    properties.insert("algorithm".to_owned(), json!({"const": entry.name}));
    for name in entry.parameters {
        properties.insert((*name).to_owned(), parameter(entry.name, name));
    }
    let mut required = required(entry.name);
    required.insert(0, "algorithm");
    json!({
        "type": "object",
        "description": format!("Somebody who has its masks, but not the key, learns: {}.", algorithms::learned(entry.name)),
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The parameters that an algorithm cannot do without.
fn required(algorithm: &str) -> Vec<&'static str> {
    match algorithm {
        "array" => vec!["rule"],
        "chain" => vec!["steps"],
        "cleansing" => vec!["map"],
        "constant" => vec!["value"],
        "json" | "xml" => vec!["paths"],
        "national-id" => vec!["country"],
        "secure-lookup" => vec!["values"],
        "segments" => vec!["pattern", "groups"],
        "sql" => vec!["expression"],
        // One of two, which only reading says.
        _ => Vec::new(),
    }
}

/// What a parameter takes.
fn parameter(algorithm: &str, name: &str) -> Value {
    let one_of = |words: &[&str]| json!({"enum": words});
    let some_of = |words: &[&str]| json!({"anyOf": [{"enum": words}, {"type": "array", "items": {"enum": words}}]});
    let count = |most: u64| json!({"type": ["integer", "string"], "minimum": 0, "maximum": most});
    match (algorithm, name) {
        (_, "ignore-case" | "names") => json!({"type": "boolean"}),
        (_, "values" | "words") => json!({"$ref": "#/$defs/list"}),
        (_, "steps") => json!({"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/rule"}}),
        (_, "paths" | "groups") => json!({"$ref": "#/$defs/rules"}),
        ("array", "rule") | ("segments", "otherwise") => json!({"$ref": "#/$defs/rule"}),
        (_, "map") => json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/scalar"}}),
        ("email", "keep") => one_of(&["domain"]),
        ("payment-card", "keep") => one_of(&["bin"]),
        ("last-name", "keep") => some_of(&["case"]),
        (_, "keep") => some_of(&["gender", "case"]),
        (_, "within") => one_of(&["year", "month", "week"]),
        (_, "alphabet") => one_of(&["digits", "alphanumeric"]),
        (_, "keep-first" | "keep-last") => count(1000),
        (_, "length") => count(1 << 20),
        (_, "except" | "kinds" | "country") => json!({"$ref": "#/$defs/scalars"}),
        _ => json!({"$ref": "#/$defs/scalar"}),
    }
}

#[cfg(test)]
mod tests;
