//! A load that recovery finds hard: whatever can be open or half done at a position of the log. Also the load of the
//! black-box test of random moments.

use std::thread::sleep;
use std::time::Duration;

/// What its source is set to, as in `postgresql.conf`.
pub const SETTINGS: &str = "wal_level = replica\nfsync = off\nsynchronous_commit = off\n\
     shared_buffers = 64MB\ncheckpoint_timeout = 30s\nmax_wal_size = 8GB\nwal_keep_size = 8GB\n\
     max_connections = 23\nmax_prepared_transactions = 17\ntrack_commit_timestamp = on\n\
     autovacuum_naptime = 1s\n";

/// What must be in the database that it works in.
pub const TABLES: &str = "
CREATE TABLE public.long (id bigserial PRIMARY KEY, tag text, v int, pad text DEFAULT repeat('x', 50));
CREATE INDEX ON public.long (tag);
CREATE TABLE public.prepared (id bigserial PRIMARY KEY, tag text);
CREATE TABLE public.locked (id int PRIMARY KEY, v int);
INSERT INTO public.locked SELECT g, 0 FROM generate_series(1, 100) g;
CREATE TABLE public.child (id bigserial PRIMARY KEY, parent int REFERENCES public.locked (id));
CREATE TABLE public.accounts (id int PRIMARY KEY, v int, pad text DEFAULT repeat('y', 80));
INSERT INTO public.accounts SELECT g, 0 FROM generate_series(1, 20000) g;
CREATE TABLE public.idx (id bigserial PRIMARY KEY, a int[], p point, k text);
CREATE INDEX ON public.idx USING gin (a); CREATE INDEX ON public.idx USING gist (p);
CREATE INDEX ON public.idx USING hash (k); CREATE INDEX ON public.idx USING brin (id);
CREATE INDEX ON public.idx USING spgist (p);
CREATE UNLOGGED TABLE public.unlogged (id serial PRIMARY KEY, x text);
CREATE TABLE public.emptied (id int PRIMARY KEY, pad text);
CREATE SEQUENCE public.numbers; CREATE TABLE public.objects (o oid);
CREATE MATERIALIZED VIEW public.seen AS SELECT id % 100 k, count(*) FROM public.accounts GROUP BY 1;";

const CHANGES: &str = "
SET lock_timeout = '2s';
DROP TABLE IF EXISTS public.d; DROP TABLE IF EXISTS public.u;
CREATE TABLE public.d AS SELECT g id, md5(g::text) t, repeat(md5(random()::text), 3) pad
  FROM generate_series(1, 3000) g;
CREATE INDEX ON public.d (t); CREATE INDEX ON public.d USING hash (t);
ALTER TABLE public.d ADD COLUMN c int DEFAULT 7; ALTER TABLE public.d ALTER COLUMN id TYPE bigint;
DELETE FROM public.d WHERE id > 2000;
TRUNCATE public.emptied; INSERT INTO public.emptied SELECT g, repeat('y', 100) FROM generate_series(1, 3000) g;
DELETE FROM public.emptied WHERE id > 700;
INSERT INTO public.idx (a, p, k)
  SELECT array[g % 50, g % 7, g], point(random() * 100, random() * 100), 'k' || g FROM generate_series(1, 700) g;
DELETE FROM public.idx WHERE id % 3 = 0;
INSERT INTO public.objects
  SELECT lo_from_bytea(0, convert_to(repeat(md5(random()::text), 300), 'UTF8')) FROM generate_series(1, 5);
SELECT lo_unlink(o) FROM (SELECT o FROM public.objects ORDER BY o LIMIT 2) some;
SELECT nextval('public.numbers') FROM generate_series(1, 50);
CREATE UNLOGGED TABLE public.u (id serial PRIMARY KEY, x text);
INSERT INTO public.u (x) SELECT 'u' FROM generate_series(1, 300); INSERT INTO public.unlogged (x) VALUES ('new');
SELECT pg_logical_emit_message(false, 'pfx', repeat('nontx', 5000));
REFRESH MATERIALIZED VIEW public.seen; REINDEX TABLE public.long;";

const MAINTENANCE: [&str; 7] = [
    "VACUUM public.emptied",
    "VACUUM public.idx",
    "VACUUM (FREEZE) public.accounts",
    "VACUUM FULL pg_class",
    "VACUUM FULL public.d",
    "VACUUM public.d",
    "CHECKPOINT",
];

