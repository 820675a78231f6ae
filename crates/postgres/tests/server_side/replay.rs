//! From a base backup over staging and recovery to a VDB.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use offshoot_postgres::Lsn;
use offshoot_postgres::check_image::check_running;
use offshoot_postgres::config::{self, Settings, VdbOptions};
use offshoot_postgres::recovery::{self, Recovered, Target, Timeline};
use offshoot_postgres::secrets::{self, Keep};
use offshoot_postgres::server::{self, Server, StopMode};
use offshoot_postgres::session::Session;
use offshoot_postgres::{access, control, settle, standby, superuser, vdb_role};
use offshoot_types::{ErrorKind, Failure};

use crate::cluster::*;
use crate::image::{check_stopped, scope};

/// A running source with an application's database, roles and a subscription.
struct Source {
    data: PathBuf,
    server: Server,
}

impl Source {
    fn start(scratch: &Scratch, bin: &Path) -> Self {
        let data = fresh(scratch, bin, "source");
        std::fs::write(
            data.join("postgresql.conf"),
            "wal_level = replica\nfsync = off\nmax_connections = 23\nautovacuum = off\n\
             checkpoint_timeout = 1h\nwork_mem = 5MB\n",
        )
        .unwrap();
        let mut spec = scratch.spec(bin, &data, "source");
        spec.superusers = vec![BOSS.to_owned()];
        let mut server = server::start(spec).unwrap();
        let mut session = server.wait_ready(DEADLINE).unwrap();
        let run = |session: &mut Session, sql: &str| session.execute(sql, DEADLINE).unwrap();
        run(&mut session, "CREATE ROLE app LOGIN PASSWORD 'app-secret'");
        run(&mut session, "CREATE ROLE \"odd \"\"name\" LOGIN");
        run(
            &mut session,
            "CREATE ROLE offshoot LOGIN REPLICATION PASSWORD 'link' VALID UNTIL '2001-01-01'",
        );
        run(&mut session, "ALTER ROLE offshoot SET default_transaction_read_only = on");
        run(&mut session, "CREATE DATABASE shop");
        let mut shop = server.connect_to("shop").unwrap();
        run(&mut shop, "CREATE TABLE public.t (i int); GRANT ALL ON public.t TO app");
        run(
            &mut shop,
            "CREATE SUBSCRIPTION sub CONNECTION 'host=127.0.0.1 port=1 dbname=x' \
             PUBLICATION p WITH (connect = false)",
        );
        Source { data, server }
    }

    /// Inserts rows in one transaction; returns the position after it.
    fn insert(&self, rows: u32) -> Lsn {
        let mut shop = self.server.connect_to("shop").unwrap();
        let sql = format!("INSERT INTO public.t SELECT generate_series(1, {rows})");
        shop.execute(&sql, DEADLINE).unwrap();
        let lsn = shop.query_column("SELECT pg_current_wal_insert_lsn()", DEADLINE).unwrap();
        // Sessions write with synchronous_commit = local, so all of it is in the files.
        lsn[0].parse().unwrap()
    }

    fn backup(&self, bin: &Path, to: &Path) {
        base_backup(&self.server, bin, to);
    }
}

fn rows(session: &mut Session) -> u64 {
    let count = session.query_column("SELECT count(*) FROM public.t", DEADLINE).unwrap();
    count[0].parse().unwrap()
}

