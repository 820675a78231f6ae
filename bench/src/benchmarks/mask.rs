//! Masking, against what one would do with SQL on the same data; and what a server's settings do for that.

mod renewal;
mod tables;
mod tuning;

use super::engine_options;
use super::link::base_backup;
use crate::record::Record;
use crate::server::Server;
use crate::setting::Setting;
use crate::stage::{CHECKPOINTS, Stage};
use crate::statistics::{interleaved, median, paired_ratio};
use anyhow::{Context, Result, anyhow, ensure};
use offshoot_api::Mask;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Longest one masking may take.
const SECONDS_MAX: u64 = 7_200;
/// Rows of one batch, about.
const BATCH_ROWS: u64 = 10_000;

/// Measure masking against UPDATE in batches, one UPDATE for each table, and settings of the server alone and together
///
/// Tables of nine columns are masked by secure lookup and date shift: by `mask apply`, and by statements of SQL that do
/// the same on a plain copy, on as many connections as there are processors. Sides take turns. Then the UPDATE in
/// batches runs with settings that speed it up, each alone and all together.
#[derive(Debug, Clone, clap::Args, serde::Serialize)]
#[command(
    after_help = "Examples:\n  offshoot bench mask\n  offshoot bench mask --rows 100000 --repeats 1\n  \
                        offshoot bench mask --renewal"
)]
pub struct Arguments {
    /// Tables
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=64))]
    tables: u32,
    /// Rows of each
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// How often each is done, in turn
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Without the settings of the server
    #[arg(long)]
    no_tuning: bool,
    /// Only what a renewal takes after one row in a hundred was changed, as a part of masking everything
    #[arg(long)]
    renewal: bool,
    #[command(flatten)]
    pub(super) setting: Setting,
}

/// How SQL masks a table.
#[derive(Debug, Clone, Copy)]
enum How {
    /// A transaction for about so many rows.
    Batches,
    /// One for all.
    AtOnce,
}

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    let stage = Stage::start(&engine_options(&arguments.setting)?, 0, &CHECKPOINTS)?;
    let mut record = Record::begin("mask", arguments, stage.scratch.path())?;
    tables::fill(&stage.source.connect("postgres")?, arguments.tables, arguments.rows)?;
    let rules = stage.scratch.path().join("rules.yaml");
    std::fs::write(&rules, tables::rules())?;
    stage.link("prod")?;
    stage.ready_snapshot("prod")?;
    if arguments.renewal {
        let limit = Duration::from_secs(SECONDS_MAX);
        let (rules, size) = (rules.display().to_string(), (arguments.tables, arguments.rows));
        renewal::measure(&stage, &rules, size, arguments.repeats, limit, &mut record)?;
        return Ok(record);
    }
    let (copy, _) = base_backup(&stage, "plain", &[])?;
    let files = copy.join("data");
    let server = Server::spawn(&stage.source, &files, CHECKPOINTS)?;
    server.wait_ready()?;
    let rows = f64::from(arguments.tables) * f64::from(arguments.rows);
    let (mut rates, mut whole) = ([Vec::new(), Vec::new(), Vec::new()], Vec::new());
    for (_, variant) in interleaved(3, arguments.repeats) {
        let rate = match variant {
            0 => {
                let (rate, seconds) = mask(&stage, &rules.display().to_string(), rows)?;
                whole.push(rows / seconds);
                rate
            }
            variant => {
                let how = if variant == 1 { How::Batches } else { How::AtOnce };
                rows / update_all(server.uri(), arguments.tables, how)?
            }
        };
        eprintln!(
            "  {}: {rate:.0} rows/s",
            ["mask apply", "UPDATE in batches", "one UPDATE"][variant]
        );
        rates[variant].push(rate);
    }
    server.stop()?;
    let [ours, batches, at_once] = rates;
    let figures = &mut record.figures;
    figures.at_least("mask_to_batched_update", paired_ratio(&ours, &batches), 4.0);
    figures.at_least("mask_to_one_update", paired_ratio(&ours, &at_once), 2.5);
    figures.note("whole_command_to_one_update", paired_ratio(&whole, &at_once));
    figures.at_least("mask_rows_per_s", ours, 150_000.0);
    figures.note("whole_command_rows_per_s", whole);
    figures.note("batched_update_rows_per_s", batches);
    figures.note("one_update_rows_per_s", at_once);
    if !arguments.no_tuning {
        for (name, took) in tuning::measure(&stage, &files, arguments.repeats)? {
            record.figures.note(name, took);
        }
    }
    record.note(
        "UPDATE leaves what it masked in dead rows, in the log and in statistics; `mask apply` leaves none of it",
    );
    Ok(record)
}

