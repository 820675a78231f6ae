//! What each VDB must hold, asked with real queries.

use super::Stage;
use super::voice::Voice;
use crate::report::Report;
use anyhow::Result;
use jiff::Timestamp;
use offshoot_api::Vdb;
use offshoot_rig::Database;

/// What the writer's tables in a database say: highest value, rows, and the separately stored
/// value.
pub(super) struct Seen {
    max: i64,
    rows: i64,
    now: i64,
}

impl Seen {
    pub(super) fn of(database: &Database) -> Result<Self> {
        let rows = database.rows(
            "SELECT coalesce(max(value), 0), count(*), (SELECT value FROM tick_now) FROM ticks",
        )?;
        let number = |index: usize| -> Result<i64> {
            let text = rows.first().and_then(|row| row.get(index));
            Ok(text.map(String::as_str).unwrap_or_default().parse()?)
        };
        Ok(Seen { max: number(0)?, rows: number(1)?, now: number(2)? })
    }

    /// Whether every write up to the last is there, once, and whole.
    pub(super) fn whole(&self) -> bool {
        self.max == self.rows && self.max == self.now
    }

    /// The last write.
    pub(super) fn max(&self) -> i64 {
        self.max
    }

    pub(super) fn say(&self) -> String {
        format!("{} rows, last {}, kept {}", self.rows, self.max, self.now)
    }
}

/// The two VDBs made from the source: the latest, and an earlier second.
pub(super) fn source_copies(
    stage: &Stage,
    voice: &Voice,
    report: &mut Report,
    first: &Vdb,
    second: &Vdb,
    (moment, value): (Timestamp, i64),
) -> Result<()> {
    voice.heading("What they hold");
    let seen = Seen::of(&Database::connect(&first.uri)?)?;
    let expected = first.moment.time.and_then(|time| stage.writer.history().value_at(time));
    let ok = seen.whole() && seen.max > 0 && expected.is_none_or(|value| value <= seen.max);
    voice.check(report, "first holds every write up to its moment", ok, seen.say());

    let database = Database::connect(&second.uri)?;
    let seen = Seen::of(&database)?;
    let ok = seen.whole() && seen.max == value;
    let name = format!("second holds exactly write {value}, as the source did at {moment}");
    voice.check(report, &name, ok, seen.say());

    let balances = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = 0 AND
        (SELECT count(*) FROM pgbench_accounts) = (SELECT 100000 * count(*) FROM pgbench_branches)";
    let seen = database.text(balances)?;
    voice.check(report, "second holds every pgbench account", seen == "t", seen.clone());
    Ok(())
}

/// The branch of the first VDB: it has that VDB's changes, and its own are visible nowhere else.
pub(super) fn branch(
    stage: &Stage,
    voice: &Voice,
    report: &mut Report,
    [first, second, branch]: [&Vdb; 3],
) -> Result<()> {
    voice.heading("Writes in one are seen in no other");
    let source = stage.source.connect("postgres")?;
    let first = Database::connect(&first.uri)?;
    let second = Database::connect(&second.uri)?;
    let branch = Database::connect(&branch.uri)?;
    let has = |database: &Database, table: &str| {
        database.text(&format!("SELECT to_regclass('{table}') IS NOT NULL")).map(|text| text == "t")
    };
    let low = "SELECT count(*) FROM ticks WHERE value <= 3";
    let changed = has(&branch, "only_in_first")? && branch.number(low)? == 0;
    voice.check(report, "branch holds what was changed in first", changed, yes_no(changed));

    branch.execute("CREATE TABLE only_in_branch AS SELECT 1 AS one; TRUNCATE pgbench_accounts")?;
    for (name, database) in [("first", &first), ("second", &second), ("the source", &source)] {
        let accounts = database.number("SELECT count(*) FROM pgbench_accounts")?;
        let clean = !has(database, "only_in_branch")? && accounts > 0;
        let check = format!("{name} does not see what was written in branch");
        voice.check(report, &check, clean, format!("{accounts} accounts"));
    }
    for (name, database) in [("second", &second), ("the source", &source)] {
        let rows = database.number(low)?;
        let clean = !has(database, "only_in_first")? && rows == 3;
        let check = format!("{name} does not see what was written in first");
        voice.check(report, &check, clean, format!("{rows} of 3 rows that first deleted"));
    }
    Ok(())
}

fn yes_no(ok: bool) -> String {
    if ok { "yes" } else { "no" }.to_owned()
}
