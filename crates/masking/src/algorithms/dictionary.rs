//! Names and places to put in the place of true ones. Written for this crate; common ones of several languages.

/// First names that are fit for an address.
pub(crate) const LOCAL_PARTS: &[&str] = &["anna", "ben", "clara", "david"];
