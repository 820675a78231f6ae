//! The toy's server, for the tests that use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    offshoot_toy::serve(std::env::args().skip(1))
}
