//! What differs between two states, held against a comparison of all rows by the test itself; and statements that make
//! one state the other.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{Diff, DiffRead, DiffTable};
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{Testbed, in_database, with_log};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The tables, each with its columns and those of its key.
const TABLES: &[(&str, &str, &str)] = &[
    ("public.keyed", "id, a, t, big", "id"),
    ("public.pairs", "x, y, v", "x, y"),
    ("public.bag", "v, w", ""),
    ("public.rewritten", "id, v", "id"),
    ("public.emptied", "id, v", "id"),
    ("public.made", "id, v, twice", "id"),
    ("public.parent", "id, code", "id"),
    ("public.child", "id, parent, v", "id"),
    ("public.part_low", "id, v", "id"),
    ("public.part_high", "id, v", "id"),
    ("\"Odd \"\"schema\".\"a table\"", "\"the key\", \"select\"", "\"the key\""),
    ("public.pgbench_accounts", "aid, bid, abalance, filler", "aid"),
];

const MADE: &str = r#"
CREATE TABLE keyed (id int PRIMARY KEY, a int, t text, big text);
ALTER TABLE keyed ALTER big SET STORAGE EXTERNAL;
CREATE TABLE pairs (x text, y int, v double precision, PRIMARY KEY (x, y));
CREATE TABLE bag (v int, w text);
CREATE TABLE rewritten (id int PRIMARY KEY, v text);
CREATE TABLE emptied (id int PRIMARY KEY, v text);
CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v int, twice int GENERATED ALWAYS AS (v * 2) STORED);
CREATE TABLE parent (id int PRIMARY KEY, code text UNIQUE);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE, v text);
CREATE TABLE part (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE part_low PARTITION OF part FOR VALUES FROM (0) TO (5000);
CREATE TABLE part_high PARTITION OF part FOR VALUES FROM (5000) TO (1000000);
CREATE SCHEMA "Odd ""schema";
CREATE TABLE "Odd ""schema"."a table" ("the key" text PRIMARY KEY, "select" bytea);
CREATE UNLOGGED TABLE fleeting (id int PRIMARY KEY);
INSERT INTO keyed SELECT n, n % 7, 'text ' || n, CASE WHEN n % 50 = 0 THEN repeat(md5(n::text), 200) END
  FROM generate_series(1, 20000) n;
INSERT INTO pairs SELECT 'x' || n % 100, n, n / 3.0 FROM generate_series(1, 5000) n;
INSERT INTO bag SELECT n % 10, CASE WHEN n % 3 = 0 THEN NULL ELSE 'w' || n % 5 END FROM generate_series(1, 5000) n;
INSERT INTO rewritten SELECT n, 'v' || n FROM generate_series(1, 3000) n;
INSERT INTO emptied SELECT n, 'v' || n FROM generate_series(1, 3000) n;
INSERT INTO made (v) SELECT n FROM generate_series(1, 3000) n;
INSERT INTO parent SELECT n, 'code ' || n FROM generate_series(1, 500) n;
INSERT INTO child SELECT n, n % 500 + 1, 'v' FROM generate_series(1, 3000) n;
INSERT INTO part SELECT n, 'v' || n FROM generate_series(0, 9000) n;
INSERT INTO "Odd ""schema"."a table" SELECT E'it''s\t"' || n || E'"\\\n', decode(md5(n::text), 'hex')
  FROM generate_series(1, 1000) n;
ANALYZE; CHECKPOINT;
"#;

fn options(bin_dir: PathBuf) -> SourceOptions {
    SourceOptions { bin_dir, scale: 1, settings: vec![] }
}

fn started(bin_dir: PathBuf) -> Result<Testbed> {
    let bed = Testbed::with(options(bin_dir))?;
    bed.source.connect("postgres")?.execute(MADE)?;
    bed.link("shop")?;
    Ok(bed)
}

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Changes of any kind to a few rows.
fn change(source: &Database, numbers: &mut Numbers, count: u32) -> Result<()> {
    for _ in 0..count {
        let (id, new) = (numbers.below(20_000) + 1, numbers.below(1 << 40) % 900_000 + 30_000);
        let sql = match numbers.below(16) {
            0 => format!(
                "INSERT INTO keyed VALUES ({new}, 1, 'new', repeat('{new} ', 2000)) ON CONFLICT DO NOTHING"
            ),
            1 => format!("UPDATE keyed SET a = a + 1 WHERE id = {id}"),
            2 => format!("UPDATE keyed SET big = repeat(md5('{new}'), 300) WHERE id = {id}"),
            3 => format!("DELETE FROM keyed WHERE id BETWEEN {id} AND {id} + 3"),
            4 => format!(
                "UPDATE keyed SET id = {new} WHERE id = {id} AND NOT EXISTS (SELECT FROM keyed WHERE id = {new})"
            ),
            5 => format!("UPDATE pairs SET v = v * 1.1, x = x || 'y' WHERE y = {id}"),
            6 => format!(
                "INSERT INTO bag SELECT {id} % 10, 'w' || {new} % 5 FROM generate_series(1, 3)"
            ),
            7 => "DELETE FROM bag WHERE ctid IN (SELECT ctid FROM bag ORDER BY random() LIMIT 3)"
                .to_owned(),
            8 => format!(
                "UPDATE made SET v = {new} WHERE id = {id} % 3000; INSERT INTO made (v) VALUES ({id})"
            ),
            9 => format!("DELETE FROM parent WHERE id = {id} % 500"),
            10 => format!("INSERT INTO parent VALUES ({new}, 'code {new}') ON CONFLICT DO NOTHING"),
            11 => format!(
                "UPDATE child SET parent = (SELECT max(id) FROM parent), v = 'moved' WHERE id = {id} % 3000"
            ),
            12 => format!(
                "UPDATE part SET v = 'changed' WHERE id = {id} % 9000; UPDATE part SET id = {new} WHERE id = {id} % 9000 + 1"
            ),
            13 => format!(
                "UPDATE \"Odd \"\"schema\".\"a table\" SET \"select\" = '\\x{new:08}' WHERE \"the key\" LIKE '%\"{}\"%'",
                id % 1000
            ),
            14 => format!(
                "BEGIN; UPDATE keyed SET a = -1 WHERE id = {id}; SAVEPOINT s; DELETE FROM keyed WHERE id < {id}; ROLLBACK TO s; COMMIT"
            ),
            _ => format!(
                "BEGIN; UPDATE keyed SET t = 'never' WHERE id < 100; DELETE FROM pairs WHERE y < {id}; ROLLBACK"
            ),
        };
        source.execute(&sql)?;
    }
    Ok(())
}

/// The rows of a table by their keys, each as often as it is there.
type Rows = BTreeMap<String, Vec<String>>;

fn rows(db: &Database, (table, columns, key): (&str, &str, &str)) -> Result<Rows> {
    let key = if key.is_empty() { columns } else { key };
    let mut all = Rows::new();
    for row in
        db.rows(&format!("SELECT ROW({key})::text, ROW({columns})::text FROM ONLY {table}"))?
    {
        all.entry(row[0].clone()).or_default().push(row[1].clone());
    }
    all.values_mut().for_each(|rows| rows.sort());
    Ok(all)
}

/// Rows added, changed and removed.
fn expected(left: &Rows, right: &Rows, keyed: bool) -> (u64, u64, u64) {
    let count = |rows: &Rows, key: &String| rows.get(key).map_or(0, Vec::len) as u64;
    let more = |a: &Rows, b: &Rows| {
        a.keys().map(|key| count(a, key).saturating_sub(count(b, key))).sum::<u64>()
    };
    let changed =
        left.iter().filter(|(key, rows)| right.get(*key).is_some_and(|other| other != *rows));
    (more(right, left), if keyed { changed.count() as u64 } else { 0 }, more(left, right))
}

fn quoted_name(table: &str) -> String {
    let parts = table.split('.').map(|part| part.trim_matches('"').replace("\"\"", "\""));
    parts.collect::<Vec<_>>().join(".")
}

fn diff(bed: &Testbed, arguments: &[&str]) -> Result<Diff> {
    bed.engine.ask([&["diff"], arguments].concat())
}

fn table<'a>(found: &'a Diff, name: &str) -> Result<&'a DiffTable> {
    let named = found.tables.iter().find(|one| one.table == quoted_name(name));
    named.with_context(|| format!("{name} is not in {:?}", found.tables))
}

