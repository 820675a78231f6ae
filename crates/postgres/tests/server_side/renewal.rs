//! Masking what has changed gives what masking everything gives.

use crate::cluster::*;
use crate::image::{check_stopped, scope};
use crate::masking::{
    RULES, SOURCE, add_other, betrayers, content, finish, mask, one, source, start,
};
use offshoot_connector::{Ancestor, Masked, Renewed};
use offshoot_domain::{MaskFacts, Secret};
use offshoot_masking::Ruleset;
use offshoot_postgres::check_image::check_running;
use offshoot_postgres::masker::{self, Doors, States};
use offshoot_postgres::server::{Server, StopMode};
use offshoot_postgres::wire::Door;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BLOCK: usize = 8192;

/// More tables: with many pages, with keys that are masked, and with rules that look elsewhere.
const MORE: &str = "CREATE TABLE public.parcels (id bigint PRIMARY KEY, owner text, weight numeric, note text);
    INSERT INTO public.parcels SELECT i, 'Quoxiz owner ' || i, i / 7.0, repeat('note ', 20)
      FROM generate_series(1, 20000) i;
    CREATE TABLE public.keyed (name text, number int, other text, PRIMARY KEY (name, number));
    INSERT INTO public.keyed SELECT 'Quoxiz key ' || i, i, repeat('x', 200) FROM generate_series(1, 3000) i;
    CREATE TABLE public.elsewhere (id int PRIMARY KEY, name text);
    INSERT INTO public.elsewhere SELECT i, 'Quoxiz there ' || i FROM generate_series(1, 2000) i;
    CREATE TABLE public.sometimes (id int PRIMARY KEY, name text, country text);
    CREATE TABLE public.loose (line text, at int); INSERT INTO public.loose VALUES ('a', 1);
    INSERT INTO public.sometimes SELECT i, 'Quoxiz some ' || i, 'DE' FROM generate_series(1, 3000) i;
    CREATE MATERIALIZED VIEW public.heavy AS SELECT owner, weight FROM public.parcels WHERE weight > 2800;
    CREATE SEQUENCE public.alone START 5;";

