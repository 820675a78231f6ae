//! What a server shows of a moment.

use anyhow::{Result, bail, ensure};
use offshoot_os::process::{Spec, run};
use offshoot_rig::Database;
use offshoot_testbed::PATIENCE;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Databases that can be entered: one whose removal was begun has the limit -2.
const DATABASES: &str =
    "SELECT datname FROM pg_database WHERE datallowconn AND datconnlimit <> -2 ORDER BY 1";

/// Tables with what is compared of their rows. A VDB has other roles than its source, and they own what its superusers
/// owned. What is unlogged is empty after a recovery, on both sides.
const TABLES: &str = "SELECT format('%I.%I', n.nspname, c.relname), \
     string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attnum), \
     CASE c.relkind WHEN 'S' THEN ' (sequence)' ELSE '' END \
     FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
     WHERE c.relkind IN ('r', 'm', 'S') AND n.nspname NOT LIKE 'pg_toast%' \
     AND NOT (n.nspname = 'pg_catalog' AND (a.attname ~ '(owner|acl|dba)$' OR c.relname IN \
     ('pg_authid', 'pg_auth_members', 'pg_db_role_setting', 'pg_shdepend', 'pg_init_privs'))) \
     GROUP BY 1, c.relkind ORDER BY 1";

/// How to reach a server's databases.
pub type Connect<'a> = &'a (dyn Fn(&str) -> Result<Database> + Sync);

/// What one table holds.
#[derive(Debug, PartialEq, Eq)]
struct Table {
    database: String,
    /// All its rows, as text.
    rows: String,
    digest: String,
}

/// What all tables hold in all databases, by name.
pub struct Seen(BTreeMap<String, Table>);

impl Seen {
    pub fn by(connect: Connect<'_>) -> Result<Seen> {
        let mut seen = BTreeMap::new();
        for database in connect("postgres")?.rows(DATABASES)?.concat() {
            look(connect, &database, "", &mut seen)?;
        }
        let open = prepared(&connect("shop")?)?;
        let (database, rows) = ("shop".to_owned(), PREPARED.to_owned());
        let table = Table { database, rows, digest: open.join(" ") };
        seen.insert("prepared transactions".to_owned(), table);
        ensure!(seen.len() > 200, "only {} tables", seen.len());
        Ok(Seen(seen))
    }

    /// Commits all prepared transactions, and looks at what they wrote.
    pub fn with_prepared_committed(connect: Connect<'_>) -> Result<Seen> {
        let shop = connect("shop")?;
        for gid in prepared(&shop)? {
            shop.execute(&format!("COMMIT PREPARED '{gid}'"))?;
        }
        let mut seen = BTreeMap::new();
        look(connect, "shop", "all prepared committed: ", &mut seen)?;
        Ok(Seen(seen))
    }

    /// The names of tables that differ. A moment is a set of commits: an image that was opened as it is may be at any
    /// position between two of them. What does not wait for a commit is exactly that of the moment only after a replay:
    /// sequences, prepared transactions, and what maintenance changes in the catalog.
    pub fn differing(&self, other: &Seen, exactly: bool) -> Vec<String> {
        const LOOSE: [&str; 3] = ["prepared", ".pg_catalog.", "(sequence)"];
        let loose = |name: &str| LOOSE.iter().any(|part| name.contains(part));
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let differs = |name: &&String| self.0.get(*name) != other.0.get(*name);
        let counts = |name: &&String| exactly || !loose(name);
        names.into_iter().filter(differs).filter(counts).cloned().collect()
    }

    /// Some rows of a table that only one of two servers has.
    pub fn rows_of_one(
        &self,
        name: &str,
        ours: Connect<'_>,
        theirs: Connect<'_>,
    ) -> Result<String> {
        let Some(table) = self.0.get(name) else { return Ok(format!("{name} is not ours")) };
        let rows = |connect: Connect<'_>| -> Result<BTreeSet<String>> {
            Ok(connect(&table.database)?.rows(&table.rows)?.concat().into_iter().collect())
        };
        let (ours, theirs) = (rows(ours)?, rows(theirs)?);
        let [only_ours, only_theirs] = [ours.difference(&theirs), theirs.difference(&ours)]
            .map(|rows| rows.take(ROWS_SHOWN).cloned().collect::<Vec<_>>().join("\n  "));
        Ok(format!("{name}: only ours\n  {only_ours}\nonly theirs\n  {only_theirs}"))
    }
}

const PREPARED: &str = "SELECT gid FROM pg_prepared_xacts ORDER BY 1";

fn prepared(database: &Database) -> Result<Vec<String>> {
    Ok(database.rows(PREPARED)?.concat())
}

/// How many rows are shown where tables differ.
const ROWS_SHOWN: usize = 4;

