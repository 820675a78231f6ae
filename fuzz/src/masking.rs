//! Masking rules, as people write them, and the values they meet.

use crate::target::Target;
use offshoot_masking::{
    ColumnFacts, Mask, MaskingKey, Outcome, Row, Ruleset, TableFacts, Treatment, TypeClass,
};

pub(crate) const TARGETS: &[Target] = &[Target { name: "ruleset", run: ruleset, seeds }];

const CLASSES: [TypeClass; 8] = [
    TypeClass::Text,
    TypeClass::Integer { bytes: 4 },
    TypeClass::Number { precision: Some(10), scale: Some(2) },
    TypeClass::Date,
    TypeClass::TimestampTz,
    TypeClass::Json,
    TypeClass::Bytes,
    TypeClass::Xml,
];

/// A table with a column of each class, named `c0`, `c1`…
fn table() -> TableFacts {
    let column = |(number, class): (usize, &TypeClass)| ColumnFacts {
        name: format!("c{number}"),
        class: class.clone(),
        type_name: "text".into(),
        chars_max: (number == 0).then_some(40),
        nullable: true,
        unique: false,
        references: false,
        generated: false,
    };
    let columns = CLASSES.iter().enumerate().map(column).collect();
    TableFacts { schema: "public".into(), name: "t".into(), columns }
}

/// Up to a NUL the rules, then the value that they mask.
fn ruleset(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (rules, value) = text.split_once('\0').unwrap_or((&text, "2024-01-31"));
    let Ok(rules) = Ruleset::parse(rules) else { return };
    let bound = rules.bind(&[table()], &MaskingKey::new(b"secret"));
    for table in bound.tables {
        let Treatment::Mask { columns, .. } = table.treatment else { continue };
        for column in columns {
            let Mask::Values(mask) = column.mask else { continue };
            let row = Row { values: &[Some(value); CLASSES.len()] };
            let (mut once, mut twice) = (String::new(), String::new());
            let outcome = mask.mask(value, &row, &mut once);
            assert_eq!(mask.mask(value, &row, &mut twice), outcome, "a value is masked alike");
            let done = outcome == Ok(Outcome::Value);
            assert!(!done || once == twice, "a value has one mask");
            assert!(!done || column.column != 0 || once.chars().count() <= 40, "it fits");
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let seed = |(columns, value): (&str, &str)| {
        let rules =
            format!("version: 1\nkey: k\ntables: {{t: {{columns: {{{columns}}}}}}}\0{value}");
        rules.into_bytes()
    };
    [
        ("c0: email", "a@b.test"),
        ("c0: {algorithm: full-name, keep: [gender, case]}", "Anna Fox"),
        ("'c*': character-mapping", "-12"),
        ("c0: [phone, iban, payment-card]", "+49 89 123456"),
        ("c0: {algorithm: national-id, country: PL}", "44051401359"),
        ("c3: date-shift, c4: {algorithm: date-roll, per: c0}", "2024-02-29"),
        ("c2: {algorithm: number-noise, percent: 5}, c1: {algorithm: min-max, max: 9}", "12"),
        (
            "c5: {algorithm: json, paths: {'$.a[*]': fpe, '$..b': \"null\"}}",
            "{\"a\":[123456],\"b\":1}",
        ),
        ("c0: {algorithm: segments, pattern: '(a+)(?P<n>.*)', groups: {n: phone}}", "aab1"),
        ("c0: {algorithm: free-text-redaction, words: [x], names: true}", "Anna x a@b.de"),
        ("c6: {algorithm: binary-lookup, length: 3}", "\\x0102"),
        (
            "c7: {algorithm: xml, paths: {/a/@b: email, //c: phone}}",
            "<a b='x'><c>12 &amp; 3</c></a>",
        ),
        ("c0: {algorithm: cleansing, map: {a: b}, otherwise: c}", "a"),
    ]
    .map(seed)
    .into()
}
