//! Whether it matters how far apart the source's checkpoints are.

use super::openings::{add_figures, load_up, open_random};
use super::{Arguments, RARE_CHECKPOINTS};
use crate::record::Record;
use crate::stage::{CHECKPOINTS, source_options};
use crate::statistics::median;
use anyhow::Result;
use offshoot_rig::Source;

/// What moments may take with rare checkpoints, over what they take with usual ones.
const RARE_TO_USUAL_GOAL: f64 = 1.2;

/// Runs it: one engine follows both sources. Each is loaded while the other rests, as two loads would take each other's
/// processors.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let (load, setting) = (arguments.load, &arguments.setting);
    let (stage, mut record) = arguments.stage(&CHECKPOINTS)?;
    let options = source_options(load.pgbench_scale(arguments.scale), &RARE_CHECKPOINTS)?;
    let rare = Source::start(&stage.scratch, options)?;
    load.fill(&rare, arguments.scale, setting.seed)?;
    let mut all = Vec::new();
    for (dsource, source) in [("usual", &stage.source), ("rare", &rare)] {
        stage.link_source(dsource, source)?;
        all.push(load_up(&stage, (dsource, source), arguments, &mut record)?);
    }
    let opened = open_random(&stage, &[&all[0], &all[1]], arguments.moments);
    let medians: Vec<f64> = opened.iter().map(|one| median(&one.took_ms)).collect();
    let figures = &mut record.figures;
    figures.note("load_minutes", arguments.minutes);
    for (loaded, opened) in all.iter().zip(opened) {
        add_figures(figures, &format!("{}_", loaded.dsource), loaded, opened);
    }
    figures.at_most("rare_to_usual_p50", medians[1] / medians[0], RARE_TO_USUAL_GOAL);
    Ok(record)
}
