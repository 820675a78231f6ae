//! What a clone adds to the pool before it is written to.

use crate::Setting;
use crate::figures::{Figures, megabytes};
use anyhow::Result;
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

/// Arguments of `clone-size`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// pgbench scale of the source.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// VDBs made.
    #[arg(long, default_value_t = 5)]
    clones: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments { scale: 20, clones: 5 }
    }
}

pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Figures> {
    let bed = setting.testbed(arguments.scale, &[])?;
    bed.link("prod")?;
    let snapshot = crate::provision::ready_snapshot(&bed, "prod")?;
    let id = snapshot.id.to_string();
    bed.engine.command(["dsource", "pause", "prod"])?;
    let settled = || -> Result<u64> {
        // Several transaction groups, so that what is to be written has been.
        SystemClock.sleep(Duration::from_secs(15));
        Ok(bed.pool()?.used_bytes)
    };
    let before = settled()?;
    for number in 1..=arguments.clones {
        bed.provision(&format!("clone{number}"), "prod", &["--snapshot", &id])?;
    }
    let after = settled()?;
    let each = megabytes(after.saturating_sub(before)) / f64::from(arguments.clones);
    let mut figures = Figures::new("clone-size");
    figures.note("source_mb", megabytes(bed.source.data_bytes()));
    figures.note("pool_mb", megabytes(before));
    figures.at_most("clone_adds_mb", each, 10.0);
    let unique = bed.vdb("clone1")?.unique_bytes;
    figures.note("vdb_unique_mb", megabytes(unique));
    Ok(figures.printed())
}
