//! pgbench in a VDB against the same server on the host filesystem.

use crate::Setting;
use crate::figures::{Figures, median};
use anyhow::{Context, Result, ensure};
use offshoot_os::process;
use offshoot_testbed::Testbed;
use std::time::Duration;

/// Arguments of `load`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// pgbench scale.
    #[arg(long, default_value_t = 100)]
    scale: u32,
    /// Clients.
    #[arg(long, default_value_t = 10)]
    clients: u32,
    /// Seconds of each run.
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// Counted runs of each, in turn, after one that warms up.
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments { scale: 100, clients: 10, seconds: 30, runs: 3 }
    }
}

pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Figures> {
    let bed = setting.testbed(arguments.scale, &[("shared_buffers", "100MB")])?;
    bed.link("prod")?;
    let vdb = bed.provision("virtual", "prod", &["--set", "shared_buffers=100MB"])?;
    // The source is the plain copy; while it is measured nothing may follow it.
    bed.engine.command(["dsource", "pause", "prod"])?;
    let places = [bed.source.superuser_uri("postgres"), vdb.uri];

    let mut figures = Figures::new("load");
    for (mix, flags, goal) in
        [("select_only", &["--select-only"][..], 0.8), ("tpcb_like", &[][..], 0.6)]
    {
        let mut tps = [Vec::new(), Vec::new()];
        for run in 0..=arguments.runs {
            for (place, tps) in places.iter().zip(&mut tps) {
                let rate = pgbench(&bed, place, arguments, flags)?;
                if run > 0 {
                    tps.push(rate);
                }
            }
        }
        let [physical, virtual_] = tps.map(|samples| median(&samples));
        figures.note(format!("{mix}_physical_tps"), physical);
        figures.note(format!("{mix}_virtual_tps"), virtual_);
        figures.at_least(format!("{mix}_virtual_to_physical"), virtual_ / physical, goal);
    }
    let cache = bed.pool()?.cache;
    figures.note("cache_hit_ratio", cache.hit_ratio);
    Ok(figures.printed())
}

/// Transactions per second of one run.
fn pgbench(bed: &Testbed, uri: &str, arguments: &Arguments, flags: &[&str]) -> Result<f64> {
    let spec = bed
        .source
        .pgbench_on(uri, flags)
        .args(["--no-vacuum", "--jobs=2"])
        .arg(format!("--client={}", arguments.clients))
        .arg(format!("--time={}", arguments.seconds));
    let limit = Duration::from_secs(u64::from(arguments.seconds) * 3 + 60);
    let output = process::run(&spec, limit)?;
    ensure!(output.success(), "pgbench: {}", output.stderr_text());
    let text = output.stdout_text();
    let line = text.lines().find_map(|line| line.strip_prefix("tps = "));
    let rate = line.and_then(|rest| rest.split_whitespace().next());
    rate.and_then(|rate| rate.parse().ok()).with_context(|| format!("no rate in: {text}"))
}
