//! Names under which a superuser of a data directory can log in.
//!
//! The source's bootstrap superuser need not be called `postgres`, and nothing but a role's name
//! opens a session. The names are read from the table of roles (`pg_authid`) in the files: its
//! first columns have been the same in all supported versions. What is read may be older than the
//! running server's memory, so the names are candidates to try, not truth.

use crate::data_dir::DataDir;

/// Superusers that may log in, as the files say, the bootstrap superuser first; empty when the
/// files cannot be understood.
pub fn candidates(dir: &dyn DataDir) -> Vec<String> {
    let _ = dir;
    todo!()
}
