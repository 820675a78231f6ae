//! What holds for all values.

use offshoot_masking::{
    ColumnFacts, Mask, MaskingKey, Outcome, Row, Ruleset, TableFacts, Treatment, TypeClass,
    Unmaskable, ValueMask, detokenize,
};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

fn column(name: &str, class: TypeClass) -> ColumnFacts {
    ColumnFacts {
        name: name.into(),
        class,
        type_name: "text".into(),
        chars_max: None,
        nullable: true,
        unique: false,
        references: false,
        generated: false,
    }
}

/// The mask of column `c` of a table `table` by a rule.
fn mask_in(table: &str, class: TypeClass, rule: &str, secret: &[u8]) -> Arc<dyn ValueMask> {
    let rules = format!("version: 1\nkey: main\ntables: {{'*.*': {{columns: {{c: {rule}}}}}}}");
    let facts = TableFacts {
        schema: "app".into(),
        name: table.into(),
        columns: vec![column("id", TypeClass::Integer { bytes: 8 }), column("c", class)],
    };
    let rules = Ruleset::parse(&rules).expect("the rule is right");
    let mut bound = rules.bind(&[facts], &MaskingKey::new(secret));
    assert_eq!(bound.problems, Vec::<String>::new(), "{rule}");
    match bound.tables.remove(0).treatment {
        Treatment::Mask { mut columns, .. } => match columns.remove(0).mask {
            Mask::Values(mask) => mask,
            Mask::Sql(_) => panic!("values are masked"),
        },
        Treatment::Empty => panic!("the table is masked"),
    }
}

fn apply(mask: &dyn ValueMask, value: &str) -> Result<Option<String>, Unmaskable> {
    let mut out = String::new();
    let outcome = mask.mask(value, &Row { values: &[Some("7"), Some(value)] }, &mut out)?;
    Ok((outcome == Outcome::Value).then_some(out))
}

fn masked(class: TypeClass, rule: &str, value: &str) -> String {
    let mask = mask_in("t", class, rule, b"secret");
    apply(mask.as_ref(), value).expect("it has a mask").expect("it is not NULL")
}

/// A rule of every algorithm that masks texts.
const TEXT_RULES: &[&str] = &[
    "address",
    "{algorithm: address, per: id}",
    "character-mapping",
    "{algorithm: character-mapping, keep-first: 2, keep-last: 3}",
    "city",
    "{algorithm: cleansing, map: {a: b}, ignore-case: true}",
    "{algorithm: constant, value: x}",
    "email",
    "{algorithm: email, keep: domain, ignore-case: true}",
    "first-name",
    "fpe",
    "{algorithm: fpe, alphabet: alphanumeric}",
    "free-text-redaction",
    "{algorithm: free-text-redaction, words: [a, 'b c'], names: true}",
    "{algorithm: full-name, keep: [gender, case]}",
    "iban",
    "{algorithm: json, paths: {$..*: character-mapping}}",
    "keep",
    "last-name",
    "{algorithm: national-id, country: US}",
    "{algorithm: national-id, country: IT}",
    "{algorithm: national-id, country: PL}",
    "'null'",
    "payment-card",
    "phone",
    "postcode",
    "{algorithm: secure-lookup, values: [a, b, c]}",
    "{algorithm: segments, pattern: '(.)(.*)', groups: {2: character-mapping}}",
    "tokenize",
    "{algorithm: xml, paths: {//*: character-mapping}}",
    "[phone, email]",
];

/// Rules for values of other types.
fn other_rules() -> Vec<(TypeClass, &'static str)> {
    let number = TypeClass::Number { precision: Some(10), scale: Some(2) };
    vec![
        (TypeClass::Date, "date-shift"),
        (TypeClass::Timestamp, "{algorithm: date-shift, min: -5h, max: 5h, per: id}"),
        (TypeClass::TimestampTz, "{algorithm: date-roll, within: year}"),
        (TypeClass::Date, "{algorithm: date-roll, within: week}"),
        (number.clone(), "{algorithm: number-noise, percent: 10}"),
        (TypeClass::Float, "{algorithm: number-noise, amount: 10, min: 0}"),
        (TypeClass::Integer { bytes: 8 }, "{algorithm: number-noise, percent: 1000, max: 9}"),
        (number, "{algorithm: min-max, min: 0, max: 10}"),
        (TypeClass::Date, "{algorithm: min-max, min: 1900-01-01}"),
        (TypeClass::Bytes, "binary-lookup"),
        (TypeClass::Bytes, "{algorithm: binary-lookup, length: 16}"),
        (TypeClass::Integer { bytes: 2 }, "fpe"),
        (TypeClass::Integer { bytes: 8 }, "character-mapping"),
        (TypeClass::Integer { bytes: 8 }, "payment-card"),
        (TypeClass::Integer { bytes: 8 }, "phone"),
        (TypeClass::Uuid, "character-mapping"),
        (
            TypeClass::Json,
            "{algorithm: json, paths: {$.a: email, '$.b[*]': {algorithm: number-noise, percent: 5}}}",
        ),
    ]
}

