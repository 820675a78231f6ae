//! Checks a JSON value against a schema of an OpenAPI 3.1 document: the part of JSON Schema that our
//! document uses. Anything else in a schema is an error, so that nothing goes unchecked.

use serde_json::Value;

/// What is wrong with a value, as `path: why`.
#[expect(clippy::too_many_lines, reason = "one arm for each keyword of a schema")]
pub fn check(document: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let keys = schema.as_object().expect("a schema is an object");
    let mut wrong = Vec::new();
    for (key, rule) in keys {
        match key.as_str() {
            "$ref" => {
                let name = rule.as_str().unwrap().trim_start_matches("#/components/schemas/");
                let target = &document["components"]["schemas"][name];
                assert!(target.is_object(), "no schema {name}");
                wrong.extend(check(document, target, value, path));
            }
            "oneOf" => {
                let options = rule.as_array().unwrap();
                let fits =
                    options.iter().filter(|one| check(document, one, value, path).is_empty());
                match fits.count() {
                    1 => {}
                    count => wrong.push(format!("{path}: fits {count} of oneOf: {value}")),
                }
            }
            "type" => {
                let fits = match rule {
                    Value::String(name) => is_of(value, name),
                    Value::Array(names) => names.iter().any(|n| is_of(value, n.as_str().unwrap())),
                    other => panic!("type {other}"),
                };
                if !fits {
                    wrong.push(format!("{path}: {value} is not of type {rule}"));
                }
            }
            "enum" if !rule.as_array().unwrap().contains(value) => {
                wrong.push(format!("{path}: {value} is not one of {rule}"));
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.is_object() && value.get(name.as_str().unwrap()).is_none() {
                        wrong.push(format!("{path}: {name} is missing"));
                    }
                }
            }
            "maximum" if value.as_f64() > rule.as_f64() => {
                wrong.push(format!("{path}: {value} is more than {rule}"));
            }
            "properties" => {
                for (name, inner) in rule.as_object().unwrap() {
                    if let Some(field) = value.get(name) {
                        wrong.extend(check(document, inner, field, &format!("{path}.{name}")));
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    wrong.extend(check(document, rule, item, &format!("{path}[{index}]")));
                }
            }
            "format" if rule == "date-time" => {
                if let Some(text) = value.as_str()
                    && text.parse::<jiff::Timestamp>().is_err()
                {
                    wrong.push(format!("{path}: '{text}' is not RFC 3339"));
                }
            }
            "uniqueItems" => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let twice = |(index, item): (usize, &Value)| items[..index].contains(item);
                if items.iter().enumerate().any(twice) {
                    wrong.push(format!("{path}: an item is there twice"));
                }
            }
            "minimum" => {
                if value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()) {
                    wrong.push(format!("{path}: {value} is below {rule}"));
                }
            }
            "additionalProperties" => {
                let named = |name: &str| schema["properties"].get(name).is_some();
                for (name, field) in value.as_object().into_iter().flatten() {
                    match rule {
                        Value::Bool(false) if !named(name) => {
                            wrong.push(format!("{path}: {name} is not known"));
                        }
                        Value::Object(_) if !named(name) => {
                            wrong.extend(check(document, rule, field, &format!("{path}.{name}")));
                        }
                        _ => {}
                    }
                }
            }
            "enum" | "maximum" | "format" | "description" | "example" | "propertyNames"
            | "default" | "title" => {}
            other => panic!("{path}: the schema uses '{other}', which is not checked"),
        }
    }
    wrong
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    }
}