fn wait_replayed(session: &mut Session, lsn: Lsn) -> Duration {
    let begin = Instant::now();
    loop {
        let state = standby::replay_state(session).unwrap();
        assert!(!state.paused);
        if state.replayed_lsn >= lsn {
            return begin.elapsed();
        }
        assert!(begin.elapsed() < DEADLINE, "replay stays at {state:?}, wanted {lsn}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn recover(
    scratch: &Scratch,
    bin: &Path,
    from: &Path,
    wal: &Path,
    name: &str,
    target: Target,
) -> Result<Recovered, Failure> {
    let data = scratch.copy(from, name);
    share_wal(wal, &data);
    let dir = plain(&data);
    let control = control(bin, &data);
    let spec = scratch.spec(bin, &data, name);
    recovery::run(&dir, spec, &control, target, Timeline::Latest, DEADLINE, &mut |_| true)
}

fn staged(scratch: &Scratch, bin: &Path, source: &Source) -> PathBuf {
    let staging = scratch.path("staging");
    source.backup(bin, &staging);
    let dir = plain(&staging);
    let adopted = config::adopt(&dir, bin, user().as_ref(), &Settings::new()).unwrap();
    assert_eq!(adopted.inherited["work_mem"], "5MB");
    share_wal(&source.data, &staging);
    standby::prepare(&dir, &control(bin, &staging), 64 << 20).unwrap();
    staging
}

#[test]
fn a_staging_standby_replays_what_appears_and_a_vdb_comes_of_it() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let mut source = Source::start(&scratch, &bin);
        source.insert(10);
        let staging = staged(&scratch, &bin, &source);
        let mut spec = scratch.spec(&bin, &staging, "staging");
        spec.superusers = superuser::candidates(&plain(&staging));
        assert_eq!(spec.superusers, [BOSS]);
        let mut server = server::start(spec).unwrap();
        server.wait_ready(DEADLINE).unwrap();
        let mut shop = server.connect_to("shop").unwrap();

        // The same, growing segment comes again and again; and then several segments at once.
        let mut expected = 10;
        for count in [1, 2, 250_000, 3] {
            let lsn = source.insert(count);
            share_wal(&source.data, &staging);
            let took = wait_replayed(&mut shop, lsn);
            expected += u64::from(count);
            assert_eq!(rows(&mut shop), expected);
            println!("{count} rows replayed {took:?} after they were shared");
        }
        let begin = Instant::now();
        while !server.recovering().is_some_and(|file| file.starts_with("00000001")) {
            assert!(begin.elapsed() < DEADLINE, "its title does not say what it replays");
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(shop);
        assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());

        let first = source.insert(5);
        let second = source.insert(7);
        let to = |name: &str, target| recover(&scratch, &bin, &staging, &source.data, name, target);
        // Exactly to a commit, with WAL after it.
        let mut recovered = to("first", Target::Lsn(first)).unwrap();
        assert_eq!(recovered.end_lsn, first);
        let mut shop = recovered.server.connect_to("shop").unwrap();
        assert_eq!(rows(&mut shop), expected + 5);
        shop.execute("INSERT INTO public.t VALUES (0)", DEADLINE).unwrap();
        drop(shop);
        // The source failed over: its new timeline begins where `first` ended.
        follow_new_timeline(&scratch, &bin, &staging, &recovered.server, expected + 6);
        recovered.server.stop(StopMode::Immediate, DEADLINE).unwrap();
        // Beyond what is there.
        let beyond = Lsn(second.0 + (1 << 20));
        let failure = to("beyond", Target::Lsn(beyond)).unwrap_err();
        assert_eq!(failure.code, ErrorKind::MomentUnavailable, "{}", failure.message);
        assert!(failure.message.contains(&beyond.to_string()), "{}", failure.message);
        // To the very end of the WAL: nothing after the target shows where it is.
        let recovered = to("second", Target::Lsn(second)).unwrap();
        assert_eq!(recovered.end_lsn, second);
        assert!(recovered.last_commit_micros.is_some());

        source.server.stop(StopMode::Immediate, DEADLINE).unwrap();
        make_vdb(&scratch, &bin, recovered, expected + 12);
    }
}

