//! Words that connectors of all kinds of databases will share.
//!
//! Deliberately empty so far: PostgreSQL is the only kind, and an interface drawn from one
//! implementation would only repeat it. The second connector moves here what both have in common.
