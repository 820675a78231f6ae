//! How long a VDB takes from the request to its first answered query.

use crate::Setting;
use crate::figures::{Figures, median, millis, quantile};
use anyhow::{Context, Result};
use offshoot_api::{Snapshot, Vdb};
use offshoot_demo::{Database, Source};
use offshoot_os::process::Child;
use offshoot_os::{Clock, SystemClock};
use offshoot_testbed::Testbed;

/// Arguments of `provision`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// VDBs made of each source, idle and under load.
    #[arg(long, default_value_t = 20)]
    runs: u32,
    /// pgbench scale of the small source: 13 is about 0.2 GB.
    #[arg(long, default_value_t = 13)]
    small_scale: u32,
    /// pgbench scale of the large source: 330 is about 5 GB.
    #[arg(long, default_value_t = 330)]
    large_scale: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments { runs: 20, small_scale: 13, large_scale: 330 }
    }
}

/// Samples of one source in one condition, in milliseconds.
#[derive(Debug, Default)]
struct Samples {
    wall_ms: Vec<f64>,
    engine_ms: Vec<f64>,
}

pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Figures> {
    let bed = setting.testbed(arguments.small_scale, &[])?;
    let large = Source::start(&bed.scratch, setting.source(arguments.large_scale, &[])?)?;
    bed.link("small")?;
    bed.link_as("large", &large.link_uri(), large.link_password())?;
    let ready = [ready_snapshot(&bed, "small")?, ready_snapshot(&bed, "large")?];

    let mut figures = Figures::new("provision");
    let mut medians = Vec::new();
    for condition in ["idle", "under_load"] {
        let mut loads = Vec::new();
        if condition == "under_load" {
            loads = vec![start_load(&bed.source)?, start_load(&large)?];
        }
        let mut samples = [Samples::default(), Samples::default()];
        for _ in 0..arguments.runs {
            for (index, name) in ["small", "large"].into_iter().enumerate() {
                one(&bed, name, &ready[index], &mut samples[index])?;
            }
        }
        for mut load in loads {
            load.kill_group();
        }
        for (name, samples) in ["small", "large"].into_iter().zip(&samples) {
            let middle = median(&samples.wall_ms);
            medians.push(middle);
            figures.at_most(format!("{name}_{condition}_median_ms"), middle, 600.0);
            let high = quantile(&samples.wall_ms, 0.95);
            figures.at_most(format!("{name}_{condition}_p95_ms"), high, 1_200.0);
            let engine = median(&samples.engine_ms);
            figures.note(format!("{name}_{condition}_engine_median_ms"), engine);
        }
    }
    figures.at_most("large_to_small_idle", medians[1] / medians[0], 1.15);
    figures.at_most("large_to_small_under_load", medians[3] / medians[2], 1.15);
    Ok(figures.printed())
}

fn one(bed: &Testbed, from: &str, snapshot: &Snapshot, samples: &mut Samples) -> Result<()> {
    let clock = SystemClock;
    let began = clock.elapsed();
    let vdb: Vdb = bed.provision("timed", from, &["--snapshot", &snapshot.id.to_string()])?;
    Database::connect(&vdb.uri)?.number("SELECT count(*) FROM pgbench_branches")?;
    samples.wall_ms.push(millis(clock.elapsed() - began));
    samples.engine_ms.push(vdb.timings.total_ms as f64);
    bed.engine.command(["vdb", "delete", "timed"])?;
    Ok(())
}

pub(crate) fn ready_snapshot(bed: &Testbed, dsource: &str) -> Result<Snapshot> {
    let shown = bed.dsource(dsource)?;
    let snapshot = shown.snapshots.into_iter().next().context("a link ends in a snapshot")?;
    bed.wait_ready(&snapshot)?;
    Ok(snapshot)
}

/// Steady writes by pgbench until the child is killed.
pub(crate) fn start_load(source: &Source) -> Result<Child> {
    let spec = source.pgbench(&["--client=2", "--rate=100", "--time=100000", "--no-vacuum"]);
    Ok(spec.die_with_parent(true).spawn()?)
}
