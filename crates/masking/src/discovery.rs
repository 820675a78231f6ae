//! Finding what should be masked: by the names of columns, then by samples of their values.
//!
//! A [`Finding`] is a proposal, and [`draft`] writes proposals for review. Names are told apart by their words, in
//! several languages: `customer_email`, `EMailAdresse` and `correo` are all e-mail; `email_count` is not. What the tests
//! of this module measure on a schema with traps is the precision and recall that can be expected.

mod draft;
mod names;
mod values;

pub use draft::draft;

use crate::facts::ColumnFacts;

/// What a column seems to hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What it is: `e-mail`.
    pub kind: &'static str,
    /// The rule for it, as it is written in a ruleset.
    pub algorithm: &'static str,
    /// How sure that is, from 0 to 1.
    pub confidence: f32,
    /// What it was told from: `looks like e-mail by its name`. Never tells a value.
    pub why: String,
    /// How many values were looked at.
    pub samples: usize,
}

/// Something that names or describes people.
#[derive(Debug)]
struct Kind {
    /// What users call it.
    title: &'static str,
    /// The rule proposed for texts; what other types get is for [`proposal`] to say.
    algorithm: &'static str,
}

/// Kinds of data, and the rules proposed for texts of them.
const KINDS: &[Kind] = &[
    Kind { title: "e-mail", algorithm: "email" },
    Kind { title: "telephone number", algorithm: "phone" },
    Kind { title: "first name", algorithm: "first-name" },
    Kind { title: "last name", algorithm: "last-name" },
    Kind { title: "name of a person", algorithm: "full-name" },
    Kind { title: "address", algorithm: "address" },
    Kind { title: "city", algorithm: "city" },
    Kind { title: "postcode", algorithm: "postcode" },
    Kind { title: "date of birth", algorithm: "{algorithm: date-shift, min: -365d, max: 365d}" },
    Kind { title: "national id", algorithm: "character-mapping" },
    Kind { title: "payment card", algorithm: "payment-card" },
    Kind { title: "security code of a card", algorithm: "character-mapping" },
    Kind { title: "IBAN", algorithm: "iban" },
    Kind { title: "bank account", algorithm: "character-mapping" },
    Kind { title: "IP address", algorithm: "character-mapping" },
    Kind { title: "password or secret", algorithm: "{algorithm: constant, value: masked}" },
    Kind { title: "user name", algorithm: "character-mapping" },
    Kind { title: "income", algorithm: "{algorithm: number-noise, percent: 10}" },
    Kind { title: "gender", algorithm: "{algorithm: constant, value: x}" },
    Kind { title: "health or belief", algorithm: "{algorithm: constant, value: masked}" },
    Kind { title: "position", algorithm: "{algorithm: number-noise, percent: 1}" },
    Kind { title: "remarks in prose", algorithm: "free-text-redaction" },
];

/// The rule proposed for a column that holds this; none if values of the column's type cannot.
fn proposal(kind: &Kind, column: &ColumnFacts) -> Option<&'static str> {
    use crate::facts::TypeClass as Class;
    let class = &column.class;
    match (kind.title, class) {
        (_, Class::Boolean | Class::Interval | Class::Time) => None,
        ("date of birth", class) if class.is_date() => Some(kind.algorithm),
        ("date of birth", Class::Text) => Some("character-mapping"),
        ("date of birth", _) => None,
        (_, class) if class.is_date() => None,
        ("income" | "position", class) if class.is_number() => Some(kind.algorithm),
        ("income" | "position", Class::Text) => Some("character-mapping"),
        ("income" | "position", _) => None,
        // Whole numbers may be all but words; fractions are none of these.
        ("telephone number" | "payment card", Class::Integer { bytes: 8 }) => Some(kind.algorithm),
        ("postcode" | "security code of a card", Class::Integer { .. })
        | (
            "telephone number" | "payment card" | "national id" | "bank account",
            Class::Integer { .. } | Class::Number { .. },
        ) => Some("character-mapping"),
        ("gender", Class::Integer { .. }) => Some("{algorithm: constant, value: 0}"),
        (_, class) if class.is_number() => None,
        (_, Class::Text) => Some(kind.algorithm),
        ("password or secret", Class::Bytes) => Some("binary-lookup"),
        ("password or secret", Class::Uuid) => Some("character-mapping"),
        // Only their owner knows what else these take.
        ("IP address", Class::Other) => Some("{algorithm: sql, expression: \"'192.0.2.1'\"}"),
        (_, Class::Json | Class::Other | Class::Xml) if column.nullable => Some("'null'"),
        (_, Class::Json | Class::Other) => Some("{algorithm: sql, expression: \"'{}'\"}"),
        (_, Class::Xml) => Some("{algorithm: constant, value: <masked/>}"),
        _ => None,
    }
}

fn finding(title: &'static str, column: &ColumnFacts) -> Option<(&'static Kind, &'static str)> {
    let kind = KINDS.iter().find(|kind| kind.title == title)?;
    Some((kind, proposal(kind, column)?))
}

/// What a column seems to hold by its name and its table's.
pub fn by_name(column: &ColumnFacts, table: &str) -> Option<Finding> {
    let (title, confidence) = names::kind(&column.name, table)?;
    let (kind, algorithm) = finding(title, column)?;
    let why = format!("looks like {} by its name", kind.title);
    Some(Finding { kind: kind.title, algorithm, confidence, why, samples: 0 })
}

/// What a column seems to hold by samples of its values, best taken at random from the whole table. Empty samples do
/// not count; five others are needed.
pub fn by_values(column: &ColumnFacts, samples: &[&str]) -> Option<Finding> {
    let (title, hits, counted) = values::kind(column, samples)?;
    let (kind, algorithm) = finding(title, column)?;
    let why = format!("{hits} of {counted} sampled values look like {}", kind.title);
    let confidence = hits as f32 / counted as f32;
    Some(Finding { kind: kind.title, algorithm, confidence, why, samples: counted })
}

#[cfg(test)]
mod tests;