/// Masks by the engine: rows a second of the masking itself, and seconds of the whole command, which also clones, opens,
/// cleans and keeps the image.
fn mask(stage: &Stage, rules: &str, rows: f64) -> Result<(f64, f64)> {
    let limit = Duration::from_secs(SECONDS_MAX);
    let began = SystemClock.elapsed();
    let words = ["mask", "apply", rules, "--from", "prod", "--as", "masked"];
    let shown = stage.engine.command_within(words, &[], limit)?;
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    let shown: Mask = serde_json::from_value(shown).context("what `mask apply` shows")?;
    ensure!(shown.rows_masked as f64 == rows, "{} rows were masked", shown.rows_masked);
    stage.engine.command(["dsource", "unlink", "masked", "--yes"])?;
    Ok((rows / (shown.took_ms.max(1) as f64 / 1e3), seconds))
}

/// Masks copies of all tables by SQL, on a connection for each processor; seconds of it without making the copies.
fn update_all(uri: &str, count: u32, how: How) -> Result<f64> {
    let db = Database::connect(uri)?;
    for table in 0..count {
        tables::copy(&db, table)?;
    }
    db.execute("CHECKPOINT")?;
    let width = std::thread::available_parallelism().map_or(2, |count| count.get());
    let (next, failed) = (AtomicU32::new(0), Mutex::new(None));
    let began = SystemClock.elapsed();
    std::thread::scope(|scope| {
        for _ in 0..width {
            scope.spawn(|| {
                let done = Database::connect(uri).and_then(|db| {
                    loop {
                        let table = next.fetch_add(1, Ordering::Relaxed);
                        if table >= count {
                            return Ok(());
                        }
                        update(&db, table, how)?;
                    }
                });
                if let (Err(error), Ok(mut failed)) = (done, failed.lock()) {
                    failed.get_or_insert(error);
                }
            });
        }
    });
    let seconds = (SystemClock.elapsed() - began).as_secs_f64();
    let failed = failed.into_inner().map_err(|_| anyhow!("a thread panicked"))?;
    failed.map_or(Ok(()), Err)?;
    for table in 0..count {
        tables::check(&db, table)?;
        tables::drop_copy(&db, table)?;
    }
    Ok(seconds)
}

/// Masks the copy of a table.
fn update(db: &Database, table: u32, how: How) -> Result<()> {
    let update = tables::update(table);
    match how {
        How::AtOnce => db.execute(&update),
        How::Batches => {
            let (pages, rows) = tables::size(db, table)?;
            // New versions of rows come after the pages that were there, and are not seen again.
            let step = (BATCH_ROWS * pages / rows.max(1)).max(1);
            for from in (0..pages).step_by(usize::try_from(step)?) {
                let to = pages.min(from + step);
                db.execute(&format!("{update} WHERE ctid >= '({from},0)' AND ctid < '({to},0)'"))?;
            }
            Ok(())
        }
    }
}

/// The median of how much faster `with` is than `without`.
fn gain(without: &[f64], with: &[f64]) -> f64 {
    if median(with) > 0.0 { paired_ratio(without, with) } else { 0.0 }
}
