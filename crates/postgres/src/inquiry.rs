//! When did an answer change? Asks copies, and looks in the log for the transactions that can have changed what they
//! answer.
//!
//! 1. [`ask`] runs one query as a user of a VDB would, read only, and notes which relations it has locked: these are
//!    all that it has read, by views and functions too, as a lock is held until the transaction ends.
//! 2. [`suspects`] reads the log and finds the commits that wrote one of these relations, or a catalog.
//! 3. [`changes`] reads what one transaction wrote.
//!
//! # Why the others cannot have changed the answer
//! An answer depends on the rows of the relations that are read, and on the catalogs. As long as no commit writes one
//! of those that were read at a moment, or a catalog, the query does the same again, so it reads the same again. Which
//! is why a search may leave out other commits *after* a moment whose reads it knows.

mod ask;
mod changes;
mod suspects;

pub(crate) use ask::ask;
pub(crate) use changes::changes;
pub(crate) use suspects::suspects;

/// Relations with lower numbers are the catalogs; `FirstNormalObjectId`.
const FIRST_OF_USERS: u32 = 16384;

/// A relation's file in a database, as one number.
fn place(database: u32, file: u32) -> u64 {
    u64::from(database) << 32 | u64::from(file)
}
