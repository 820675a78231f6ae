//! What it takes to renew a masked dSource of which little has changed, as a part of what masking everything takes.

use crate::record::Record;
use crate::stage::Stage;
use crate::statistics::{interleaved, paired_ratio};
use anyhow::{Context, Result, ensure};
use offshoot_api::{Mask, MaskMode};
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

/// One row in so many is changed.
const ONE_IN: u32 = 100;
/// The part of a full run that a renewal may take.
const GOAL: f64 = 0.05;

/// What is done, in turn.
const SIDES: [&str; 3] = ["in full", "rows together changed", "rows anywhere changed"];

/// Renews a masked dSource after rows that lie together were changed, and rows here and there; and masks everything anew.
pub fn measure(
    stage: &Stage,
    rules: &str,
    (tables, rows): (u32, u32),
    repeats: u32,
    limit: Duration,
    record: &mut Record,
) -> Result<()> {
    let source = stage.source.connect("postgres")?;
    apply(stage, rules, "renewed", limit, false)?;
    let mut seconds = [Vec::new(), Vec::new(), Vec::new()];
    for (round, side) in interleaved(3, repeats) {
        let changed = match side {
            0 => None,
            1 => {
                let step = (rows / ONE_IN).max(1);
                let from = round.saturating_mul(step) % rows.max(1);
                Some(format!("id > {from} AND id <= {from} + {step}"))
            }
            _ => Some(format!("id % {ONE_IN} = {}", round % ONE_IN)),
        };
        for table in 0..tables {
            if let Some(changed) = &changed {
                source.execute(&format!(
                    "UPDATE people_{table} SET city = city || '.', born = born + 1 WHERE {changed}"
                ))?;
            }
        }
        let took = match side {
            0 => {
                let took = apply(stage, rules, "whole", limit, true)?;
                stage.engine.command(["dsource", "unlink", "whole", "--yes"])?;
                took
            }
            _ => apply(stage, rules, "renewed", limit, false)?,
        };
        let (mode, why, took) = took;
        let incremental = mode == MaskMode::Incremental;
        let why = why.unwrap_or_default();
        // Rows here and there are on so many pages that everything may be masked.
        ensure!(
            side == 2 || incremental == (side == 1),
            "{}: the run was {mode:?}: {why}",
            SIDES[side]
        );
        eprintln!("  {}: {took:.1} s, {mode:?} {why}", SIDES[side]);
        seconds[side].push(took);
    }
    let [full, together, anywhere] = seconds;
    let figures = &mut record.figures;
    figures.at_most("renewal_of_rows_together_to_full", paired_ratio(&together, &full), GOAL);
    figures.at_most("renewal_of_rows_anywhere_to_full", paired_ratio(&anywhere, &full), GOAL);
    figures.note("full_s", full);
    figures.note("renewal_of_rows_together_s", together);
    figures.note("renewal_of_rows_anywhere_s", anywhere);
    Ok(())
}

/// How the command worked, why in full, and the seconds that it took.
fn apply(
    stage: &Stage,
    rules: &str,
    name: &str,
    limit: Duration,
    full: bool,
) -> Result<(MaskMode, Option<String>, f64)> {
    let began = SystemClock.elapsed();
    let mut words = vec!["mask", "apply", rules, "--from", "prod", "--as", name];
    words.extend(full.then_some("--full"));
    let shown = stage.engine.command_within(words, &[], limit)?;
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    let shown: Mask = serde_json::from_value(shown).context("what `mask apply` shows")?;
    Ok((shown.mode, shown.full_because, seconds))
}
