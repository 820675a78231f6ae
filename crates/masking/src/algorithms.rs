//! The algorithms. Each says what it does, whether it keeps values apart, which types it takes and what somebody who
//! has its output, but not the key, learns.

mod character_mapping;
mod constants;
mod date_shift;
mod dictionary;
mod email;
mod per;
mod secure_lookup;

use crate::algorithm::Entry;

/// Every algorithm.
pub(crate) static ENTRIES: &[&Entry] = &[
    &character_mapping::ENTRY,
    &constants::CONSTANT,
    &date_shift::ENTRY,
    &email::ENTRY,
    &constants::KEEP,
    &constants::NULL,
    &secure_lookup::ENTRY,
    &constants::SQL,
];
