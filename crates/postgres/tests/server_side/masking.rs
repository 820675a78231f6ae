//! Masking of whole clusters: every type and constraint, and no byte left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use offshoot_connector::{Masked, MaskedTable, RulesChecked, TableState};
use offshoot_domain::Secret;
use offshoot_masking::Ruleset;
use offshoot_postgres::check_image::check_running;
use offshoot_postgres::config::{self, Settings};
use offshoot_postgres::masker;
use offshoot_postgres::server::{self, Server, StopMode};
use offshoot_postgres::session::Session;
use offshoot_postgres::wire::Door;
use offshoot_postgres::{recovery, settle};
use offshoot_types::{ErrorKind, Failure};

use crate::cluster::*;
use crate::image::{check_stopped, scope};

pub const SOURCE: &str = include_str!("masking/source.sql");
pub const RULES: &str = include_str!("masking/rules.yaml");

/// What no byte may hold, in any case and as the server keeps it.
const CANARIES: [&[u8]; 3] = [b"uoxiz", b"UOXIZ", b"i\xb2\xdet"];

pub fn start(scratch: &Scratch, bin: &Path, data: &Path, name: &str) -> Server {
    config::write_private(&plain(data), &control(bin, data)).unwrap();
    let mut spec = scratch.spec(bin, data, name);
    spec.superusers = vec![BOSS.to_owned()];
    let mut server = server::start(spec).unwrap();
    server.wait_ready(DEADLINE).unwrap();
    server
}

/// A cluster with these tables in a database `shop`, settled and stopped.
pub fn source(scratch: &Scratch, bin: &Path, sql: &str) -> PathBuf {
    let data = fresh(scratch, bin, "data");
    config::adopt(&plain(&data), bin, user().as_ref(), &Settings::new()).unwrap();
    let mut server = start(scratch, bin, &data, "source");
    let mut session = server.connect().unwrap();
    session.execute("CREATE DATABASE shop", DEADLINE).unwrap();
    session.execute("COMMENT ON DATABASE shop IS 'Quoxiz database'", DEADLINE).unwrap();
    drop(session);
    let mut shop = server.connect_to("shop").unwrap();
    let ready = "SET session_replication_role = origin; SET search_path = public, pg_catalog;";
    shop.execute(&format!("{ready}{sql}"), DEADLINE).unwrap();
    drop(shop);
    settle::settle(&mut server, &plain(&data)).unwrap();
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
    data
}

const IS_18: &str = "SELECT current_setting('server_version_num')::int >= 180000";

/// Another database, with rows that a condition leaves alone.
pub fn add_other(scratch: &Scratch, bin: &Path, data: &Path) {
    let mut server = start(scratch, bin, data, "other");
    server.connect().unwrap().execute("CREATE DATABASE other", DEADLINE).unwrap();
    let sql = "CREATE TABLE public.clients (id int, name text);
        INSERT INTO public.clients SELECT i, CASE WHEN i > 3 THEN 'Quoxiz ' ELSE 'stays ' END || i
          FROM generate_series(1, 100) i";
    let mut other = server.connect_to("other").unwrap();
    other.execute(sql, DEADLINE).unwrap();
    let kind = if one(&mut other, IS_18) == "t" { "VIRTUAL" } else { "STORED" };
    let sql = format!(
        "ALTER TABLE public.clients ADD loud text GENERATED ALWAYS AS (upper(name)) {kind}"
    );
    other.execute(&sql, DEADLINE).unwrap();
    drop(other);
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
}

pub fn check(server: &Server, rules: &str) -> RulesChecked {
    masker::check(&Door::of(server.spec()), &Ruleset::parse(rules).unwrap()).unwrap()
}

