//! The rate of a link against `pg_basebackup` to the same disk, what the pool then holds, and how long it takes
//! until snapshots are ready.

use super::engine_options;
use crate::figures::megabytes;
use crate::record::Record;
use crate::setting::{Setting, SourceData};
use crate::stage::Stage;
use crate::statistics::{interleaved, median};
use anyhow::{Result, ensure};
use offshoot_os::{Clock, SystemClock, process};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Measure the rate of a link against pg_basebackup, what the pool then holds, and when snapshots are ready
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(after_help = "Example:\n  offshoot bench link --scale 0.2 --repeats 3\n  \
    offshoot bench link --pgbench 100")]
pub struct Arguments {
    #[command(flatten)]
    #[serde(flatten)]
    data: SourceData,
    /// How often each is done, in turn
    #[arg(long, value_name = "N", default_value_t = 3)]
    repeats: u32,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let (data, setting) = (&arguments.data, &arguments.setting);
    let stage = Stage::start(&engine_options(setting)?, data.pgbench_scale(), &[])?;
    let mut record = Record::begin("link", arguments, stage.scratch.path())?;
    data.fill(&stage, setting.seed)?;
    let source_mb = megabytes(stage.source.data_bytes());
    let (mut backup, mut link, mut pool) = (Vec::new(), Vec::new(), Vec::new());
    let mut steps: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (run, variant) in interleaved(2, arguments.repeats) {
        if variant == 0 {
            let (copy, seconds) = base_backup(&stage, &format!("copy-{run}"), &[])?;
            backup.push(source_mb / seconds);
            std::fs::remove_dir_all(copy)?;
        } else {
            link.push(source_mb / stage.link("prod")?);
            pool.push(megabytes(stage.pool()?.used_bytes) / source_mb);
            for (step, seconds) in stage.steps("dsource_link")? {
                steps.entry(step).or_default().push(seconds);
            }
            stage.engine.command(["dsource", "unlink", "prod"])?;
        }
    }
    let (first, later) = until_ready(&stage, arguments.repeats)?;
    let figures = &mut record.figures;
    figures.note("source_mb", source_mb);
    figures.note("first_snapshot_ready_after_seconds", first);
    figures.note("later_snapshot_ready_after_seconds", later);
    figures.at_least("link_to_pg_basebackup", median(&link) / median(&backup), 0.8);
    figures.note("pg_basebackup_mb_per_s", backup);
    figures.note("link_mb_per_s", link);
    figures.at_most("pool_to_source", pool, 0.35);
    for (step, seconds) in steps {
        figures.note(format!("seconds_of_{step}"), seconds);
    }
    Ok(record)
}

/// Seconds from a link's end until its snapshot is ready, and from asking for another, after a row was written
/// at the source, until that is.
fn until_ready(stage: &Stage, repeats: u32) -> Result<(f64, Vec<f64>)> {
    let source = stage.source.connect("postgres")?;
    source.execute("CREATE TABLE written (n int PRIMARY KEY)")?;
    stage.link("prod")?;
    let seconds_since = |began: Duration| (SystemClock.elapsed() - began).as_secs_f64();
    let began = SystemClock.elapsed();
    stage.ready_snapshot("prod")?;
    let (first, mut later) = (seconds_since(began), Vec::new());
    for n in 0..repeats {
        source.execute(&format!("INSERT INTO written VALUES ({n})"))?;
        let began = SystemClock.elapsed();
        stage.take_snapshot("prod")?;
        later.push(seconds_since(began));
    }
    stage.engine.command(["dsource", "unlink", "prod"])?;
    Ok((first, later))
}

/// Makes a plain base backup in `data` of a directory, made durable as the tool does by default; the directory
/// and the seconds it took.
pub fn base_backup(stage: &Stage, name: &str, more: &[&str]) -> Result<(PathBuf, f64)> {
    let copy = stage.source.make_directory(name)?;
    let spec = stage
        .source
        .program("pg_basebackup")
        .arg("--dbname")
        .arg(stage.source.link_uri())
        .env("PGPASSWORD", stage.source.link_password())
        .args(more)
        .args(["--checkpoint=fast", "--wal-method=stream", "--pgdata"])
        .arg(copy.join("data"));
    let began = SystemClock.elapsed();
    let output = process::run(&spec, Duration::from_secs(7_200))?;
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    ensure!(output.success(), "pg_basebackup: {}", output.stderr_text());
    Ok((copy, seconds))
}