fn look(
    connect: Connect<'_>,
    database: &str,
    when: &str,
    seen: &mut BTreeMap<String, Table>,
) -> Result<()> {
    let session = connect(database)?;
    let (mut names, mut selects, mut digests) = (Vec::new(), Vec::new(), Vec::new());
    for row in session.rows(TABLES)? {
        let [table, columns, kind] = row.as_slice() else { bail!("{row:?}") };
        // That a VDB knows no passwords of production takes a VACUUM.
        let but = match table.as_str() {
            "pg_catalog.pg_class" => "WHERE relname !~ '^pg_(authid|toast_1260)'",
            _ => "",
        };
        let rows = format!("SELECT ROW({columns})::text AS one FROM {table} t {but}");
        digests.push(format!(
            "SELECT {}, count(*) || ' ' || md5(coalesce(string_agg(one, chr(10) ORDER BY one), '')) \
             FROM ({rows}) AS rows",
            names.len()
        ));
        names.push(format!("{when}{database}.{table}{kind}"));
        selects.push(rows);
    }
    for row in session.rows(&digests.join(" UNION ALL "))? {
        let [number, digest] = row.as_slice() else { bail!("{row:?}") };
        let number: usize = number.parse()?;
        let (name, rows) = (names[number].clone(), selects[number].clone());
        let (database, digest) = (database.to_owned(), digest.clone());
        seen.insert(name, Table { database, rows, digest });
    }
    Ok(())
}

/// Which transaction, multixact and member of one would be the next at the moment.
pub struct Next {
    transaction: u64,
    multixact: u64,
    member: u64,
}

impl Next {
    /// Of a server on which nothing was changed since.
    pub fn by(database: &Database) -> Result<Next> {
        database.execute("CHECKPOINT")?;
        let number = |what: &str| -> Result<u64> {
            let sql = format!("SELECT {what} FROM pg_control_checkpoint()");
            Ok(u64::try_from(database.number(&sql)?)?)
        };
        Ok(Next {
            transaction: number("split_part(next_xid, ':', 2)")?,
            multixact: number("next_multixact_id")?,
            member: number("next_multi_offset")?,
        })
    }

    /// Directories, and how many of their bytes are about what was before the moment: two bits of status a transaction,
    /// 819 commit timestamps a page, one offset a multixact, its members in groups of four, 409 groups a page.
    fn places(&self) -> [(&'static str, u64); 4] {
        const PAGE: u64 = 8192;
        let Next { transaction, multixact, member } = *self;
        [
            ("pg_xact", transaction / 4),
            ("pg_commit_ts", transaction / 819 * PAGE + transaction % 819 * 10),
            ("pg_multixact/offsets", multixact * 4),
            ("pg_multixact/members", member / 1636 * PAGE + member % 1636 / 4 * 20),
        ]
    }
}

/// The digests of the files that say what became of transactions, as far as they are about those before a moment.
pub fn status_files(database: &Database, next: &Next) -> Result<BTreeMap<String, String>> {
    const FILE: u64 = 32 * 8192;
    database.execute("CHECKPOINT")?;
    let mut digests = BTreeMap::new();
    for (place, bytes) in next.places() {
        for name in database.rows(&format!("SELECT pg_ls_dir('{place}')"))?.concat() {
            let begin = u64::from_str_radix(&name, 16)? * FILE;
            let bytes = bytes.saturating_sub(begin).min(FILE);
            if bytes > 0 {
                let read = format!("pg_read_binary_file('{place}/{name}')");
                let sql = format!("SELECT md5(substr({read}, 1, {bytes}))");
                digests.insert(format!("{place}/{name}, {bytes} bytes"), database.text(&sql)?);
            }
        }
    }
    ensure!(digests.len() >= 4, "the load uses all of them: {digests:?}");
    Ok(digests)
}

/// Checks all tables and indexes of all databases, and that each row is in the indexes.
pub fn check_structure(bin_dir: &Path, uri: &str, connect: Connect<'_>) -> Result<()> {
    let postgres = connect("postgres")?;
    let there = "SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'";
    if postgres.number(there)? == 0 {
        println!("this PostgreSQL has no amcheck: its structure is not checked");
        return Ok(());
    }
    if postgres.number("SHOW server_version_num")? < 140_000 {
        return postgres
            .rows(DATABASES)?
            .concat()
            .iter()
            .try_for_each(|one| check_indexes(&connect(one)?));
    }
    let spec = Spec::new(bin_dir.join("pg_amcheck"))
        .args(["--all", "--install-missing", "--heapallindexed"])
        .arg(format!("--maintenance-db={uri}"))
        .cwd("/");
    let output = run(&spec, PATIENCE)?;
    let said = output.stdout_text() + &output.stderr_text();
    ensure!(output.success() && said.trim().is_empty(), "pg_amcheck: {said}");
    Ok(())
}

/// What of `pg_amcheck` there is before 14.
fn check_indexes(database: &Database) -> Result<()> {
    database.execute("CREATE EXTENSION IF NOT EXISTS amcheck")?;
    database.execute(
        "SELECT bt_index_check(c.oid, true) FROM pg_class c JOIN pg_am a ON a.oid = c.relam \
         WHERE a.amname = 'btree' AND c.relkind = 'i' AND c.relpersistence = 'p'",
    )
}