const MORE_RULES: &str = "
  public.parcels:
    columns: {owner: character-mapping}
  public.keyed:
    columns: {name: character-mapping}
  public.elsewhere:
    columns: {name: {algorithm: sql, expression: \"(SELECT 'n' || pg_catalog.count(*) FROM public.plain)\"}}
  public.sometimes:
    where: \"sometimes.country <> 'CH'\"
    columns: {name: character-mapping}
";

/// A database that no rule meets: it is as at the source, also its materialized view.
fn add_third(scratch: &Scratch, bin: &Path, data: &Path) {
    let mut server = start(scratch, bin, data, "third");
    server.connect().unwrap().execute("CREATE DATABASE third", DEADLINE).unwrap();
    let sql = "CREATE TABLE public.items (id serial PRIMARY KEY, t text);
        INSERT INTO public.items (t) SELECT 'item' FROM generate_series(1, 3000);
        CREATE MATERIALIZED VIEW public.totals AS SELECT count(*) AS n FROM public.items";
    server.connect_to("third").unwrap().execute(sql, DEADLINE).unwrap();
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
}

const OF_THIRD: &str = "UPDATE public.items SET t = t || '.' WHERE id = 5;
    DELETE FROM public.items WHERE id = (SELECT max(id) FROM public.items);
    INSERT INTO public.items (t) VALUES ('new'), ('newer')";

/// What happens at the source, in turn.
const ROUNDS: [&str; 4] = [
    "ALTER TABLE public.people DISABLE TRIGGER never;
     UPDATE public.people SET name = 'Quoxiz Other', country = NULL WHERE id IN (7, 1700);
     INSERT INTO public.people (email, name, number) VALUES ('quoxiz-new@quoxiz.example', 'Quoxiz New', 9000000000000000001);
     ALTER TABLE public.people ENABLE ALWAYS TRIGGER never;
     UPDATE public.orders SET note = 'other', buyer = 'quoxiz1600@quoxiz.example' WHERE id IN (5, 2900);
     DELETE FROM public.orders WHERE id = 10;
     INSERT INTO public.orders (buyer, note) VALUES ('quoxiz-new@quoxiz.example', 'new');
     UPDATE public.houses SET first_room = NULL WHERE number = '300';
     DELETE FROM public.rooms WHERE id = 300; DELETE FROM public.houses WHERE number = '300';
     INSERT INTO public.houses VALUES ('Quoxiz road x', '301');
     INSERT INTO public.rooms VALUES (301, 'Quoxiz road x', '301', 'Quoxiz tenant x', int4range(9000, 9001));
     DELETE FROM public.visits WHERE who = 'Quoxiz visitor 7';
     INSERT INTO public.visits VALUES ('2020-05-05', 'Quoxiz visitor y');
     INSERT INTO public.events VALUES ('Quoxiz event y', '2020-05-05', 'what y');
     INSERT INTO public.dogs VALUES (51, 'Quoxiz dog', 'Quoxiz owner');
     UPDATE public.plain SET text = 'stays otherwise' WHERE id = 3; DELETE FROM public.plain WHERE id = 4;
     INSERT INTO public.audit VALUES (501, 'Quoxiz line');
     INSERT INTO public.empty VALUES (1, 'Quoxiz first');
     UPDATE public.parcels SET owner = 'Quoxiz moved', weight = 2900 WHERE id IN (3, 19000);
     DELETE FROM public.parcels WHERE id BETWEEN 100 AND 110;
     INSERT INTO public.parcels VALUES (20001, E'Quoxiz\\t\\\\ tab', NULL, NULL);
     UPDATE public.keyed SET number = -number WHERE number = 9; DELETE FROM public.keyed WHERE number = 2000;
     UPDATE public.sometimes SET country = 'CH', name = 'some two' WHERE id = 2;
     INSERT INTO public.loose VALUES ('b', 2);
     COMMENT ON TABLE public.orders IS 'Quoxiz comment again';
     SELECT lo_from_bytea(0, 'Quoxiz other large object');
     SELECT nextval('public.alone'), nextval('public.alone');
     REFRESH MATERIALIZED VIEW public.names",
    "SELECT 1",
    "UPDATE public.parcels SET note = 'all' WHERE id % 2 = 0; VACUUM FULL public.keyed;
     UPDATE public.parcels SET note = (SELECT string_agg(md5(n::text || id), '') FROM generate_series(1, 300) n) WHERE id % 1000 = 5;
     TRUNCATE public.empty; UPDATE public.sometimes SET country = 'DE', name = 'Quoxiz back' WHERE id = 2;
     INSERT INTO public.visits VALUES ('2021-05-05', 'Quoxiz visitor z')",
    // On every page something, and on most of them more than has changed. Of values out of line some others, and some that stay
    // in rows that change.
    "UPDATE public.parcels SET owner = 'Quoxiz anywhere ' || id WHERE id % 100 = 7;
     SELECT count(*) FROM (SELECT FROM public.parcels WHERE id % 3 = 0 FOR KEY SHARE) locked;
     BEGIN; UPDATE public.parcels SET owner = 'Quoxiz never' WHERE id % 100 = 8; ROLLBACK;
     UPDATE public.parcels SET note = reverse(note) WHERE id % 2000 = 5;
     UPDATE public.parcels SET weight = 1 WHERE id % 2000 = 1005;
     DELETE FROM public.parcels WHERE id % 500 = 11; VACUUM (FREEZE) public.parcels; VACUUM (FREEZE) public.keyed",
];
/// The most rows that may be written of `parcels` in each.
const WRITTEN: [u64; 4] = [100, 100, 20_000, 400];

fn rules() -> String {
    RULES.to_owned() + MORE_RULES
}

/// The blocks of a file that are not the same below two directories; none where one has no such file.
fn differing(one: &Path, other: &Path, path: &str) -> io::Result<Option<Vec<Range<u64>>>> {
    let read = |dir: &Path| match std::fs::read(dir.join(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => bytes.map(Some),
    };
    let (Some(a), Some(b)) = (read(one)?, read(other)?) else { return Ok(None) };
    let (mut a, mut b) = (a.chunks(BLOCK), b.chunks(BLOCK));
    let mut found = Vec::new();
    for number in 0.. {
        match (a.next(), b.next()) {
            (None, None) => break,
            (one, other) if one != other => found.push(number..number + 1),
            _ => {}
        }
    }
    Ok(Some(found))
}

fn opened(scratch: &Scratch, bin: &Path, of: &Path, name: &str) -> Server {
    start(scratch, bin, &scratch.copy(of, name), name)
}

/// Brings the masked copy that a server is on up to date.
fn renew(
    scratch: &Scratch,
    bin: &Path,
    (before, now): (&Path, &Path),
    masked: &Server,
    earlier: &MaskFacts,
) -> Renewed {
    let number = now.file_name().unwrap().to_string_lossy().into_owned();
    let servers = ["left", "right"].map(|side| format!("{side}-{number}"));
    let mut left = opened(scratch, bin, before, &servers[0]);
    let mut right = opened(scratch, bin, now, &servers[1]);
    let doors = [masked, &left, &right].map(|server| Door::of(server.spec()));
    let of_both = |path: &str| differing(before, now, path);
    let mut given = false;
    let mut ancestors = || {
        let first = !std::mem::replace(&mut given, true);
        let differing = Box::new(|_: &str| Ok(Some(Vec::new())));
        let files = Arc::new(plain(before));
        Ok(first.then_some(Ancestor { files, differing, of_source: true }))
    };
    let states = States {
        files: (&plain(before), &plain(now)),
        differing: &of_both,
        ancestors: &mut ancestors,
    };
    let rules = Ruleset::parse(&rules()).unwrap();
    let renewed = masker::renew(
        Doors { masked: &doors[0], before: &doors[1], now: &doors[2] },
        &plain(&masked.spec().data_dir),
        (states, earlier),
        (&rules, &Secret::new("the key")),
        &mut |_| Ok(()),
    );
    for server in [&mut left, &mut right] {
        server.stop(StopMode::Immediate, DEADLINE).unwrap();
    }
    for name in servers {
        std::fs::remove_dir_all(scratch.path(&name)).unwrap();
    }
    renewed.unwrap()
}

/// All that the masked databases show.
fn shown(server: &Server) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (table, (rows, sum)) in content(server) {
        all.insert(table.to_owned(), format!("{rows} {sum}"));
    }
    for database in ["shop", "other", "third"] {
        let mut session = server.connect_to(database).unwrap();
        for table in [
            "audit",
            "empty",
            "parcels",
            "keyed",
            "elsewhere",
            "sometimes",
            "heavy",
            "loose",
            "clients",
            "items",
            "totals",
        ] {
            let there = format!(
                "SELECT count(*) FROM pg_class WHERE relname = '{table}' AND relkind <> 'i'"
            );
            if one(&mut session, &there) == "1" {
                let sql = format!(
                    "SELECT count(*) || ' ' || md5(coalesce(string_agg(t::text, ' ' ORDER BY t::text), '')) \
                     FROM public.{table} t"
                );
                all.insert(table.to_owned(), one(&mut session, &sql));
            }
        }
        let sequences = "SELECT coalesce(string_agg(concat_ws(' ', sequencename, last_value), ', ' \
            ORDER BY schemaname, sequencename), '') FROM pg_sequences";
        all.insert(format!("sequences of {database}"), one(&mut session, sequences));
        let left = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'offshoot%'";
        assert_eq!(one(&mut session, left), "0");
        let large = "SELECT count(*) FROM pg_largeobject_metadata";
        assert_eq!(one(&mut session, large), "0");
    }
    all
}

/// The state of the source after something happened.
fn after(scratch: &Scratch, bin: &Path, of: &Path, sql: &str, name: &str) -> PathBuf {
    let mut server = opened(scratch, bin, of, name);
    let mut shop = server.connect_to("shop").unwrap();
    for statement in sql.split(";\n").flat_map(|lines| lines.split("; ")) {
        shop.execute(statement, DEADLINE).unwrap();
    }
    drop(shop);
    server.connect_to("third").unwrap().execute(OF_THIRD, DEADLINE).unwrap();
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
    scratch.path(name)
}

fn done(renewed: Renewed) -> Masked {
    match renewed {
        Renewed::Done(masked) => masked,
        Renewed::InFull(why) => panic!("it was masked in full: {why}"),
    }
}

#[test]
fn what_has_changed_is_masked_as_if_everything_were() {
    for (version, bin) in bin_dirs().into_iter().enumerate() {
        // Of other versions the first round, which has most in it.
        let rounds = if version == 0 { ROUNDS.len() } else { 1 };
        let scratch = Scratch::new();
        let mut before = source(&scratch, &bin, &format!("{SOURCE}{MORE}"));
        add_other(&scratch, &bin, &before);
        add_third(&scratch, &bin, &before);
        let mut server = opened(&scratch, &bin, &before, "masked");
        let mut earlier = mask(&server, &rules()).unwrap();
        finish(&mut server);
        let mut server = start(&scratch, &bin, &scratch.path("masked"), "renewed");
        for (number, sql) in ROUNDS.iter().take(rounds).enumerate() {
            let now = after(&scratch, &bin, &before, sql, &format!("now-{number}"));
            let renewed = renew(&scratch, &bin, (&before, &now), &server, &earlier.facts);
            let renewed = done(renewed);
            let mut full = opened(&scratch, &bin, &now, &format!("full-{number}"));
            let all = mask(&full, &rules()).unwrap();
            assert_eq!(shown(&server), shown(&full), "{} round {number}", bin.display());
            assert_eq!(renewed.facts.tables, all.facts.tables);
            assert_eq!(renewed.facts.columns, all.facts.columns);
            let rows = |masked: &Masked, name: &str| {
                masked.tables.iter().find(|one| one.name == name).map(|one| one.rows).unwrap()
            };
            println!(
                "{} round {number}: {} of {} values",
                bin.display(),
                renewed.values,
                all.values
            );
            let parcels = rows(&renewed, "shop.public.parcels");
            assert!(parcels <= WRITTEN[number], "round {number}: {parcels} rows were written");
            full.stop(StopMode::Immediate, DEADLINE).unwrap();
            (before, earlier) = (now, renewed);
        }
        finish(&mut server);
        let data = scratch.path("masked");
        assert_eq!(betrayers(&data), Vec::<String>::new(), "{}", bin.display());
        let all = scope(&bin, &data, |_| None);
        assert!(check_stopped(&bin, &data, &all).unwrap().sound());
        let server = start(&scratch, &bin, &data, "opened");
        let found = check_running(&server, &all, DEADLINE, &mut |_| Ok(())).unwrap();
        assert!(found.sound(), "{found:?}");
    }
}

#[test]
fn where_more_than_rows_has_changed_everything_is_masked() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let before = source(&scratch, &bin, &format!("{SOURCE}{MORE}"));
    add_other(&scratch, &bin, &before);
    add_third(&scratch, &bin, &before);
    let server = opened(&scratch, &bin, &before, "masked");
    let earlier = mask(&server, &rules()).unwrap();
    for (number, (sql, why)) in [
        ("ALTER TABLE public.plain ADD more text", "pg_attribute"),
        ("CREATE ROLE somebody", "pg_authid"),
        ("ALTER DATABASE shop SET work_mem = '5MB'", "pg_db_role_setting"),
        ("CREATE OR REPLACE FUNCTION public.shout(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1'", "pg_proc"),
        ("CREATE TABLE public.another (id int)", "pg_attribute"),
        ("GRANT SELECT ON public.plain TO pg_monitor", "pg_class"),
    ]
    .into_iter()
    .enumerate()
    {
        let now = after(&scratch, &bin, &before, sql, &format!("now-{number}"));
        match renew(&scratch, &bin, (&before, &now), &server, &earlier.facts) {
            Renewed::InFull(told) => assert!(told.contains(why), "{sql}: {told}"),
            Renewed::Done(_) => panic!("{sql}: only what has changed was masked"),
        }
    }
}
