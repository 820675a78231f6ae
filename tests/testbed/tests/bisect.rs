//! The commit at which an answer changed is found, whatever else was committed.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Answer, AnswerKind, Bisection, ChangedRelation, JobList, JobState};
use offshoot_os::process::Sink;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{CommandError, Database, SourceOptions, find_newest};
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
    let settings = vec![("max_prepared_transactions".to_owned(), "5".to_owned())];
    let bin_dir = find_newest().unwrap();
    let bed = Testbed::with(SourceOptions { bin_dir, scale: 1, settings }).unwrap();
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

/// The one commit that a search finds.
fn finds(bed: &Testbed, words: &[&str]) -> Result<offshoot_api::ChangingCommit> {
    let found = run(bed, words)?;
    found.change.clone().with_context(|| format!("{words:?}: {found:?}"))
}

/// Does something in a transaction of its own; returns the transaction.
fn in_transaction(db: &Database, statements: &[&str]) -> Result<String> {
    db.execute("BEGIN")?;
    let xid = db.text("SELECT txid_current()")?;
    statements.iter().try_for_each(|statement| db.execute(statement))?;
    db.execute("COMMIT")?;
    Ok(xid)
}

/// The first and the last commit of a range, and the only one.
fn find_at_the_ends(bed: &Testbed) -> Result<()> {
    let db = bed.source.connect("postgres")?;
    let start = here(&db);
    let first = in_transaction(&db, &["UPDATE sales.prices SET price = 90 WHERE item = 1"])?;
    let after_first = here(&db);
    noise(bed, 100)?;
    let before_last = here(&db);
    let last = in_transaction(&db, &["UPDATE sales.prices SET price = 80 WHERE item = 1"])?;
    let end = here(&db);
    let search = |from: &str, to: &str, wanted: &[&str]| {
        let words = [&["--from", from, "--to", to, "--query", CHEAPEST], wanted].concat();
        finds(bed, &words)
    };
    let found = search(&start, &end, &["--expect", "101"])?;
    ensure!(found.xid == first || found.xid == last, "{first} {last} {found:?}");
    ensure!(search(&start, &before_last, &[])?.xid == first);
    ensure!(search(&start, &end, &["--until", "80"])?.xid == last);
    ensure!(search(&after_first, &end, &[])?.xid == last);
    let alone = run(bed, &["--from", &before_last, "--to", &end, "--query", CHEAPEST])?;
    ensure!((alone.commits, alone.moments_opened) == (1, 2), "{alone:?}");
    ensure!(alone.change.is_some_and(|change| change.xid == last));
    Ok(())
}

/// A transaction that began before the range, one that was prepared, DDL, TRUNCATE, another database.
fn find_others(bed: &Testbed) -> Result<()> {
    let (db, slow) = (bed.source.connect("postgres")?, bed.source.connect("postgres")?);
    slow.execute("BEGIN")?;
    let slow_xid = slow.text("SELECT txid_current()")?;
    slow.execute("UPDATE sales.prices SET price = 70 WHERE item = 40")?;
    let from = here(&db);
    writes_beside(&db, 20)?;
    slow.execute("COMMIT")?;
    let middle = here(&db);
    db.execute("BEGIN")?;
    let prepared = db.text("SELECT txid_current()")?;
    db.execute("UPDATE sales.prices SET price = 60 WHERE item = 41")?;
    db.execute("PREPARE TRANSACTION 'two-phase'")?;
    for _ in 0..30 {
        db.execute("UPDATE busy SET n = n + 1")?;
    }
    let found = finds(bed, &["--from", &from, "--query", CHEAPEST])?;
    ensure!(found.xid == slow_xid, "{slow_xid}: {found:?}");
    ensure!(found.changes.len() == 1 && found.changes[0].updated == 1, "{found:?}");
    db.execute("COMMIT PREPARED 'two-phase'")?;
    writes_beside(&db, 20)?;
    let found = finds(bed, &["--from", &middle, "--query", CHEAPEST])?;
    ensure!(found.xid == prepared, "{prepared}: {found:?}");

    let from = here(&db);
    let made = in_transaction(&db, &["CREATE TABLE later (n int)", "INSERT INTO later SELECT 1"])?;
    writes_beside(&db, 20)?;
    let emptied = in_transaction(&db, &["TRUNCATE later"])?;
    writes_beside(&db, 5)?;
    let count = ["--query", "SELECT count(*) FROM later", "--errors-are-answers"];
    let found = run(bed, &[&["--from", &from, "--until", "1"][..], &count].concat())?;
    ensure!(found.change.is_none(), "it is 1 at neither end: {found:?}");
    let found = finds(bed, &[&["--from", &from, "--until", "0"][..], &count].concat())?;
    ensure!(found.xid == emptied && found.before == value("1"), "{emptied}: {found:?}");
    let rewritten = |one: &ChangedRelation| one.relation == "public.later" && one.rewritten;
    ensure!(found.changes.iter().any(rewritten), "{found:?}");
    let found = finds(bed, &[&["--from", &from][..], &count].concat())?;
    ensure!(found.xid == made || found.xid == emptied, "{made} {emptied}: {found:?}");
    in_another_database(bed)
}