/// Compares two states by all means; returns what the engine found.
fn check(bed: &Testbed, left: &str, right: &str, vdbs: [&Database; 2]) -> Result<Diff> {
    let found = diff(bed, &[left, right, "--rows", "--limit", "10000"])?;
    for of in TABLES {
        let (a, b) = (rows(vdbs[0], *of)?, rows(vdbs[1], *of)?);
        let one = table(&found, of.0)?;
        let counted = (one.added, one.changed, one.removed);
        let wanted = expected(&a, &b, !of.2.is_empty());
        ensure!(counted == wanted, "{left} {right} {}: {counted:?}, not {wanted:?}: {one:?}", of.0);
        let shown = (one.added + one.changed + one.removed).min(10_000);
        ensure!(one.rows.len() as u64 == shown, "{}: {} rows of {shown}", of.0, one.rows.len());
    }
    Ok(found)
}

/// The statements make the first VDB what the second is.
fn apply(bed: &Testbed, left: &str, right: &str, vdbs: [&Database; 2]) -> Result<()> {
    let found = diff(bed, &[left, right, "--sql"])?;
    let sql = found.sql.context("statements")?;
    if let Err(error) = vdbs[0].execute(&sql) {
        let _ = vdbs[0].execute("ROLLBACK");
        return Err(error.context(sql.chars().take(3000).collect::<String>()));
    }
    for of in TABLES {
        let (a, b) = (rows(vdbs[0], *of)?, rows(vdbs[1], *of)?);
        let differ = a.iter().find(|(key, rows)| b.get(*key) != Some(*rows));
        ensure!(a == b, "{} is not the same after the statements: {differ:?}", of.0);
    }
    Ok(())
}

