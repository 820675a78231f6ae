//! The tables that are masked: a key, six columns for secure lookup and three dates.

use anyhow::{Result, ensure};
use offshoot_rig::Database;

/// Columns that a value of the list replaces.
const TEXTS: [&str; 6] = ["first_name", "last_name", "street", "city", "company", "job"];
/// Columns whose dates are shifted.
const DATES: [&str; 3] = ["born", "joined", "seen"];
/// Values of the list.
const VALUES: usize = 100;
/// Days by which dates are shifted at most.
const DAYS: u32 = 30;

/// Makes and fills tables in the source.
pub fn fill(db: &Database, tables: u32, rows: u32) -> Result<()> {
    let texts = TEXTS.map(|name| format!("{name} text NOT NULL")).join(", ");
    let dates = DATES.map(|name| format!("{name} date NOT NULL")).join(", ");
    let text =
        |(at, name): (usize, &str)| format!("'{name} ' || (n::bigint * {} % 50021)", 7919 + at);
    let texts_of = TEXTS.iter().copied().enumerate().map(text).collect::<Vec<_>>().join(", ");
    let date = |(at, _)| format!("date '1950-01-01' + (n::bigint * {} % 20011)::int", 104_729 + at);
    let dates_of = DATES.iter().enumerate().map(date).collect::<Vec<_>>().join(", ");
    for table in 0..tables {
        db.execute(&format!(
            "CREATE TABLE people_{table} (id bigint PRIMARY KEY, {texts}, {dates}); \
             INSERT INTO people_{table} SELECT n, {texts_of}, {dates_of} FROM generate_series(1, {rows}) n"
        ))?;
    }
    db.execute("VACUUM ANALYZE")?;
    db.execute("CHECKPOINT")
}

fn values() -> impl Iterator<Item = String> {
    (0..VALUES).map(|number| format!("Masked value {number}"))
}

/// The rules for all of them.
pub fn rules() -> String {
    let values = values().collect::<Vec<_>>().join(", ");
    let mut rules =
        "version: 1\nkey: main\ntables:\n  'public.people_*':\n    columns:\n".to_owned();
    for name in TEXTS {
        rules += &format!("      {name}: {{algorithm: secure-lookup, values: [{values}]}}\n");
    }
    for name in DATES {
        rules += &format!("      {name}: {{algorithm: date-shift, min: -{DAYS}d, max: {DAYS}d}}\n");
    }
    rules
}

/// A number that says nothing of a value to who has no key, as in the engine's algorithms: those of SQL's own hashes are
/// no secret.
fn keyed(value: &str) -> String {
    format!(
        "(('x' || left(encode(sha256(convert_to('a key of some length' || {value}, 'UTF8')), 'hex'), 8))::bit(32)::bigint & 2147483647)"
    )
}

/// The statement of SQL that masks a copy as well: by the value's keyed hash a value of the list, or another day within
/// the same range.
pub fn update(table: u32) -> String {
    let values = values().map(|value| format!("'{value}'")).collect::<Vec<_>>().join(", ");
    let text = |name: &str| format!("{name} = (ARRAY[{values}])[1 + {} % {VALUES}]", keyed(name));
    let date = |name: &str| {
        let days = DAYS * 2 + 1;
        format!("{name} = {name} + {}::int % {days} - {DAYS}", keyed(&format!("{name}::text")))
    };
    let sets: Vec<String> =
        TEXTS.into_iter().map(text).chain(DATES.into_iter().map(date)).collect();
    format!("UPDATE work_{table} SET {}", sets.join(", "))
}

/// Makes a copy of a table as it was.
pub fn copy(db: &Database, table: u32) -> Result<()> {
    db.execute(&format!(
        "DROP TABLE IF EXISTS work_{table}; CREATE TABLE work_{table} AS TABLE people_{table}; \
         ALTER TABLE work_{table} ADD PRIMARY KEY (id)"
    ))?;
    db.execute(&format!("VACUUM ANALYZE work_{table}"))
}

/// Pages and rows of the copy.
pub fn size(db: &Database, table: u32) -> Result<(u64, u64)> {
    let pages =
        format!("SELECT pg_relation_size('work_{table}') / current_setting('block_size')::bigint");
    let rows =
        format!("SELECT reltuples::bigint FROM pg_class WHERE oid = 'work_{table}'::regclass");
    Ok((u64::try_from(db.number(&pages)?)?, u64::try_from(db.number(&rows)?)?))
}

/// All of the copy is masked.
pub fn check(db: &Database, table: u32) -> Result<()> {
    let left = TEXTS.map(|name| format!("{name} NOT LIKE 'Masked value %'")).join(" OR ");
    let left = db.number(&format!("SELECT count(*) FROM work_{table} WHERE {left}"))?;
    ensure!(left == 0, "{left} rows of work_{table} were not masked by SQL");
    Ok(())
}

pub fn drop_copy(db: &Database, table: u32) -> Result<()> {
    db.execute(&format!("DROP TABLE work_{table}"))
}