/// A running standby switches to a timeline that appears while it runs.
fn follow_new_timeline(scratch: &Scratch, bin: &Path, staging: &Path, new: &Server, wanted: u64) {
    let copy = scratch.copy(staging, "follower");
    standby::prepare(&plain(&copy), &control(bin, &copy), 64 << 20).unwrap();
    let mut spec = scratch.spec(bin, &copy, "follower");
    spec.superusers = vec![BOSS.to_owned()];
    let mut server = server::start(spec).unwrap();
    server.wait_ready(DEADLINE).unwrap();
    let mut shop = server.connect_to("shop").unwrap();
    assert!(rows(&mut shop) < wanted);
    // Only its own files: the old timeline continues past the point where the new one begins.
    share_wal_of(&new.spec().data_dir, &copy, "00000002");
    let begin = Instant::now();
    while rows(&mut shop) != wanted {
        assert!(begin.elapsed() < DEADLINE, "{} rows of {wanted}", rows(&mut shop));
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("the new timeline was followed after {:?}", begin.elapsed());
    drop(shop);
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
}

/// Settles, checks, starts as a VDB and connects as its users do.
fn make_vdb(scratch: &Scratch, bin: &Path, mut recovered: Recovered, rows: u64) {
    let data = recovered.server.spec().data_dir.clone();
    let dir = plain(&data);
    let mut session = recovered.server.connect().unwrap();
    let slot = "SELECT pg_create_physical_replication_slot('left_over', true)";
    session.query(slot, DEADLINE).unwrap();
    let mut shop = recovered.server.connect_to("shop").unwrap();
    // As it is at a source whose subscription works.
    shop.execute("UPDATE pg_subscription SET subenabled = true", DEADLINE).unwrap();
    drop((session, shop));
    let report = settle::settle(&mut recovered.server, &dir).unwrap();
    assert_eq!(report.disabled_logins, ["app", "odd \"name", BOSS]);
    assert_eq!(report.disabled_subscriptions, ["shop.sub"]);
    assert_eq!(report.dropped_slots, ["left_over"]);
    assert_eq!(report.warnings, Vec::<String>::new());
    let again = settle::settle(&mut recovered.server, &dir).unwrap();
    assert_eq!(again, settle::SettleReport::default());
    let all = || scope(bin, &data, |_| None);
    let findings = check_running(&recovered.server, &all(), DEADLINE, &mut |_| Ok(())).unwrap();
    assert!(findings.sound(), "{findings:?}");
    assert_eq!(findings.unchecked.is_empty(), has_amcheck(bin), "{findings:?}");
    assert!(recovered.server.stop(StopMode::Fast, DEADLINE).unwrap());
    recovery::finish(&dir).unwrap();
    assert!(check_stopped(bin, &data, &all()).unwrap().sound());
    assert_eq!(control(bin, &data).state, control::ClusterState::ShutDown);

    config::write_vdb(&dir, &control(bin, &data), &VdbOptions::default()).unwrap();
    access::write_vdb(&dir, false, None).unwrap();
    let mut spec = scratch.spec(bin, &data, "vdb");
    let port = offshoot_os::unused_port().unwrap();
    spec.tcp_port = Some(port);
    let begin = Instant::now();
    let mut server = server::start(spec).unwrap();
    let mut session = server.wait_ready(DEADLINE).unwrap();
    println!("ready after {:?}", begin.elapsed());
    let password = vdb_role::new_password();
    vdb_role::admit(&mut session, &password, false).unwrap();
    println!("a ready image is open after {:?}", begin.elapsed());
    assert_eq!(vdb_role::main_database(&mut session, None).unwrap(), "shop");
    assert_eq!(vdb_role::main_database(&mut session, Some("postgres")).unwrap(), "postgres");

    let uri = vdb_role::uri(port, &password, "shop");
    let sql = "INSERT INTO t VALUES (1); SELECT count(*) FROM t";
    assert_eq!(psql(bin, &uri, sql).unwrap(), (rows + 1).to_string());
    let sql = "SELECT count(*) FROM pg_subscription WHERE subenabled OR subslotname IS NOT NULL";
    assert_eq!(psql(bin, &uri, sql).unwrap(), "0");
    assert_eq!(psql(bin, &uri, "SHOW max_connections").unwrap(), "23");
    let wrong = vdb_role::uri(port, "wrong", "shop");
    assert!(psql(bin, &wrong, "SELECT 1").unwrap_err().contains("password authentication failed"));
    let app = format!("postgresql://app:app-secret@127.0.0.1:{port}/shop");
    assert!(psql(bin, &app, "SELECT 1").unwrap_err().contains("not permitted to log in"));
    let keep = Keep { logins: true, foreign_servers: false };
    secrets::remove(&server, &dir, keep).unwrap();
    assert_eq!(psql(bin, &app, "SELECT 1").unwrap(), "1");
    server.stop(StopMode::Fast, DEADLINE).unwrap();
    let log = std::fs::read_to_string(scratch.path("vdb.log")).unwrap();
    assert!(!log.contains(&password) && !log.contains("SCRAM-SHA-256$"), "{log}");
}

#[test]
fn a_recovery_to_consistency_or_to_the_end_and_one_that_is_cancelled() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let mut source = Source::start(&scratch, &bin);
        let before = source.insert(10);
        let staging = staged(&scratch, &bin, &source);
        let end = source.insert(20);
        source.server.stop(StopMode::Immediate, DEADLINE).unwrap();
        let to = |name: &str, target| recover(&scratch, &bin, &staging, &source.data, name, target);

        let mut recovered = to("consistent", Target::Consistent).unwrap();
        let mut shop = recovered.server.connect_to("shop").unwrap();
        assert_eq!(rows(&mut shop), 10);
        recovered.server.stop(StopMode::Immediate, DEADLINE).unwrap();

        let mut recovered = to("end", Target::EndOfWal).unwrap();
        assert_eq!(recovered.end_lsn, end);
        let mut shop = recovered.server.connect_to("shop").unwrap();
        assert_eq!(rows(&mut shop), 30);
        recovered.server.stop(StopMode::Immediate, DEADLINE).unwrap();

        let failure = to("early", Target::Lsn(before)).unwrap_err();
        assert_eq!(failure.code, ErrorKind::MomentUnavailable, "{}", failure.message);

        let data = scratch.copy(&staging, "cancelled");
        share_wal(&source.data, &data);
        let spec = scratch.spec(&bin, &data, "cancelled");
        let runtime = spec.runtime_dir.clone();
        let result = recovery::run(
            &plain(&data),
            spec,
            &control(&bin, &data),
            Target::EndOfWal,
            Timeline::Latest,
            Duration::ZERO,
            &mut |_| false,
        );
        assert!(result.is_err());
        assert!(
            !server::stop_leftover(&this_host(), &runtime, DEADLINE).unwrap(),
            "it was left running"
        );
    }
}