pub fn mask(server: &Server, rules: &str) -> Result<Masked, Failure> {
    let dir = plain(&server.spec().data_dir);
    let rules = Ruleset::parse(rules).unwrap();
    let key = Secret::new("the key");
    let mut last = Vec::new();
    let mut tick = |tables: &[MaskedTable]| {
        last = tables.to_vec();
        Ok(())
    };
    let done = masker::mask(&Door::of(server.spec()), &dir, &rules, &key, &mut tick)?;
    assert_eq!(last, done.tables);
    assert!(last.iter().all(|table| table.state == TableState::Done), "{last:?}");
    Ok(done)
}

pub fn finish(server: &mut Server) {
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
    let dir = plain(&server.spec().data_dir);
    masker::finish(&dir).unwrap();
    recovery::finish(&dir).unwrap();
}

/// The files below a directory that hold one of the canaries.
pub fn betrayers(place: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(betrayers(&path));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        for canary in CANARIES {
            if let Some(at) = memchr::memmem::find(&bytes, canary) {
                let from = at.saturating_sub(20);
                let text =
                    String::from_utf8_lossy(&bytes[from..(at + 40).min(bytes.len())]).into_owned();
                found.push(format!("{} at {at}: {text:?}", path.display()));
                break;
            }
        }
    }
    found
}

pub fn one(session: &mut Session, sql: &str) -> String {
    session.query_column(sql, DEADLINE).unwrap().remove(0)
}

const TABLES: [&str; 12] = [
    "people", "orders", "houses", "rooms", "events", "visits", "animals", "dogs", "sessions",
    "plain", "names", "initials",
];

/// How many rows each table has, and what is in all of them.
pub fn content(server: &Server) -> BTreeMap<&'static str, (String, String)> {
    let mut shop = server.connect_to("shop").unwrap();
    let mut told = |table: &'static str| {
        let rows = one(&mut shop, &format!("SELECT count(*) FROM public.{table}"));
        let sum = format!(
            "SELECT md5(coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')) FROM public.{table} t"
        );
        (table, (rows, one(&mut shop, &sum)))
    };
    TABLES.into_iter().map(&mut told).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one course of events")]
