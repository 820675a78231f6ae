//! Random moments of a source under a hostile load are what PostgreSQL itself makes of a base copy and the log.
//!
//! The engine links the source while it works and makes recovery points on its own. Then moments anywhere in the log
//! are opened by command, most of them by replay from a point, and compared with an honest replay of the same log to
//! the same position: what all tables hold in all databases, prepared transactions and what becomes of them, the status
//! of transactions, multixacts and commit timestamps. The indexes are checked against their tables.
//!
//! `OFFSHOOT_TEST_FULL=all` opens hundreds of moments, over the log of one load after the other;
//! `OFFSHOOT_TEST_MOMENTS=N` as many as it says.
#![allow(clippy::unwrap_used)]

#[path = "moments/honest.rs"]
mod honest;
#[path = "../../../crates/postgres/tests/server_side/hostile_load.rs"]
mod hostile_load;
#[path = "moments/seen.rs"]
mod seen;

use anyhow::{Context, Result, ensure};
use honest::Honest;
use jiff::Timestamp;
use offshoot_api::SnapshotList;
use offshoot_connector::PlainDir;
use offshoot_domain::{Dsource, Snapshot, SnapshotKind};
use offshoot_os::{Clock, SystemClock, random_bytes};
use offshoot_postgres::Lsn;
use offshoot_postgres::archive::Archive;
use offshoot_postgres::rounds::End;
use offshoot_rig::{Database, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, in_database, other_server, with_log};
use seen::{Connect, Seen};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Moments over the log of one load; the next ones are over that of another.
const MOMENTS_A_LOAD: usize = 25;
/// How many recovery points there must be before the load ends.
const POINTS_MIN: usize = 3;
/// How long the load works at least.
const LOAD_MIN: Duration = Duration::from_secs(8);
/// How many bytes of log the load may be ahead of the recovery points.
const AHEAD_MAX: u64 = 48 << 20;
/// How far before itself a point's replay begins, at most: a record, and the checkpoint before it.
const BEFORE_POINT_MAX: u64 = 1 << 20;
const SEGMENT_BYTES: u64 = 16 << 20;

#[test]
fn random_moments_are_what_an_honest_replay_shows() {
    open_moments(find_newest().unwrap(), moments(5, 500));
}

/// The same on another major version.
macro_rules! on_another_version {
    ($module:ident, $major:literal, $needs:literal) => {
        mod $module {
            mod whole {
                #[test]
                #[ignore = $needs]
                fn random_moments_are_what_an_honest_replay_shows() {
                    crate::open_moments(crate::other_server($major), crate::moments(5, 100));
                }
            }
        }
    };
}

