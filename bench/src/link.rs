//! The rate of a link against `pg_basebackup` to the same disk, and what the pool then holds.

use crate::Setting;
use crate::figures::{Figures, median, megabytes};
use anyhow::{Result, ensure};
use offshoot_os::{Clock, SystemClock, process};
use offshoot_testbed::Testbed;
use std::time::Duration;

/// Arguments of `link`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// pgbench scale of the source.
    #[arg(long, default_value_t = 100)]
    scale: u32,
    /// How often each is done, one after the other.
    #[arg(long, default_value_t = 3)]
    runs: u32,
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments { scale: 100, runs: 3 }
    }
}

pub fn run(setting: &Setting, arguments: &Arguments) -> Result<Figures> {
    let bed = setting.testbed(arguments.scale, &[])?;
    let source_mb = megabytes(bed.source.data_bytes());
    let (mut backup_s, mut link_s, mut pool_mb) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..arguments.runs {
        backup_s.push(base_backup(&bed, run)?);
        let began = SystemClock.elapsed();
        bed.link("prod")?;
        link_s.push((SystemClock.elapsed() - began).as_secs_f64());
        pool_mb.push(megabytes(bed.pool()?.used_bytes));
        bed.engine.command(["dsource", "unlink", "prod"])?;
    }
    let mut figures = Figures::new("link");
    let (backup, link) = (source_mb / median(&backup_s), source_mb / median(&link_s));
    figures.note("source_mb", source_mb);
    figures.note("pg_basebackup_mb_per_s", backup);
    figures.note("link_mb_per_s", link);
    figures.at_least("link_to_pg_basebackup", link / backup, 0.5);
    figures.note("pool_mb", median(&pool_mb));
    figures.at_most("pool_to_source", median(&pool_mb) / source_mb, 0.45);
    Ok(figures.printed())
}

/// Seconds a plain base backup takes, made durable as the tool does by default.
fn base_backup(bed: &Testbed, run: u32) -> Result<f64> {
    let copy = bed.source.make_directory(&format!("copy-{run}"))?;
    let spec = bed
        .source
        .program("pg_basebackup")
        .arg("--dbname")
        .arg(bed.source.link_uri())
        .env("PGPASSWORD", bed.source.link_password())
        .args(["--checkpoint=fast", "--wal-method=stream", "--pgdata"])
        .arg(copy.join("data"));
    let began = SystemClock.elapsed();
    let output = process::run(&spec, Duration::from_secs(1_800))?;
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    ensure!(output.success(), "pg_basebackup: {}", output.stderr_text());
    std::fs::remove_dir_all(copy)?;
    Ok(seconds)
}
