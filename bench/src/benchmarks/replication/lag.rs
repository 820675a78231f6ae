//! How far behind the peer is of a source that is loaded.

use super::pair::Pair;
use crate::figures::millis;
use crate::record::Record;
use crate::statistics::quantile;
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use offshoot_api::Dsource;
use offshoot_os::{Clock, SystemClock};
use std::collections::VecDeque;
use std::time::Duration;

/// What 95 of 100 commits may take until they open there, in milliseconds.
const P95_MS_GOAL: f64 = 2_000.0;
/// Pause between two commits that are looked for.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the last of them are waited for, and how long the profile may take to begin.
const WAIT_MAX: Duration = Duration::from_secs(120);

/// Commits beside pgbench, and looks when each opens there.
pub fn measure(pair: &Pair, rate: u32, seconds: u32, record: &mut Record) -> Result<()> {
    pair.create("always", &["--include", "dsource:shop", "--continuous"])?;
    let deadline = SystemClock.elapsed() + WAIT_MAX;
    while pair.show("always")?.last_success_at.is_none() {
        ensure!(SystemClock.elapsed() < deadline, "the profile does not begin");
        SystemClock.sleep(PAUSE);
    }
    let source = &pair.stage.source;
    let rate = format!("--rate={rate}");
    let spec = source.pgbench(&["--client=4", "--time=100000", "--no-vacuum", &rate]);
    let mut load = spec.die_with_parent(true).spawn()?;
    let lags = look(pair, Duration::from_secs(seconds.into()));
    load.kill_group();
    let lags = lags?;
    let figures = &mut record.figures;
    figures.note("continuous_lag_p50_ms", quantile(&lags, 0.5));
    figures.at_most("continuous_lag_p95_ms", quantile(&lags, 0.95), P95_MS_GOAL);
    figures.note("continuous_lag_max_ms", quantile(&lags, 1.0));
    pair.stage.engine.command(["replication", "pause", "always"])?;
    while pair.show("always")?.job.is_some() {
        SystemClock.sleep(PAUSE);
    }
    pair.delete("always")
}

pub(super) fn now() -> Result<Timestamp> {
    Timestamp::try_from(SystemClock.now()).context("this host's clock")
}

fn look(pair: &Pair, time: Duration) -> Result<Vec<f64>> {
    let db = pair.stage.source.connect("postgres")?;
    db.execute("CREATE TABLE bench_ticks (at timestamptz)")?;
    let (mut waiting, mut lags) = (VecDeque::new(), Vec::new());
    let (end, deadline) = (SystemClock.elapsed() + time, SystemClock.elapsed() + time + WAIT_MAX);
    loop {
        let counts = SystemClock.elapsed() < end;
        // The ones after the end only let the last ones be seen.
        db.execute("INSERT INTO bench_ticks VALUES (now())")?;
        if counts {
            waiting.push_back((now()?, SystemClock.elapsed()));
        }
        SystemClock.sleep(PAUSE);
        let there: Dsource = pair.there.ask(["dsource", "show", "west/shop"])?;
        let seen = SystemClock.elapsed();
        let opens = there.synced_to.and_then(|synced| synced.time);
        while let Some((at, since)) = waiting.front().copied()
            && opens.is_some_and(|opens| opens >= at)
        {
            lags.push(millis(seen - since));
            waiting.pop_front();
        }
        if !counts && waiting.is_empty() {
            return Ok(lags);
        }
        ensure!(seen < deadline, "{} commits never came", waiting.len());
    }
}