fn every_type_and_constraint_is_masked_and_no_byte_is_left() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let data = source(&scratch, &bin, SOURCE);
        add_other(&scratch, &bin, &data);
        // Left by a crash, and by somebody.
        let shop = std::fs::read_dir(data.join("base")).unwrap().flatten();
        let shop = shop
            .max_by_key(|entry| entry.file_name().to_string_lossy().parse::<u32>().unwrap_or(0));
        std::fs::write(shop.unwrap().path().join("999999.1"), b"Quoxiz orphan").unwrap();
        std::fs::write(data.join("global/999998"), b"Quoxiz orphan").unwrap();
        std::fs::create_dir(data.join("base/4000000000")).unwrap();
        std::fs::write(data.join("base/4000000000/1259"), b"Quoxiz database").unwrap();
        std::fs::create_dir(data.join("log")).unwrap();
        std::fs::write(data.join("log/postgresql.log"), b"Quoxiz log").unwrap();
        assert!(betrayers(&data).len() > 10);
        let again = scratch.copy(&data, "again");

        let mut server = start(&scratch, &bin, &data, "one");
        let before = content(&server);
        let oids = "SELECT string_agg(c.oid::text, ' ' ORDER BY c.oid) FROM pg_class c \
                    WHERE oid >= 16384 AND relnamespace = 'public'::regnamespace";
        let oids_before = one(&mut server.connect_to("shop").unwrap(), oids);
        let checked = check(&server, RULES);
        assert_eq!(checked.problems, Vec::<String>::new());
        assert_eq!(checked.idle, Vec::<String>::new());
        let done = mask(&server, RULES).unwrap();
        println!("{}: {} values", bin.display(), done.values);
        let after = content(&server);
        for (table, (rows, sum)) in &before {
            assert_eq!(after[table].0, *rows, "{table}");
            assert_eq!(after[table].1 == *sum, *table == "plain", "{table}");
        }
        let mut shop = server.connect_to("shop").unwrap();
        assert_eq!(one(&mut shop, oids), oids_before);
        assert_eq!(one(&mut shop, "SELECT count(*) FROM public.audit"), "0");
        for (sql, wanted) in [
            // Joins hold.
            ("SELECT count(*) FROM public.orders JOIN public.people ON email = buyer", "3000"),
            (
                "SELECT count(*) FROM public.people a JOIN public.people b ON a.boss = b.email",
                "1989",
            ),
            ("SELECT count(*) FROM public.rooms JOIN public.houses USING (street, number)", "300"),
            // Rows are where they belong, in the parents and by their indexes.
            ("SELECT count(*) FROM public.events_a WHERE who >= 'M'", "0"),
            ("SELECT count(*) FROM ONLY public.dogs WHERE owner LIKE '% %'", "50"),
            ("SELECT count(*) FROM public.people WHERE loud <> upper(name::text)", "0"),
            ("SELECT count(*) FROM public.people WHERE late IS NOT NULL", "0"),
            (
                "SELECT count(*) FROM public.people WHERE kept = E'tab\\there, line\\nthere, back\\\\slash'",
                "663",
            ),
            ("SELECT count(*) FROM public.people WHERE length(large) < 15000", "0"),
            (
                "SELECT max(amount)::text || ' ' || max(ratio)::text FROM public.people",
                "2487.5000 1",
            ),
            ("SELECT count(*) FROM pg_index WHERE NOT (indisvalid AND indisready)", "0"),
            ("SELECT count(*) FROM pg_constraint WHERE NOT convalidated", "0"),
            (
                "SELECT count(*) FROM pg_class c JOIN pg_class t ON t.oid = c.reltoastrelid \
                 JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class x ON x.oid = i.indexrelid \
                 WHERE c.oid >= 16384 AND (t.relname <> 'pg_toast_' || c.oid \
                   OR x.relname <> 'pg_toast_' || c.oid || '_index' OR t.relowner <> c.relowner)",
                "0",
            ),
            ("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'offshoot%'", "0"),
            ("SELECT count(*) FROM pg_largeobject_metadata", "0"),
            ("SELECT count(*) FROM pg_publication_rel", "1"),
            ("SELECT count(*) > 0 FROM pg_stats WHERE tablename = 'people'", "t"),
        ] {
            assert_eq!(one(&mut shop, sql), wanted, "{sql}");
        }
        drop(shop);
        let mut other = server.connect_to("other").unwrap();
        let kept =
            "SELECT string_agg(id::text, ' ') FROM public.clients WHERE name = 'stays ' || id";
        assert_eq!(one(&mut other, kept), "1 2 3");
        let loud = "SELECT count(*) FROM public.clients WHERE loud = upper(name)";
        assert_eq!(one(&mut other, loud), "100");
        drop(other);
        let names: Vec<&str> = done.tables.iter().map(|table| table.name.as_str()).collect();
        assert!(names.contains(&"shop.public.people") && names.contains(&"other.public.clients"));
        let auto = std::fs::read_to_string(data.join("postgresql.auto.conf")).unwrap();
        assert!(!auto.contains('='), "{auto}");
        finish(&mut server);
        assert_eq!(betrayers(&data), Vec::<String>::new(), "{}", bin.display());
        let log = std::fs::read_to_string(scratch.path("one.log")).unwrap_or_default();
        assert!(!log.contains("uoxiz"), "{log}");
        let all = scope(&bin, &data, |_| None);
        let found = check_stopped(&bin, &data, &all).unwrap();
        assert!(found.sound(), "{found:?}");

        // It opens as it was left, and is worked with.
        let mut server = start(&scratch, &bin, &data, "opened");
        assert_eq!(content(&server), after);
        let found = check_running(&server, &all, DEADLINE, &mut |_| Ok(())).unwrap();
        assert!(found.sound(), "{found:?}");
        let mut shop = server.connect_to("shop").unwrap();
        for sql in [
            "SET session_replication_role = origin",
            "INSERT INTO public.orders (buyer, note) SELECT email, 'new' FROM public.people LIMIT 1",
            "INSERT INTO public.events VALUES ('Zoe', '2030-01-01', 'new')",
            "UPDATE public.people SET country = country WHERE false",
            "VACUUM FULL public.people",
            "ALTER TABLE public.people ADD COLUMN more text DEFAULT 'x'",
            "DROP TABLE public.people CASCADE",
        ] {
            shop.execute(sql, DEADLINE).unwrap();
        }
        drop(shop);
        assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());

        // The same again, from the same source.
        let mut server = start(&scratch, &bin, &again, "two");
        mask(&server, RULES).unwrap();
        assert_eq!(content(&server), after);
        finish(&mut server);
    }
}