fn position(source: &Database) -> Result<String> {
    source.execute("SELECT pg_switch_wal()")?;
    source.text("SELECT pg_current_wal_lsn()")
}

fn vdb(bed: &Testbed, name: &str, lsn: &str) -> Result<Database> {
    let made = bed.provision(name, "shop", &["--lsn", lsn])?;
    Database::connect(&in_database(&made.uri, "postgres"))
}

/// Transactions that are open at a moment, and what they do is seen later without a page being changed then.
struct Open {
    long: Database,
    waiting: Database,
}

impl Open {
    fn begin(bed: &Testbed) -> Result<Open> {
        let (long, waiting) = (bed.source.connect("postgres")?, bed.source.connect("postgres")?);
        long.execute(
            "BEGIN; INSERT INTO keyed SELECT n, 1, 'long', NULL FROM generate_series(2000001, 2000050) n; \
             UPDATE keyed SET t = 'by a long one' WHERE id BETWEEN 19990 AND 20000; SAVEPOINT s; \
             DELETE FROM pairs WHERE y BETWEEN 4000 AND 4020; RELEASE s; INSERT INTO bag VALUES (1, 'w1')",
        )?;
        waiting.execute(
            "BEGIN; INSERT INTO rewritten SELECT n, 'rolled back' FROM generate_series(500001, 500010) n; \
             UPDATE keyed SET t = 'rolled back' WHERE id BETWEEN 19000 AND 19010",
        )?;
        Ok(Open { long, waiting })
    }

    fn end(self) -> Result<()> {
        self.long.execute("COMMIT")?;
        self.waiting.execute("ROLLBACK")
    }
}

fn states_differ_by_what_was_done(bin_dir: PathBuf) -> Result<()> {
    let bed = started(bin_dir)?;
    let source = bed.source.connect("postgres")?;
    let ranges = source.number("SHOW server_version_num")? >= 140_000;
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let run = || -> Result<()> {
        change(&source, &mut numbers, 40)?;
        let snapshot = bed.snapshot("shop")?;
        bed.wait_ready(&snapshot)?;

        // Nothing but transactions that end.
        let open = Open::begin(&bed)?;
        let before = position(&source)?;
        open.end()?;
        let ended = position(&source)?;
        let (one, two) = (vdb(&bed, "one", &before)?, vdb(&bed, "two", &ended)?);
        let (left, right) = (format!("shop@{before}"), format!("shop@{ended}"));
        let found = check(&bed, &left, &right, [&one, &two])?;
        let keyed = table(&found, "public.keyed")?;
        ensure!(keyed.added == 50 && keyed.changed >= 9, "{keyed:?}");
        if ranges {
            ensure!(
                keyed.read == DiffRead::Pages && keyed.pages_read < keyed.pages / 4,
                "{keyed:?}"
            );
            let accounts = table(&found, "public.pgbench_accounts")?;
            ensure!(accounts.read == DiffRead::Nothing, "{accounts:?}");
        }

        // Everything, and both ways.
        source.execute("VACUUM")?;
        change(&source, &mut numbers, 150)?;
        for statement in [
            "VACUUM FREEZE keyed",
            "VACUUM FULL rewritten",
            "UPDATE rewritten SET v = 'after' WHERE id = 5",
        ] {
            source.execute(statement)?;
        }
        source.execute("TRUNCATE emptied; INSERT INTO emptied VALUES (1, 'v1'), (2, 'other')")?;
        change(&source, &mut numbers, 50)?;
        let last = position(&source)?;
        let three = vdb(&bed, "three", &last)?;
        let end = format!("shop@{last}");
        let found = check(&bed, &right, &end, [&two, &three])?;
        check(&bed, &end, &left, [&three, &one])?;
        if ranges {
            for whole in ["public.rewritten", "public.emptied"] {
                ensure!(table(&found, whole)?.read == DiffRead::Whole, "{found:?}");
            }
        }
        apply(&bed, &right, &end, [&two, &three])?;
        apply(&bed, &end, &left, [&three, &one])?;
        Ok(())
    };
    let mut run = run;
    with_log(&bed.engine, run())
}

#[test]
fn rows_that_differ_are_found_in_the_pages_that_do() {
    states_differ_by_what_was_done(find_newest().unwrap()).unwrap();
}

mod needs_postgres_16 {
    use super::states_differ_by_what_was_done;
    use offshoot_testbed::other_server;

    #[test]
    #[ignore = "needs PostgreSQL 16 in OFFSHOOT_TEST_PG_BINS"]
    fn rows_that_differ_are_found_on_16() {
        states_differ_by_what_was_done(other_server(16)).unwrap();
    }
}

mod needs_postgres_18 {
    use super::states_differ_by_what_was_done;
    use offshoot_testbed::other_server;

    #[test]
    #[ignore = "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS"]
    fn rows_that_differ_are_found_on_18() {
        states_differ_by_what_was_done(other_server(18)).unwrap();
    }
}
