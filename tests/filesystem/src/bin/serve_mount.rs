//! Serves a pool.
fn main() {}
