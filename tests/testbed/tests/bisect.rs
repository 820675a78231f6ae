//! The commit at which an answer changed is found, whatever else was committed.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Answer, AnswerKind, Bisection, ChangedRelation, JobList, JobState};
use offshoot_os::process::Sink;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{CommandError, Database};
use offshoot_testbed::{Testbed, wait_until, with_log};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(240);

/// Prices, and what else a shop has.
const SCHEMA: &str = "CREATE SCHEMA sales;
    CREATE TABLE sales.prices (item int PRIMARY KEY, price int);
    CREATE TABLE sales.notes (id int GENERATED ALWAYS AS IDENTITY, text text);
    CREATE TABLE busy (id int, n int);
    CREATE FUNCTION cheapest() RETURNS int LANGUAGE plpgsql STABLE AS
      $$ BEGIN RETURN (SELECT min(price) FROM sales.prices); END $$;
    INSERT INTO sales.prices SELECT n, 100 + n FROM generate_series(1, 50) n;
    INSERT INTO busy SELECT n, 0 FROM generate_series(1, 20) n";

const CHEAPEST: &str = "SELECT cheapest()";

fn started() -> Testbed {
    let bed = Testbed::start().unwrap();
    bed.source.connect("postgres").unwrap().execute(SCHEMA).unwrap();
    bed.link("shop").unwrap();
    bed
}

fn run(bed: &Testbed, words: &[&str]) -> Result<Bisection, CommandError> {
    let words = [&["bisect", "shop"], words].concat();
    let found = bed.engine.command_within(&words, &[], PATIENCE)?;
    Ok(serde_json::from_value(found).unwrap())
}

#[track_caller]
fn is_refused(bed: &Testbed, words: &[&str], code: &str, says: &str) {
    let refused = run(bed, words).expect_err(&words.join(" "));
    assert_eq!(refused.code, code, "{words:?}: {refused}");
    assert!(refused.to_string().contains(says), "{words:?}: {refused}");
}

fn value(text: &str) -> Answer {
    Answer { kind: AnswerKind::Value, text: Some(text.to_owned()) }
}

/// Where the source's log ends.
fn here(db: &Database) -> String {
    db.text("SELECT pg_current_wal_insert_lsn()").unwrap()
}

/// Many small commits, side by side.
fn noise(bed: &Testbed, transactions: u32) -> Result<()> {
    let each = format!("--transactions={transactions}");
    let load = ["--client=4", "--jobs=2", &each, "--no-vacuum"];
    let mut load = bed.source.pgbench(&load).stdout(Sink::Null).stderr(Sink::Null).spawn()?;
    wait_until("the load is done", PATIENCE, || Ok(load.try_wait()?.is_some()))
}

/// Commits that write what is asked for, and change no answer.
fn writes_beside(db: &Database, count: u32) -> Result<()> {
    for n in 0..count {
        db.execute(&format!("UPDATE sales.prices SET price = price WHERE item = {}", n % 50 + 1))?;
        db.execute(&format!("UPDATE busy SET n = n + 1 WHERE id = {}", n % 20 + 1))?;
    }
    Ok(())
}

/// The change: two rows and a note, one of them in a subtransaction. Returns the transaction.
fn cheapen(db: &Database) -> Result<String> {
    db.execute("BEGIN")?;
    let xid = db.text("SELECT txid_current()")?;
    db.execute("INSERT INTO sales.notes (text) VALUES ('sale')")?;
    db.execute("SAVEPOINT one")?;
    db.execute("UPDATE sales.prices SET price = 5 WHERE item IN (7, 8)")?;
    db.execute("RELEASE one")?;
    db.execute("SAVEPOINT two")?;
    db.execute("DELETE FROM sales.prices")?;
    db.execute("ROLLBACK TO two")?;
    db.execute("COMMIT")?;
    Ok(xid)
}

fn find_sale(bed: &Testbed) -> Result<()> {
    let db = bed.source.connect("postgres")?;
    let from = here(&db);
    noise(bed, 500)?;
    writes_beside(&db, 60)?;
    let before = here(&db);
    let xid = cheapen(&db)?;
    let after = here(&db);
    writes_beside(&db, 60)?;
    noise(bed, 500)?;
    let found = run(bed, &["--from", &from, "--query", CHEAPEST])?;
    eprintln!("{found:#?}");
    ensure!((&found.from.answer, &found.to.answer) == (&value("101"), &value("5")), "{found:?}");
    let change = found.change.clone().context("a change")?;
    ensure!(change.xid == xid, "{xid}: {change:?}");
    ensure!((&change.before, &change.after) == (&value("101"), &value("5")), "{change:?}");
    let within = db.text(&format!(
        "SELECT '{0}'::pg_lsn > '{before}' AND '{0}'::pg_lsn <= '{after}'",
        change.lsn
    ))?;
    ensure!(within == "t", "{} between {before} and {after}", change.lsn);
    let told = |relation: &str, inserted, updated| ChangedRelation {
        database: "postgres".to_owned(),
        relation: relation.to_owned(),
        inserted,
        updated,
        deleted: 0,
        rewritten: false,
    };
    ensure!(
        change.changes == [told("sales.notes", 1, 0), told("sales.prices", 0, 2)]
            && change.changes_whole,
        "{change:?}"
    );
    ensure!(found.commits > 4200, "{found:?}");
    Ok(())
}

#[test]
fn the_commit_that_changed_an_answer_is_found() {
    let bed = started();
    with_log(&bed.engine, find_sale(&bed)).unwrap();
}
