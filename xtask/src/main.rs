//! Tasks of the workspace: `cargo xtask tidy`.
//!
//! Tidy checks the house rules that neither the compiler nor clippy knows: which crate may use
//! which, which files may not use each other, how long a file may be, which names say nothing.

// The one binary outside the product: it asks cargo for the list of crates.
#![allow(clippy::disallowed_methods)]

mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    match task.as_str() {
        "tidy" => match tidy::run() {
            Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
            Ok(findings) => {
                for finding in &findings {
                    eprintln!("{finding}");
                }
                eprintln!("tidy: {} findings", findings.len());
                ExitCode::FAILURE
            }
            Err(error) => {
                eprintln!("tidy: {error:#}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: cargo xtask tidy");
            ExitCode::from(2)
        }
    }
}