/// A cluster with these tables, whose server runs.
fn running(scratch: &Scratch, bin: &Path, sql: &str) -> Server {
    let data = source(scratch, bin, sql);
    start(scratch, bin, &data, "copy")
}

fn rules(tables: &str) -> String {
    format!("version: 1\nkey: main\ntables:\n{tables}")
}

#[test]
fn a_row_that_cannot_be_masked_is_named_by_its_key() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let server = running(
        &scratch,
        &bin,
        "CREATE TABLE public.checked (id int PRIMARY KEY, name text CONSTRAINT is_quoxiz CHECK (name LIKE 'Quoxiz%'));
         INSERT INTO public.checked SELECT i, 'Quoxiz ' || i FROM generate_series(7, 9) i;
         CREATE TABLE public.distinct_names (id int PRIMARY KEY, name text UNIQUE);
         INSERT INTO public.distinct_names SELECT i, 'Quoxiz' || i FROM generate_series(1, 20) i;
         CREATE TABLE public.keys (name text PRIMARY KEY, other int);
         INSERT INTO public.keys SELECT 'Quoxiz' || i, i FROM generate_series(1, 20) i;
         CREATE DOMAIN public.brief AS text CONSTRAINT is_brief CHECK (length(value) < 12);
         CREATE TABLE public.briefs (id int PRIMARY KEY, name public.brief, n int);
         INSERT INTO public.briefs SELECT i, 'Quoxiz' || i, i FROM generate_series(1, 2000) i;
         CREATE TABLE public.lists (name text) PARTITION BY LIST (name);
         CREATE TABLE public.lists_1 PARTITION OF public.lists FOR VALUES IN ('Quoxiz');
         INSERT INTO public.lists VALUES ('Quoxiz');
         CREATE TABLE public.parents (id int PRIMARY KEY, name text UNIQUE);
         INSERT INTO public.parents SELECT i, 'Quoxiz' || i FROM generate_series(1, 20) i;
         CREATE TABLE public.children (id int PRIMARY KEY, parent text REFERENCES public.parents (name));
         INSERT INTO public.children VALUES (1, NULL), (2, 'Quoxiz7');",
    );
    let sql = |table: &str, column: &str, expression: &str| {
        rules(&format!(
            "  public.{table}: {{columns: {{{column}: {{algorithm: sql, expression: \"{expression}\"}}}}}}\n"
        ))
    };
    for (rules, wanted) in [
        (
            sql("checked", "name", "CASE id WHEN 8 THEN 'no ' || name ELSE name END"),
            vec!["public.checked", "row id=8", "is_quoxiz"],
        ),
        (
            sql("distinct_names", "name", "left(name, 7)"),
            vec!["public.distinct_names", "row id=", "distinct_names_name_key"],
        ),
        (sql("keys", "name", "left(name, 7)"), vec!["public.keys", "row ctid=(0,", "keys_pkey"]),
        (
            sql("briefs", "name", "CASE id WHEN 1234 THEN name || name ELSE name END"),
            vec!["public.briefs", "column name", "row id=1234", "is_brief"],
        ),
        (
            sql("briefs", "n", "CASE id WHEN 1500 THEN name ELSE n::text END"),
            vec!["public.briefs", "column n", "row id=1500", "no value of the column's type"],
        ),
        (
            sql("lists", "name", "upper(name)"),
            vec!["public.lists", "row ctid=(0,1)", "no partition"],
        ),
    ] {
        let failure = mask(&server, &rules).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput, "{failure:?}");
        for part in wanted {
            assert!(failure.message.contains(part), "{part}: {failure:?}");
        }
        assert!(!failure.message.contains("uoxiz1"), "{failure:?}");
        assert!(!failure.message.contains("Quoxiz"), "{failure:?}");
        assert!(!failure.hint.is_empty());
    }
    let log = std::fs::read_to_string(scratch.path("copy.log")).unwrap_or_default();
    assert!(!log.contains("uoxiz"), "{log}");
}