/// A session: runs statements. Errors are part of the load: a lock that was not had, a table that is gone.
pub type Session = Box<dyn FnMut(&str) + Send>;

/// Works with eight sessions as long as it is to go on, and leaves prepared transactions open.
pub fn work(connect: &dyn Fn() -> Session, goes_on: &(dyn Fn() -> bool + Sync)) {
    std::thread::scope(|scope| {
        let run = |work: fn(&mut Session, u64)| {
            let mut session = connect();
            scope.spawn(move || {
                let mut turn = 0;
                while goes_on() {
                    turn += 1;
                    work(&mut session, turn);
                    session("ROLLBACK");
                }
            });
        };
        run(short);
        run(short);
        run(long);
        run(long);
        run(prepared);
        run(shared_locks);
        run(shared_locks);
        run(changes);
    });
}

fn short(session: &mut Session, turn: u64) {
    let id = turn * 7919 % 20_000 + 1;
    session(&format!("UPDATE public.accounts SET v = v + 1 WHERE id = {id}"));
    if turn.is_multiple_of(50) {
        session(&format!("UPDATE public.accounts SET v = v - 1 WHERE id % 97 = {}", id % 97));
    }
}

fn long(session: &mut Session, turn: u64) {
    let mut sql = format!(
        "BEGIN; INSERT INTO public.long (tag, v) SELECT 'L{turn}', g FROM generate_series(1, 50) g; \
         SAVEPOINT a; INSERT INTO public.long (tag, v) VALUES ('L{turn}', -1); SAVEPOINT b; \
         INSERT INTO public.long (tag, v) VALUES ('L{turn}', -2); ROLLBACK TO b; "
    );
    if turn.is_multiple_of(3) {
        sql += "CREATE TABLE public.never AS SELECT g FROM generate_series(1, 500) g; ";
    }
    for step in 0..turn % 80 {
        sql +=
            &format!("SAVEPOINT s{step}; INSERT INTO public.long (tag, v) VALUES ('s', {step}); ");
    }
    let wait = (turn * 31 % 23) as f64 / 10.0;
    sql += &format!("SELECT pg_sleep({wait}); DELETE FROM public.long WHERE v % 2 = 0; ");
    sql += if turn.is_multiple_of(3) { "ROLLBACK" } else { "COMMIT" };
    session(&sql);
}

fn prepared(session: &mut Session, turn: u64) {
    session(&format!(
        "BEGIN; INSERT INTO public.prepared (tag) VALUES ('p{turn}'); SAVEPOINT z; \
             INSERT INTO public.prepared (tag) VALUES ('sub'); \
             SELECT * FROM public.locked WHERE id = {} FOR KEY SHARE; PREPARE TRANSACTION 'p{turn}'",
        turn % 100 + 1
    ));
    sleep(Duration::from_millis(60));
    let how = if turn.is_multiple_of(4) { "ROLLBACK" } else { "COMMIT" };
    if let Some(earlier) = turn.checked_sub(9) {
        session(&format!("{how} PREPARED 'p{earlier}'"));
    }
}

fn shared_locks(session: &mut Session, turn: u64) {
    let (one, other) = (turn % 100 + 1, turn * 13 % 100 + 1);
    session(&format!(
        "SET lock_timeout = '1s'; BEGIN; SELECT * FROM public.locked WHERE id = {one} FOR KEY SHARE; \
             SAVEPOINT s; UPDATE public.locked SET v = v + 1 WHERE id = {other}; \
             INSERT INTO public.child (parent) VALUES ({one}); SAVEPOINT s2; \
             SELECT * FROM public.locked WHERE id = {other} FOR SHARE; COMMIT"
    ));
}

fn changes(session: &mut Session, turn: u64) {
    session(CHANGES);
    for statement in MAINTENANCE {
        session("SET lock_timeout = '2s'");
        session(statement);
    }
    let strategies: &[&str] = match turn % 3 {
        1 => &["CREATE DATABASE w1", "DROP DATABASE IF EXISTS w2"],
        2 => &["CREATE DATABASE w2 STRATEGY file_copy", "DROP DATABASE IF EXISTS w1"],
        _ => &["VACUUM FULL pg_proc"],
    };
    strategies.iter().for_each(|statement| session(statement));
}