fn in_another_database(bed: &Testbed) -> Result<()> {
    let db = bed.source.connect("postgres")?;
    db.execute("CREATE DATABASE stock")?;
    let other = bed.source.connect("stock")?;
    other.execute("CREATE TABLE items (n int)")?;
    let from = here(&db);
    noise(bed, 50)?;
    let filled =
        in_transaction(&other, &["INSERT INTO items SELECT n FROM generate_series(1, 9) n"])?;
    noise(bed, 50)?;
    let words = ["--from", &from, "--database", "stock", "--query", "SELECT count(*) FROM items"];
    let found = run(bed, &words)?;
    let change = found.change.clone().context("a change")?;
    ensure!(change.xid == filled && found.database == "stock", "{filled}: {found:?}");
    let told = ChangedRelation {
        database: "stock".to_owned(),
        relation: "public.items".to_owned(),
        inserted: 9,
        updated: 0,
        deleted: 0,
        rewritten: false,
    };
    ensure!(change.changes == [told], "{change:?}");
    // Of what nobody else writes, few moments are opened.
    ensure!(found.moments_opened <= 4, "{found:?}");
    Ok(())
}

#[test]
fn commits_of_all_kinds_are_found() {
    let bed = started();
    with_log(&bed.engine, find_at_the_ends(&bed)).unwrap();
    with_log(&bed.engine, find_others(&bed)).unwrap();
}

fn nothing_to_find(bed: &Testbed) -> Result<()> {
    let db = bed.source.connect("postgres")?;
    let from = here(&db);
    writes_beside(&db, 10)?;
    let same = run(bed, &["--from", &from, "--query", CHEAPEST])?;
    ensure!(same.change.is_none() && same.moments_opened == 2, "{same:?}");
    ensure!((same.from.answer, same.to.answer) == (value("101"), value("101")));
    for wanted in [["--until", "101"], ["--until", "7"], ["--expect", "101"], ["--expect", "7"]] {
        let words = [&["--from", &from, "--query", CHEAPEST][..], &wanted].concat();
        ensure!(run(bed, &words)?.change.is_none(), "{wanted:?}");
    }
    let truth = run(bed, &["--from", &from, "--query", "SELECT true", "--until", "true"])?;
    ensure!(truth.from.answer == value("true"), "{truth:?}");
    let null = run(bed, &["--from", &from, "--query", "SELECT NULL::int"])?;
    ensure!(null.from.answer.kind == AnswerKind::Null, "{null:?}");
    let none = run(bed, &["--from", &from, "--query", "SELECT 1 WHERE false;"])?;
    ensure!(none.from.answer.kind == AnswerKind::NoRow, "{none:?}");
    // It owns the data, and is no superuser; what the source's users are known by is gone.
    let who =
        "SELECT string_agg(rolname || rolsuper, ',') FROM pg_roles WHERE rolname = current_user";
    let who = run(bed, &["--from", &from, "--query", who])?;
    ensure!(who.from.answer == value("offshootfalse"), "{who:?}");
    let file = ["--from", &from, "--query", "SELECT pg_read_file('postgresql.conf')"];
    is_refused(bed, &file, "invalid_input", "permission denied");
    Ok(())
}