on_another_version!(needs_postgres_13, 13, "needs PostgreSQL 13 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_14, 14, "needs PostgreSQL 14 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_16, 16, "needs PostgreSQL 16 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_17, 17, "needs PostgreSQL 17 in OFFSHOOT_TEST_PG_BINS");
on_another_version!(needs_postgres_18, 18, "needs PostgreSQL 18 in OFFSHOOT_TEST_PG_BINS");

/// How many moments to open.
fn moments(usual: usize, full: usize) -> usize {
    let said = std::env::var("OFFSHOOT_TEST_MOMENTS").ok();
    let full = if std::env::var("OFFSHOOT_TEST_FULL").is_ok() { full } else { usual };
    said.map_or(full, |text| text.parse().expect("OFFSHOOT_TEST_MOMENTS is a number"))
}

fn open_moments(bin_dir: PathBuf, moments: usize) {
    let began = SystemClock.elapsed();
    let mut opened = Opened::default();
    while opened.all < moments {
        let settings = hostile_load::SETTINGS.lines().filter_map(|line| line.split_once(" = "));
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let options = SourceOptions { bin_dir: bin_dir.clone(), scale: 0, settings };
        let mut bed = Testbed::with(options).unwrap();
        let here = MOMENTS_A_LOAD.min(moments - opened.all);
        let course = over_one_load(&mut bed, here, &mut opened);
        with_log(&bed.engine, course).unwrap();
    }
    println!("{}: {opened:?} in {:?}", bin_dir.display(), SystemClock.elapsed() - began);
    assert!(2 * opened.from_points > opened.all, "points are what is tried here: {opened:?}");
}

/// What was opened and compared.
#[derive(Debug, Default)]
struct Opened {
    all: usize,
    /// By replay from a recovery point.
    from_points: usize,
    /// Without any replay: a ready image has the same commits.
    as_they_were: usize,
    /// Milliseconds that they took to open, altogether.
    took_ms: u64,
}

fn over_one_load(bed: &mut Testbed, moments: usize, opened: &mut Opened) -> Result<()> {
    bed.source.connect("postgres")?.execute("CREATE DATABASE shop")?;
    bed.source.connect("shop")?.execute(hostile_load::TABLES)?;
    let (honest, log) = work(bed)?;
    let megabytes = (log.to.0 - log.from.0) >> 20;
    println!("{megabytes} MB of log from {} to {}", log.from, log.to);
    for number in 0..moments {
        let moment = log.moment(number)?;
        one_moment(bed, &honest, &moment, opened).with_context(|| format!("{moment:?}"))?;
    }
    check_points(bed)
}

/// All of them are made by rounds, not snapshots of staging, from which replay begins at the source's last checkpoint.
fn check_points(bed: &mut Testbed) -> Result<()> {
    let list: SnapshotList = bed.engine.ask(["snapshot", "list", "prod"])?;
    let failed = list.snapshots.iter().find(|one| one.error.is_some());
    ensure!(failed.is_none(), "{failed:?}");
    bed.engine.stop()?;
    let catalog = bed.catalog()?;
    let prod: Dsource = catalog.find_named("prod")?.context("a dSource")?;
    let points: Vec<Snapshot> = catalog.list_of(prod.id)?;
    let points = points.iter().filter(|one| one.kind == SnapshotKind::RecoveryPoint);
    let before = points.map(|one| one.position.log.bytes_since(one.replay_from));
    let before: Vec<u64> = before.collect();
    println!("{} recovery points", before.len());
    ensure!(before.iter().all(|bytes| *bytes < BEFORE_POINT_MAX), "{before:?}");
    Ok(())
}

/// The log that the moments are in.
struct Log {
    archive: Archive,
    /// Both the engine's first snapshot and the honest copy open from here on.
    from: Lsn,
    to: Lsn,
    began: Timestamp,
    ended: Timestamp,
}

/// What is asked for.
#[derive(Debug)]
enum Moment {
    /// The end of a record.
    Lsn(Lsn),
    /// A time of the load.
    At(Timestamp),
}

impl Log {
    /// A moment anywhere; every fifth is a time.
    fn moment(&self, number: usize) -> Result<Moment> {
        let random = u64::from_le_bytes(random_bytes());
        if number % 5 == 4 {
            let range = self.ended.as_microsecond() - self.began.as_microsecond();
            let after = random % u64::try_from(range)?;
            let at = self.began.as_microsecond() + i64::try_from(after)?;
            return Ok(Moment::At(Timestamp::from_microsecond(at)?));
        }
        loop {
            let limit = Lsn(self.from.0 + random % (self.to.0 - self.from.0));
            if let Some(end) = End::before(&self.archive, self.from, limit)? {
                return Ok(Moment::Lsn(end.position()));
            }
        }
    }
}

/// What the load is to do.
#[derive(Default)]
struct Load {
    linked: AtomicBool,
    paused: AtomicBool,
    stopped: AtomicBool,
}

impl Load {
    fn goes_on(&self) -> bool {
        // Log from before the link is not what is tried here, and there would be gigabytes of it.
        if !self.linked.load(Ordering::Relaxed) {
            SystemClock.sleep(Duration::from_millis(50));
        }
        while self.paused.load(Ordering::Relaxed) && !self.stopped.load(Ordering::Relaxed) {
            SystemClock.sleep(Duration::from_millis(20));
        }
        !self.stopped.load(Ordering::Relaxed)
    }
}

/// Links the source while it works, and has it work until there are recovery points.
fn work(bed: &Testbed) -> Result<(Honest<'_>, Log)> {
    let load = Load::default();
    let connect = || -> hostile_load::Session {
        let session = bed.source.connect("shop").unwrap();
        Box::new(move |sql| drop(session.execute(sql)))
    };
    let followed = std::thread::scope(|scope| {
        let followed = scope.spawn(|| {
            let followed = follow(bed, &load);
            load.stopped.store(true, Ordering::Relaxed);
            followed
        });
        hostile_load::work(&connect, &|| load.goes_on());
        followed.join().unwrap_or_else(|_| anyhow::bail!("following it panicked"))
    });
    let (honest, from, began) = followed?;
    let source = bed.source.connect("postgres")?;
    let open = source.number("SELECT count(*) FROM pg_prepared_xacts")?;
    ensure!(open > 0, "the load leaves prepared transactions open");
    let (to, ended) = (position(&source)?, Timestamp::now());
    // More log, so that the last moments are followed by some, and all of it is written.
    source.execute("CREATE TABLE end_of_load (); SELECT pg_switch_wal(); CHECKPOINT")?;
    source.execute("DROP TABLE end_of_load")?;
    let files = PlainDir::new(bed.source.data_dir().join("pg_wal"));
    let archive = Archive::new(Arc::new(files), SEGMENT_BYTES)?;
    Ok((honest, Log { archive, from, to, began, ended }))
}

fn position(source: &Database) -> Result<Lsn> {
    Ok(source.text("SELECT pg_current_wal_insert_lsn()")?.parse()?)
}

/// Copies and links the working source, and waits for recovery points. The load waits, too, where the engine is busy:
/// there would be much more log on a slow machine.
fn follow<'a>(bed: &'a Testbed, load: &Load) -> Result<(Honest<'a>, Lsn, Timestamp)> {
    let honest = Honest::copy(&bed.source)?;
    bed.link("prod")?;
    load.linked.store(true, Ordering::Relaxed);
    let policy = ["policy", "set", "prod", "--snapshot-every", "1d", "--open-within", "1s"];
    bed.engine.command(policy)?;
    let source = bed.source.connect("postgres")?;
    let (from, began) = (position(&source)?, Timestamp::now());
    let clock = SystemClock;
    let linked = clock.elapsed();
    loop {
        let points = points(bed)?;
        if clock.elapsed() > linked + LOAD_MIN && points.len() >= POINTS_MIN {
            return Ok((honest, from, began));
        }
        let last = points.into_iter().fold(from, Lsn::max);
        ensure!(clock.elapsed() < linked + PATIENCE, "no recovery point after {last}");
        let ahead = position(&source)?.0.saturating_sub(last.0);
        load.paused.store(ahead > AHEAD_MAX, Ordering::Relaxed);
        clock.sleep(Duration::from_millis(200));
    }
}

