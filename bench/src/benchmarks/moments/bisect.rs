//! The search for the commit at which an answer changed.

use super::Arguments;
use super::load::Load;
use crate::figures::megabytes;
use crate::record::Record;
use crate::stage::{CHECKPOINTS, Stage, log_bytes};
use anyhow::{Result, ensure};
use offshoot_api::Bisection;
use offshoot_os::{Clock, SystemClock};
use std::time::Duration;

/// Where in the load the answers change.
const CHANGE_AT: f64 = 0.6;
/// Longest that a search may take before it counts as failed.
const LIMIT: Duration = Duration::from_secs(1_200);
/// What a search may take, in milliseconds.
const MS_GOAL: f64 = 60_000.0;

/// What is asked for: the name of its figures, the query, and how many moments it may open. The first reads a table that one
/// commit of all writes, the second one that every commit writes: there an answer leaves out one side of a moment, no more.
const QUERIES: [(&str, &str, Option<f64>); 2] = [
    ("own_table", "SELECT value FROM bench_setting", Some(10.0)),
    ("busy_table", "SELECT count(*) FROM pgbench_history WHERE tid = -1", None),
];

/// Runs it.
pub fn run(arguments: &Arguments) -> Result<Record> {
    ensure!(
        arguments.load != Load::Orders,
        "use --load heavy or steady: the queries are over pgbench's tables"
    );
    let (stage, mut record) = arguments.stage(&CHECKPOINTS)?;
    stage.source.connect("postgres")?.execute("CREATE TABLE bench_setting AS SELECT 1 AS value")?;
    stage.link("prod")?;
    let begin = stage.source.connect("postgres")?.text("SELECT pg_current_wal_insert_lsn()")?;
    let before = log_bytes(&stage.source)?;
    let load = arguments.load.start(&stage.source, arguments.time(), arguments.setting.seed)?;
    SystemClock.sleep(arguments.time().mul_f64(CHANGE_AT));
    let changed_by = change_answers(&stage)?;
    SystemClock.sleep(arguments.time().mul_f64(1.0 - CHANGE_AT));
    load.end(&mut record)?;
    stage.wait_received("prod")?;
    record.figures.note("load_minutes", arguments.minutes);
    record.figures.note("log_mb", megabytes(log_bytes(&stage.source)?.saturating_sub(before)));
    let mut commits = 0;
    for (name, query, moments_goal) in QUERIES {
        let search = ["bisect", "prod", "--from", &begin, "--query", query];
        let found: Bisection =
            serde_json::from_value(stage.engine.command_within(search, &[], LIMIT)?)?;
        let xid = found.change.map(|change| change.xid);
        ensure!(xid.as_ref() == Some(&changed_by), "{query}: found {xid:?}, not {changed_by}");
        let figures = &mut record.figures;
        figures.at_most(format!("{name}_ms"), found.took_ms as f64, MS_GOAL);
        let opened = f64::from(found.moments_opened);
        match moments_goal {
            Some(goal) => figures.at_most(format!("{name}_moments"), opened, goal),
            None => figures.note(format!("{name}_moments"), opened),
        }
        commits = found.commits;
    }
    record.figures.note("commits", commits as f64);
    Ok(record)
}

/// One transaction after which both queries have another answer. Returns it.
fn change_answers(stage: &Stage) -> Result<String> {
    let source = stage.source.connect("postgres")?;
    source.execute("BEGIN")?;
    let xid = source.text("SELECT txid_current()")?;
    source.execute("UPDATE bench_setting SET value = 2")?;
    source.execute("INSERT INTO pgbench_history (tid, bid, aid, delta) VALUES (-1, 1, 1, 0)")?;
    source.execute("COMMIT")?;
    Ok(xid)
}
