//! What differs between two copies of a cluster, read from no more pages than must be.
//!
//! 1. [`objects`] compares the catalogs.
//! 2. [`facts`] reads which tables there are; [`reading`] says for each pair which pages may hold rows that differ, and
//!    [`places`] which rows of these pages may.
//! 3. [`merge`] takes these rows from both servers, in one order, and finds those that differ.
//! 4. [`statements`] writes what makes one copy the other.
//!
//! # Which pages need not be read
//! A page is left out if it has the same bytes in both copies *and* in a state A that both come from ([`ancestor`]). What
//! its rows show then depends on three things besides these bytes:
//! - Whether transactions that it names were committed. All of them had begun at A. A is chosen so that each
//!   transaction that had begun there has the same outcome in both copies.
//! - Values out of line (TOAST). They were there at A, and a value is never changed, only replaced by another one, whose
//!   number the row then names.
//! - The catalog: [`reading`] leaves pages out only where columns are the same ones, and types are written alike.
//!
//! Without A, pages that are equal by chance could name other transactions and other values, as where the same script
//! ran in two VDBs. What hint bits, VACUUM and freezing change in pages only makes more of them be read: rows are compared
//! by their text.
//!
//! Invariants
//! 1. No value of a row is in an error or in a log ([`Refusal`](crate::wire::Refusal)).
//! 2. A table is never held in memory; of rows that differ no more than was asked for.
//! 3. Where it is not certain that pages may be left out, the whole table is read.

pub(crate) mod ancestor;
pub(crate) mod facts;
pub(crate) mod merge;
mod names;
mod objects;
mod outcomes;
pub(crate) mod places;
pub(crate) mod reading;
mod run;
mod statements;

pub use run::diff;