/// Where the recovery points are.
fn points(bed: &Testbed) -> Result<Vec<Lsn>> {
    let list: SnapshotList = bed.engine.ask(["snapshot", "list", "prod"])?;
    let of_kind =
        |one: &offshoot_api::Snapshot| one.kind == offshoot_api::SnapshotKind::RecoveryPoint;
    let positions = list.snapshots.into_iter().filter(of_kind).filter_map(|one| one.lsn);
    positions.map(|text| Ok(text.parse()?)).collect()
}

fn one_moment(bed: &Testbed, honest: &Honest, moment: &Moment, opened: &mut Opened) -> Result<()> {
    let (option, value) = match moment {
        Moment::Lsn(lsn) => ("--lsn", lsn.to_string()),
        Moment::At(at) => ("--at", at.to_string()),
    };
    let asked = [option, &value, "--superuser", "--set", "autovacuum=off"];
    let (vdb, server) = std::thread::scope(|scope| {
        let vdb = scope.spawn(|| bed.provision("copy", "prod", &asked));
        // Its server ends with the thread that started it.
        let server = match moment {
            Moment::Lsn(lsn) => Some(honest.replay(*lsn)),
            Moment::At(_) => None,
        };
        (vdb.join().unwrap_or_else(|_| anyhow::bail!("provisioning panicked")), server)
    });
    let vdb = vdb?;
    let at: Lsn = vdb.moment.lsn.as_deref().context("a position")?.parse()?;
    let server = server.unwrap_or_else(|| honest.replay(at))?;
    ensure!(matches!(moment, Moment::At(_)) || value == at.to_string(), "it opened {at}");
    let replayed = vdb.timings.recover_ms > 0;
    opened.all += 1;
    opened.took_ms += vdb.timings.total_ms;
    opened.as_they_were += usize::from(!replayed);
    let nearest = points(bed)?.into_iter().filter(|one| *one <= at).max();
    opened.from_points += usize::from(replayed && nearest.is_some());

    let connect = |database: &str| Database::connect(&in_database(&vdb.uri, database));
    let honestly = |database: &str| server.connect(database);
    let sides: (Connect<'_>, Connect<'_>) = (&connect, &honestly);
    compare(sides, replayed, Seen::by)?;
    if replayed {
        let next = seen::Next::by(&server.connect("postgres")?)?;
        let status = |connect: Connect<'_>| seen::status_files(&connect("postgres")?, &next);
        let (ours, theirs) = (status(sides.0)?, status(sides.1)?);
        ensure!(ours == theirs, "the status of transactions: {ours:?}, not {theirs:?}");
    }
    compare(sides, replayed, Seen::with_prepared_committed)?;
    seen::check_structure(bed.source.bin_dir(), &vdb.uri, &connect)?;
    println!("{}: {moment:?} in {} ms, replayed: {replayed}", opened.all, vdb.timings.total_ms);
    bed.engine.command(["vdb", "delete", "copy"]).map(drop)?;
    Ok(())
}

/// Compares what a VDB shows with what the honest server does.
fn compare(
    (ours, theirs): (Connect<'_>, Connect<'_>),
    exactly: bool,
    look: fn(Connect<'_>) -> Result<Seen>,
) -> Result<()> {
    let (seen, honest) = std::thread::scope(|scope| {
        let seen = scope.spawn(|| look(ours));
        let honest = look(theirs);
        (seen.join().unwrap_or_else(|_| anyhow::bail!("the VDB's side panicked")), honest)
    });
    let (seen, honest) = (seen?, honest?);
    let differing = seen.differing(&honest, exactly);
    if let Some(first) = differing.first() {
        let rows = seen.rows_of_one(first, ours, theirs)?;
        anyhow::bail!("tables differ: {differing:?}\n{rows}");
    }
    Ok(())
}
