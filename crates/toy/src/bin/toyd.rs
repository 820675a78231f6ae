//! The toy's server; see `offshoot_toy::serve`.

use std::process::ExitCode;

fn main() -> ExitCode {
    offshoot_toy::serve(std::env::args().skip(1))
}
