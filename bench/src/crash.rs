//! `kill -9` of the engine under load, again and again.

use crate::Setting;
use crate::figures::{Figures, median, quantile};
use anyhow::Result;
use offshoot_testbed::kill_under_load;

/// Arguments of `crash`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// How often.
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// pgbench scale of the source.
    #[arg(long, default_value_t = 5)]
    scale: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments { kills: 100, scale: 5 }
    }
}

pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Figures> {
    let mut bed = setting.testbed(arguments.scale, &[])?;
    bed.link("prod")?;
    bed.provision("base", "prod", &[])?;
    let seen = kill_under_load(&mut bed, "base", arguments.kills)?;
    let back_ms: Vec<f64> = seen.back_after_ms.iter().map(|ms| *ms as f64).collect();
    let mut figures = Figures::new("crash");
    figures.at_least("kills_survived", back_ms.len() as f64, f64::from(arguments.kills));
    figures.note("commits_acknowledged_and_found", seen.commits as f64);
    figures.note("back_after_median_ms", median(&back_ms));
    figures.note("back_after_p95_ms", quantile(&back_ms, 0.95));
    Ok(figures.printed())
}