#[test]
fn rules_that_do_not_fit_are_problems() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let server = running(
        &scratch,
        &bin,
        "CREATE TABLE public.parents (id int PRIMARY KEY, email text UNIQUE);
         CREATE TABLE public.children (id int PRIMARY KEY, parent text REFERENCES public.parents (email));",
    );
    let one_sided = rules("  public.parents: {columns: {email: email}}\n");
    let two_ways = rules(
        "  public.parents: {columns: {email: email}}\n  \
           public.children: {columns: {parent: character-mapping}}\n",
    );
    let emptied = rules("  public.parents: {empty: true}\n");
    let unknown = rules(
        "  public.parents: {columns: {email: {algorithm: sql, expression: \"nothing(email)\"}}}\n  \
           public.children: {columns: {parent: {algorithm: sql, expression: \"lower(parent)\"}}}\n",
    );
    for (rules, wanted) in [
        (&one_sided, "refers to a masked column"),
        (&two_ways, "masked in two ways"),
        (&emptied, "empty that as well"),
        (&unknown, "nothing"),
    ] {
        let checked = check(&server, rules);
        assert_eq!(checked.problems.len(), 1, "{checked:?}");
        assert!(checked.problems[0].contains(wanted), "{checked:?}");
        let failure = mask(&server, rules).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput, "{failure:?}");
    }
    let both = rules(
        "  public.parents: {columns: {email: email}}\n  public.children: {columns: {parent: email}}\n",
    );
    assert_eq!(check(&server, &both).problems, Vec::<String>::new());
    for sql in ["CREATE DATABASE closed", "ALTER DATABASE closed ALLOW_CONNECTIONS false"] {
        server.connect().unwrap().execute(sql, DEADLINE).unwrap();
    }
    assert!(check(&server, &both).problems[0].contains("closed takes no connections"));
}

#[test]
fn a_masking_that_is_refused_ends_at_once() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let server = running(
        &scratch,
        &bin,
        "CREATE TABLE public.slow (id int PRIMARY KEY, name text);
         INSERT INTO public.slow SELECT i, 'name' FROM generate_series(1, 100) i;",
    );
    let rules = rules(
        "  public.slow: {columns: {name: {algorithm: sql, expression: \"pg_sleep(1)::text || name\"}}}\n",
    );
    let rules = Ruleset::parse(&rules).unwrap();
    let mut ticks = 0;
    let mut tick = |_: &[MaskedTable]| {
        ticks += 1;
        match ticks {
            5 => Err(Failure::new(ErrorKind::Cancelled, "enough", "")),
            _ => Ok(()),
        }
    };
    let begun = std::time::Instant::now();
    let dir = plain(&server.spec().data_dir);
    let key = Secret::new("the key");
    let done = masker::mask(&Door::of(server.spec()), &dir, &rules, &key, &mut tick);
    assert_eq!(done.unwrap_err().message, "enough");
    assert!(begun.elapsed() < Duration::from_secs(20));
}
