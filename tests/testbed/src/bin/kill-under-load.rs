//! Repeated `kill -9` of the engine under load: a longer run of what `tests/crash.rs` does.
//!
//! `cargo run --release -p offshoot-testbed --bin kill-under-load -- 100`, with the binary to kill in
//! `OFFSHOOT_BIN`.

use anyhow::{Context, Result};
use offshoot_testbed::{Testbed, kill_under_load};
use std::process::ExitCode;

/// Kills if the command line gives no number.
const KILLS: u32 = 100;

fn main() -> ExitCode {
    offshoot_rig::clean_on_signal();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kill-under-load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let kills = match std::env::args().nth(1) {
        Some(text) => text.parse().context("the number of kills")?,
        None => KILLS,
    };
    let mut bed = Testbed::start()?;
    bed.link("prod")?;
    bed.provision("base", "prod", &[])?;
    let mut seen = kill_under_load(&mut bed, "base", kills)?;
    seen.back_after_ms.sort_unstable();
    let at = |percent: usize| seen.back_after_ms[(kills as usize * percent).div_ceil(100) - 1];
    println!(
        "{kills} kills survived, {} acknowledged commits all found; back after {} ms (median), {} ms (p95)",
        seen.commits,
        at(50),
        at(95)
    );
    Ok(())
}
