//! Programs that are to end well.

use anyhow::{Result, bail};
use offshoot_os::process::{self, Spec};
use std::time::Duration;

/// Runs a program and turns an exit code other than 0 into an error.
pub(crate) fn run_to_success(spec: &Spec, seconds_max: u64) -> Result<String> {
    let output = process::run(spec, Duration::from_secs(seconds_max))?;
    if !output.success() {
        bail!("{}: {}: {}", spec.name(), process::describe(output.status), output.stderr_text());
    }
    Ok(output.stdout_text())
}