fn every_rule() -> Vec<(TypeClass, &'static str)> {
    let texts = TEXT_RULES.iter().filter(|rule| **rule != "keep");
    texts.map(|rule| (TypeClass::Text, *rule)).chain(other_rules()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The same value gets the same mask in every table, and another one with another key is no accident.
    #[test]
    fn joins_hold(value in any::<String>()) {
        for (class, rule) in every_rule() {
            let here = mask_in("orders", class.clone(), rule, b"secret");
            let there = mask_in("customers", class, rule, b"secret");
            prop_assert_eq!(apply(here.as_ref(), &value), apply(there.as_ref(), &value));
        }
    }

    #[test]
    fn no_value_panics(value in prop_oneof![
        any::<String>(),
        "[0-9 .:T+-]{0,30}",
        "-?[0-9]{0,40}(\\.[0-9]{0,40})?(e[+-]?[0-9]{1,4})?",
        "[A-Z]{2}[0-9]{2}[A-Z0-9 ]{0,32}",
        "\\\\x[0-9a-f]{0,20}",
        "[\\[\\]{}\",:a0-9\\\\ ]{0,40}",
        "[0-9]{4,7}-[0-9]{2}-[0-9]{2}( BC)?",
        "(<[!/?a]?|>|/>|[a =\"'é]|&[a-z#0-9]{0,3};?|-->|<!\\[CDATA\\[|\\]\\]>){0,20}",
    ]) {
        for (class, rule) in every_rule() {
            let _ = apply(mask_in("t", class, rule, b"secret").as_ref(), &value);
        }
    }

    #[test]
    fn cards_are_valid(digits in "[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4,11}") {
        let mask = masked(TypeClass::Text, "{algorithm: payment-card, keep: bin}", &digits);
        prop_assert!(is_luhn(&mask));
        prop_assert_eq!(form(&mask), form(&digits));
    }

    #[test]
    fn ibans_are_valid(text in "[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}") {
        let mask = masked(TypeClass::Text, "iban", &text);
        prop_assert_eq!(&mask[..2], &text[..2]);
        prop_assert_eq!(remainder_97(&format!("{}{}", &mask[4..], &mask[..4])), 1);
        prop_assert_eq!(form(&mask[4..]), form(&text[4..]));
    }

    #[test]
    fn form_is_kept(text in any::<String>(), number in any::<i32>()) {
        let mask = masked(TypeClass::Text, "character-mapping", &text);
        prop_assert_eq!(form(&mask), form(&text));
        for rule in ["character-mapping", "fpe"] {
            let mask = masked(TypeClass::Integer { bytes: 4 }, rule, &number.to_string());
            prop_assert_eq!(mask.parse::<i32>().map(|mask| mask.to_string()), Ok(mask));
        }
    }

    /// Different values of one form get different masks, where that is promised.
    #[test]
    fn values_are_kept_apart(values in proptest::collection::hash_set("[0-9]{6}|[A-Za-zé]{1,2}[0-9]{1,2}", 2..40)) {
        for rule in ["character-mapping", "phone", "email", "tokenize", "postcode"] {
            let mask = mask_in("t", TypeClass::Text, rule, b"secret");
            let mut known = HashMap::new();
            for value in &values {
                let masked = apply(mask.as_ref(), value).expect("it has a mask");
                prop_assert_eq!(known.insert(masked, value), None, "{}", rule);
            }
        }
    }

    #[test]
    fn tokens_turn_back(text in any::<String>()) {
        let token = masked(TypeClass::Text, "tokenize", &text);
        let back = if text.is_empty() { Some(token) } else { detokenize(&MaskingKey::new(b"secret"), &token) };
        prop_assert_eq!(back, Some(text));
        prop_assert_eq!(detokenize(&MaskingKey::new(b"secret"), "x"), None);
    }

    #[test]
    fn dates_move(day in -700_000_i64..700_000, time in "( [0-2][0-3]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?)?") {
        // The database's own form of a day: that of a shift of another day, so that this test needs no calendar.
        let base = masked(TypeClass::Date, &format!("{{algorithm: date-shift, min: {0}d, max: {0}d}}", day.clamp(-300_000, 300_000).max(1)), "2000-01-01");
        let value = format!("{base}{time}");
        for rule in ["date-shift", "date-roll", "{algorithm: date-shift, min: -1d, max: 1d}"] {
            let mask = masked(TypeClass::Timestamp, rule, &value);
            prop_assert_ne!(&mask, &value);
            prop_assert!(mask.ends_with(&time));
        }
    }

    #[test]
    fn rules_are_read_or_refused(text in any::<String>(), rule in "[a-z{}\\[\\]:,'\"&*! -]{0,40}") {
        let _ = Ruleset::parse(&text);
        let rules = format!("version: 1\nkey: main\ntables: {{t: {{columns: {{c: {rule}}}}}}}");
        let _ = Ruleset::parse(&rules);
    }
}

/// What `character-mapping` keeps: case, digits, and everything else as it is.
fn form(text: &str) -> Vec<Option<char>> {
    text.chars().map(|c| Some(c).filter(|c| !c.is_alphanumeric())).collect()
}

fn is_luhn(text: &str) -> bool {
    let digits = text.chars().rev().filter_map(|c| c.to_digit(10));
    let doubled = |(at, digit): (usize, u32)| match at % 2 {
        0 => digit,
        _ if digit > 4 => digit * 2 - 9,
        _ => digit * 2,
    };
    digits.enumerate().map(doubled).sum::<u32>() % 10 == 0
}

fn remainder_97(text: &str) -> u32 {
    let numbers: String =
        text.chars().map(|c| c.to_digit(36).expect("a letter or digit").to_string()).collect();
    numbers.chars().fold(0, |left, c| (left * 10 + c.to_digit(10).expect("a digit")) % 97)
}

#[test]
fn long_texts_are_masked() {
    // A test that takes more than a few seconds means that something grows faster than the text.
    let texts = [
        "x".repeat(1 << 19),
        "é1 ".repeat(100_000),
        "a@b.test +49 89 1234567 ".repeat(12_000),
        "9".repeat(1 << 18),
        format!("[{}1]", "1,".repeat(120_000)),
        "\u{202e}\u{0}🦀".repeat(25_000),
    ];
    for text in &texts {
        for (class, rule) in every_rule() {
            if let Ok(Some(mask)) = apply(mask_in("t", class, rule, b"secret").as_ref(), text) {
                assert!(mask.len() < 8 * text.len(), "{rule}");
            }
        }
    }
}

#[test]
fn another_key_gives_other_masks() {
    for rule in ["email", "character-mapping", "fpe", "phone", "tokenize", "payment-card"] {
        let value = "4111111111111111";
        let one = apply(mask_in("t", TypeClass::Text, rule, b"one").as_ref(), value);
        let two = apply(mask_in("t", TypeClass::Text, rule, b"two").as_ref(), value);
        assert!(one.is_ok() && one != two, "{rule}");
    }
}

/// Masks never change between versions: incremental masking and joins with older copies rely on it.
#[test]
fn masks_are_frozen() {
    let cases = [
        ("email", "maria@firm.test"),
        ("full-name", "Maria Jones"),
        ("character-mapping", "AB-1234 é"),
        ("phone", "+49 89 1234567"),
        ("payment-card", "4111 1111 1111 1111"),
        ("iban", "DE89370400440532013000"),
        ("{algorithm: national-id, country: US}", "078-05-1120"),
        ("fpe", "1234567890"),
        ("tokenize", "Maria"),
        ("city", "Berlin"),
        ("address", "12 High Street"),
        ("{algorithm: secure-lookup, values: [a, b, c, d, e, f, g, h]}", "x"),
    ];
    let masks: Vec<String> =
        cases.iter().map(|(rule, value)| masked(TypeClass::Text, rule, value)).collect();
    assert_eq!(masks.join("\n"), FROZEN);
}

const FROZEN: &str = "bruno-marrp7y2u2ub2p@example.com
Diana Blanco
QN-5163 í
+49 54 0007467
4737 9217 3737 3679
DE69874614869533926443
810-83-8391
0552374692
SDkBDRWcBKt7OnVyZ_Fi2naU8Att
Nürnberg
52 Lake View Drive
d";
