//! What samples of a column's values say.

use crate::algorithms::{is_card, is_first_name, is_iban, is_last_name};
use crate::facts::{ColumnFacts, TypeClass};
use std::collections::HashSet;

/// Fewer samples say nothing.
const SAMPLES_MIN: usize = 5;

/// A test for one value: the kind, and the part of the samples that must pass.
type Test = (&'static str, f32, fn(&str) -> bool);

/// In the order of certainty: a card is also a row of digits.
const TESTS: &[Test] = &[
    ("e-mail", 0.6, is_email),
    ("IBAN", 0.6, is_iban),
    ("payment card", 0.7, |text| has_only(text, " -") && is_card(text)),
    ("IP address", 0.8, is_ip),
    ("national id", 0.8, is_ssn),
    ("telephone number", 0.8, is_phone),
    ("name of a person", 0.6, is_full_name),
    ("first name", 0.4, |text| is_first_name(&text.to_lowercase())),
    ("last name", 0.4, |text| is_last_name(&text.to_lowercase())),
    ("address", 0.6, is_address),
];

/// The kind of data that samples look like, how many do, and how many were counted.
pub(super) fn kind(column: &ColumnFacts, samples: &[&str]) -> Option<(&'static str, usize, usize)> {
    let integer = matches!(column.class, TypeClass::Integer { bytes: 8 });
    if column.class != TypeClass::Text && !integer {
        return None;
    }
    let counted: Vec<&str> =
        samples.iter().map(|text| text.trim()).filter(|t| !t.is_empty()).collect();
    if counted.len() < SAMPLES_MIN {
        return prose(&counted);
    }
    for (title, part, is_one) in TESTS {
        // Of plain integers only Luhn's formula tells anything: one in ten passes by chance.
        if integer && *title != "payment card" {
            continue;
        }
        // A list of codes may look like anything: people's data has many different values.
        let ones: Vec<&&str> = counted.iter().filter(|text| is_one(text)).collect();
        let different: HashSet<&&&str> = ones.iter().collect();
        let varied = different.len() >= SAMPLES_MIN.min(counted.len());
        if varied && ones.len() as f32 >= part * counted.len() as f32 {
            return Some((title, ones.len(), counted.len()));
        }
    }
    prose(&counted)
}

/// Prose in which addresses occur, however seldom.
fn prose(counted: &[&str]) -> Option<(&'static str, usize, usize)> {
    let names_people = |text: &&&str| {
        text.split_whitespace().count() > 3
            && text.split_whitespace().any(|word| {
                is_email(word.trim_matches(|c: char| {
                    matches!(c, '.' | ',' | ';' | ':' | '(' | ')' | '<' | '>')
                }))
            })
    };
    let hits = counted.iter().filter(names_people).count();
    (hits > 0).then_some(("remarks in prose", hits, counted.len()))
}

fn has_only(text: &str, separators: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || separators.contains(c))
}

fn is_email(text: &str) -> bool {
    let Some((name, domain)) = text.split_once('@') else { return false };
    let top = domain.rsplit('.').next().unwrap_or("");
    let fits = |c: char| !c.is_whitespace() && !matches!(c, '@' | ',' | '<' | '>' | '/');
    !name.is_empty()
        && domain.len() > top.len() + 1
        && top.len() > 1
        && top.chars().all(char::is_alphabetic)
        && text.replacen('@', "", 1).chars().all(fits)
}

fn is_ip(text: &str) -> bool {
    text.parse::<std::net::IpAddr>().is_ok()
}

fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits =
        |part: &str, count| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    matches!(parts[..], [area, group, serial] if digits(area, 3) && digits(group, 2) && digits(serial, 4))
}

/// With a country code, a bracket, or grouped as people do. A plain row of digits is any number.
fn is_phone(text: &str) -> bool {
    let count = text.bytes().filter(u8::is_ascii_digit).count();
    let separators = text.chars().filter(|c| matches!(c, ' ' | '-' | '/' | '(' | ')')).count();
    let written =
        text.starts_with('+') || text.starts_with('(') || text.starts_with('0') && separators > 0;
    let grouped = text.split([' ', '-']).map(str::len).collect::<Vec<_>>() == [3, 3, 4];
    let date = crate::moment::is_moment(text);
    (7..=15).contains(&count) && has_only(text, "+ -/().") && (written || grouped) && !date
}

/// Two or three words with a capital, one of them a known first or last name.
fn is_full_name(text: &str) -> bool {
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let capital = |word: &&str| word.chars().next().is_some_and(char::is_uppercase);
    let letters = |c: char| c.is_alphabetic() || matches!(c, ' ' | ',' | '.' | '-' | '\'');
    (2..=4).contains(&words.len())
        && text.chars().all(letters)
        && words.iter().all(capital)
        && words
            .iter()
            .map(|word| word.to_lowercase())
            .any(|word| is_first_name(&word) || is_last_name(&word))
}

/// A word for a street, and a number at one end.
fn is_address(text: &str) -> bool {
    const STREETS: &[&str] = &[
        "street", "road", "avenue", "lane", "drive", "rue", "calle", "via", "strasse", "straße",
        "weg", "gasse", "allee", "platz", "straat", "ulica", "ul.", "st.", "ave", "close", "court",
        "way", "place", "avda", "piazza", "blvd",
    ];
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let street = |word: &&str| {
        STREETS.contains(word)
            || ["straße", "strasse", "weg", "gasse", "allee", "platz", "straat"]
                .iter()
                .any(|ending| word.ends_with(ending))
    };
    words.len() > 1 && words.iter().any(number) && words.iter().any(street)
}
