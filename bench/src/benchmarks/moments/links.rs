//! A VDB of a link's own moment, before the link's snapshot was recovered.

use super::Arguments;
use crate::figures::millis;
use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage};
use anyhow::{Context, Result};
use offshoot_os::{Clock, SystemClock};

/// What the slowest may take, in milliseconds.
const MS_GOAL: f64 = 2_000.0;

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let (stage, mut record) = arguments.stage(&CHECKPOINTS)?;
    let load = arguments.load.start(&stage.source, arguments.time(), arguments.setting.seed)?;
    let (mut link_seconds, mut took_ms) = (Vec::new(), Vec::new());
    for _ in 0..arguments.moments {
        link_seconds.push(stage.link("prod")?);
        took_ms.push(open_own_moment(&stage)?);
        stage.engine.command(["vdb", "delete", "first"])?;
        stage.engine.command(["dsource", "unlink", "prod"])?;
    }
    load.abort();
    let figures = &mut record.figures;
    let slowest = took_ms.iter().copied().fold(0.0, f64::max);
    figures.at_most("link_moment_slowest_ms", slowest, MS_GOAL);
    figures.note("link_moment_ms", took_ms);
    figures.note("link_seconds", link_seconds);
    Ok(record)
}

/// Milliseconds from the link's end to the first answer of a VDB of its moment.
fn open_own_moment(stage: &Stage) -> Result<f64> {
    let began = SystemClock.elapsed();
    let first = stage.dsource("prod")?.snapshots.into_iter().next();
    let id = first.context("a link ends in a snapshot")?.id.to_string();
    stage.provision_and_ask("first", "prod", &["--snapshot", &id])?;
    Ok(millis(SystemClock.elapsed() - began))
}