fn refused_requests(bed: &Testbed) -> Result<()> {
    let db = bed.source.connect("postgres")?;
    let from = here(&db);
    writes_beside(&db, 2)?;
    let query = |sql: &'static str, says: &str| {
        is_refused(bed, &["--from", &from, "--query", sql], "invalid_input", says);
    };
    query("SELECT 1; SELECT 2", "multiple commands");
    query("UPDATE busy SET n = 0", "returns nothing");
    query("UPDATE busy SET n = 0 RETURNING n", "syntax error");
    query("SELECT nextval('sales.notes_id_seq')", "read-only");
    query("SELECT pg_advisory_lock(1), set_config('transaction_read_only', 'off', false)", "read");
    query("SELECT $1::int", "parameters");
    query("SELECT n FROM nowhere", "does not exist");
    query("SELECT repeat('x', 100000)", "longer than 64 KiB");
    query("SELECT repeat('x', 100000000)", "longer than 64 KiB");
    query(" ", "empty");
    let slow = ["--from", &from, "--query", "SELECT pg_sleep(60)", "--time-limit", "500ms"];
    is_refused(bed, &slow, "invalid_input", "takes longer");
    let to = ["--from", &here(&db), "--to", &from, "--query", CHEAPEST];
    is_refused(bed, &to, "invalid_input", "exchange");
    let old = ["--from", "2001-01-01 00:00+00", "--query", CHEAPEST];
    is_refused(bed, &old, "moment_unavailable", "shop");
    let database = ["--from", &from, "--query", CHEAPEST, "--database", "nowhere"];
    is_refused(bed, &database, "invalid_input", "does not exist");
    let unknown = bed.engine.command(["bisect", "nothing", "--from", &from, "--query", CHEAPEST]);
    ensure!(unknown.unwrap_err().code == "not_found");
    bed.provision("dev", "shop", &[])?;
    let vdb = bed.engine.command(["bisect", "dev", "--from", &from, "--query", CHEAPEST]);
    ensure!(vdb.unwrap_err().code == "wrong_state");
    bed.engine.command(["vdb", "delete", "dev", "--yes"])?;
    Ok(())
}

#[test]
fn what_cannot_be_searched_is_refused_and_leaves_nothing() {
    let bed = started();
    with_log(&bed.engine, nothing_to_find(&bed)).unwrap();
    with_log(&bed.engine, refused_requests(&bed)).unwrap();
    bed.engine.command(["dsource", "unlink", "shop"]).unwrap();
    bed.assert_no_trace().unwrap();
}

/// The state of the newest search.
fn state(bed: &Testbed) -> Result<JobState> {
    let jobs: JobList = bed.engine.ask(["job", "list"])?;
    let newest = jobs.jobs.iter().find(|job| job.kind == "bisect").context("a search")?;
    Ok(newest.state)
}

/// Begins a search that takes a while.
fn begin(bed: &Testbed, from: &str) -> Result<String> {
    let slow = "SELECT min(price) FROM sales.prices, pg_sleep(1)";
    let words = ["bisect", "shop", "--from", from, "--query", slow, "--detach"];
    let accepted = bed.engine.command(words)?;
    Ok(accepted["job"].as_str().context("a job")?.to_owned())
}

fn kill_and_cancel(bed: &mut Testbed) -> Result<()> {
    let db = bed.source.connect("postgres")?;
    let from = here(&db);
    writes_beside(&db, 20)?;
    let xid = cheapen(&db)?;
    writes_beside(&db, 20)?;
    let job = begin(bed, &from)?;
    // Not those of the engine's own jobs.
    let opens = |bed: &Testbed, job: &str| {
        bed.servers().iter().any(|one| one.contains(&format!("/{job}-")))
    };
    wait_until("a moment is open", PATIENCE, || Ok(opens(bed, &job)))?;
    SystemClock.sleep(Duration::from_millis(1500));
    bed.engine.kill_and_restart()?;
    // It is undone, as every job that holds nothing but copies.
    wait_until("it ends", PATIENCE, || Ok(state(bed)?.is_final()))?;
    ensure!(state(bed)? == JobState::Failed);
    ensure!(!opens(bed, &job), "{:?}", bed.servers());
    let nothing = bed.engine.command(["bisect", "--show", &job]).unwrap_err();
    ensure!(nothing.code == "not_found", "{nothing}");
    let job = begin(bed, &from)?;
    wait_until("it is found", PATIENCE, || Ok(state(bed)?.is_final()))?;
    let shown: Bisection = bed.engine.ask(["bisect", "--show", &job])?;
    ensure!(shown.change.is_some_and(|change| change.xid == xid));
    ensure!(!opens(bed, &job), "{:?}", bed.servers());
    let job = begin(bed, &from)?;
    wait_until("a moment is open", PATIENCE, || Ok(opens(bed, &job)))?;
    bed.engine.command(["job", "cancel", &job])?;
    wait_until("it ends", PATIENCE, || Ok(state(bed)?.is_final()))?;
    ensure!(state(bed)? == JobState::Cancelled);
    ensure!(!opens(bed, &job), "{:?}", bed.servers());
    Ok(())
}

#[test]
fn a_search_that_is_cut_off_leaves_nothing() {
    let mut bed = started();
    let done = kill_and_cancel(&mut bed);
    with_log(&bed.engine, done).unwrap();
    bed.engine.command(["dsource", "unlink", "shop"]).unwrap();
    bed.assert_no_trace().unwrap();
}
