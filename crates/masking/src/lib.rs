//! Masking rules as pure functions: no I/O, no clock, no database.
//!
//! A [`Ruleset`] is read from YAML, JSON or TOML, then bound to the tables of a copy and a [`MaskingKey`]. The [`Bound`] result says
//! what keeps the rules from being applied, what they do not reach, and holds a [`Mask`] for every column.
//!
//! Invariants:
//! 1. A mask depends on the value, the key, the algorithm and its parameters, never on the table or column: the same
//!    value gets the same mask everywhere, so joins hold. (`per: COLUMN` depends on another column of the row instead;
//!    it is refused on keys.)
//! 2. NULL stays NULL (it never gets here) and an empty text stays empty.
//! 3. No error tells a value.
//! 4. No value makes a mask panic.

mod algorithm;
mod algorithms;
mod bind;
pub mod discovery;
mod document;
mod facts;
mod key;
mod mask;
mod moment;
mod node;
mod parameters;
mod pattern;
mod permutation;
mod ruleset;
mod schema;
mod shape;

pub use algorithms::detokenize;
pub use bind::{Bound, BoundColumn, BoundQuasiIdentifiers, BoundTable, Treatment};
pub use document::assemble;
pub use facts::{ColumnFacts, TableFacts, TypeClass};
pub use key::MaskingKey;
pub use mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
pub use ruleset::Ruleset;
pub use schema::schema;
