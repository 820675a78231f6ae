//! The algorithms. Each says what it does, whether it keeps values apart, which types it takes and what somebody who
//! has its output, but not the key, learns.

mod array;
mod binary_lookup;
mod chain;
mod character_mapping;
mod checks;
mod cleansing;
mod constants;
mod date_roll;
mod date_shift;
mod decimal;
mod dictionary;
mod email;
mod fpe;
mod free_text;
mod json;
mod min_max;
mod names;
mod national_id;
mod nested;
mod number_noise;
mod numbers_of_people;
mod path;
mod per;
mod places;
mod secure_lookup;
mod segments;
mod tokenize;
mod xml;

use crate::parameters::Entry;

pub(crate) use checks::{is_card, is_iban};
#[cfg(test)]
pub(crate) use checks::{luhn, remainder_97};
pub(crate) use names::{is_first_name, is_last_name};
pub use tokenize::detokenize;

/// Every algorithm, sorted by name.
pub(crate) static ENTRIES: &[&Entry] = &[
    &places::ADDRESS,
    &array::ENTRY,
    &binary_lookup::ENTRY,
    &chain::ENTRY,
    &character_mapping::ENTRY,
    &places::CITY,
    &cleansing::ENTRY,
    &constants::CONSTANT,
    &date_roll::ENTRY,
    &date_shift::ENTRY,
    &email::ENTRY,
    &names::FIRST,
    &fpe::ENTRY,
    &free_text::ENTRY,
    &names::FULL,
    &numbers_of_people::IBAN,
    &json::ENTRY,
    &constants::KEEP,
    &names::LAST,
    &min_max::ENTRY,
    &national_id::ENTRY,
    &constants::NULL,
    &number_noise::ENTRY,
    &numbers_of_people::CARD,
    &numbers_of_people::PHONE,
    &places::POSTCODE,
    &secure_lookup::ENTRY,
    &segments::ENTRY,
    &constants::SQL,
    &tokenize::ENTRY,
    &xml::ENTRY,
];

/// What somebody who has the masks of an algorithm, but not the key, learns.
pub(crate) fn learned(name: &str) -> String {
    const EQUALS: &str = "which rows had equal values";
    let tells = ENTRIES.iter().find(|entry| entry.name == name).map_or("", |entry| entry.tells);
    match (name, tells) {
        ("null" | "constant" | "sql" | "keep", _) => tells.to_owned(),
        (_, "nothing" | "") => EQUALS.to_owned(),
        _ => format!("{EQUALS}; {tells}"),
    }
}

#[cfg(test)]
mod tests;
