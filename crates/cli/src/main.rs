//! The `offshoot` binary.
fn main() {}
