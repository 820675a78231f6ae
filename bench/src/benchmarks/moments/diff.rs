//! What differs between two moments of a large source, of whose pages one in a hundred has changed.

use super::Arguments;
use super::load::Load;
use crate::figures::{megabytes, millis};
use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage};
use anyhow::{Context, Result, ensure};
use offshoot_api::Diff;
use offshoot_os::{Clock, SystemClock};

/// Rows of pgbench's accounts on a page, and of one scale.
const ROWS_A_PAGE: u64 = 61;
const ROWS_A_SCALE: u64 = 100_000;
/// One page of so many changes.
const PAGES: u64 = 100;
/// How often it is asked for.
const TIMES: u32 = 3;
/// What the whole command may take, in milliseconds.
const MS_GOAL: f64 = 10_000.0;

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    ensure!(
        arguments.load != Load::Orders,
        "use --load steady or heavy: pgbench's accounts are compared"
    );
    let (stage, mut record) = arguments.stage(&CHECKPOINTS)?;
    stage.link("prod")?;
    stage.ready_snapshot("prod")?;
    let source = stage.source.connect("postgres")?;
    let before = source.text("SELECT pg_current_wal_insert_lsn()")?;
    let changed = change_rows(&stage, u64::from(arguments.scale) * ROWS_A_SCALE)?;
    let left = format!("prod@{before}");
    let (mut all_ms, mut rows_ms, mut read_percent) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let began = SystemClock.elapsed();
        let diff: Diff = stage.engine.ask(["diff", &left, "prod"])?;
        let took = millis(SystemClock.elapsed() - began);
        all_ms.push(took);
        rows_ms.push(diff.took_ms as f64);
        eprintln!("  {took:.0} ms: {:?}", stage.steps("diff")?);
        let accounts = diff.tables.iter().find(|one| one.table.ends_with("pgbench_accounts"));
        let accounts = accounts.context("pgbench's accounts are not compared")?;
        let (found, others) = (accounts.changed, accounts.added + accounts.removed);
        ensure!((found, others) == (changed, 0), "{found} and {others} rows differ, not {changed}");
        read_percent.push(accounts.pages_read as f64 / accounts.pages as f64 * 100.0);
    }
    let bytes = source.number("SELECT sum(pg_database_size(oid))::bigint FROM pg_database")?;
    let figures = &mut record.figures;
    figures.note("source_mb", megabytes(bytes.unsigned_abs()));
    figures.note("rows_changed", changed as f64);
    figures.note("pages_read_percent", read_percent);
    // The first one also has to open both moments from what nobody has read.
    figures.at_most("diff_slowest_ms", all_ms.iter().copied().fold(0.0, f64::max), MS_GOAL);
    figures.note("diff_ms", all_ms);
    figures.note("diff_without_opening_ms", rows_ms);
    Ok(record)
}

/// Changes a row on one page of so many; how many rows.
fn change_rows(stage: &Stage, rows: u64) -> Result<u64> {
    let step = PAGES * ROWS_A_PAGE;
    stage.source.connect("postgres")?.execute(&format!(
        "UPDATE pgbench_accounts SET abalance = abalance + 1 \
         WHERE aid IN (SELECT generate_series(1, {rows}, {step}))"
    ))?;
    stage.wait_received("prod")?;
    Ok(rows.div_ceil(step))
}
