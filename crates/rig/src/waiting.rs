//! Waiting for what somebody else does.

use anyhow::{Context, Result, bail};
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

/// Waits until `holds` returns true, with a pause between two looks; an error naming `what` after `limit`. Errors on the way
/// count as that it does not yet; the last one is shown.
///
/// # Errors
/// When it does not in time.
pub fn wait_until(
    what: &str,
    limit: Duration,
    pause: Duration,
    mut holds: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = SystemClock.elapsed() + limit;
    loop {
        let now = holds();
        if matches!(now, Ok(true)) {
            return Ok(());
        }
        if SystemClock.elapsed() > deadline {
            now.with_context(|| format!("waiting for: {what}"))?;
            bail!("not within {} s: {what}", limit.as_secs());
        }
        SystemClock.sleep(pause);
    }
}
