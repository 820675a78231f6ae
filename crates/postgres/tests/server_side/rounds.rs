//! Many rounds end where one recovery over the same log ends, block by block.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use offshoot_connector::DataDir;
use offshoot_postgres::Lsn;
use offshoot_postgres::archive::Archive;
use offshoot_postgres::check_image::check_running;
use offshoot_postgres::config::{self, Settings};
use offshoot_postgres::recovery::{self, Target, Timeline};
use offshoot_postgres::rounds::{self, End, Point};
use offshoot_postgres::server::{self, Server, StopMode};
use offshoot_postgres::{standby, superuser};
use offshoot_types::ErrorKind;

use crate::cluster::*;
use crate::hostile_source::Source;
use crate::image::scope;

const SEGMENT: u64 = 16 << 20;
const PAGE: usize = 8192;
const LOAD: Duration = Duration::from_secs(4);

/// What was received of a source's log, and a snapshot of the standby that follows it.
struct Received {
    bin: PathBuf,
    wal: PathBuf,
    archive: Archive,
    /// A standby that was killed.
    standby: PathBuf,
    /// Nothing in its files is newer.
    begin: Lsn,
    /// The end of the log.
    end: Lsn,
}

impl Received {
    fn make(scratch: &Scratch, bin: &Path) -> Received {
        let mut source = Source::start(scratch, bin);
        let standby = scratch.path("standby");
        source.backup(bin, &standby);
        let begin = source.end();
        let dir = plain(&standby);
        config::adopt(&dir, bin, user().as_ref(), &Settings::new()).unwrap();
        share_wal(&source.data, &standby);
        standby::prepare(&dir, &control(bin, &standby), 64 << 20).unwrap();
        let mut spec = scratch.spec(bin, &standby, "standby");
        spec.superusers = superuser::candidates(&dir);
        let mut server = server::start(spec).unwrap();
        let mut session = server.wait_ready(DEADLINE).unwrap();
        let started = Instant::now();
        while standby::replay_state(&mut session).unwrap().replayed_lsn < begin {
            assert!(started.elapsed() < DEADLINE);
            std::thread::sleep(Duration::from_millis(10));
        }
        let begin = standby::replay_state(&mut session).unwrap().replayed_lsn;
        drop(session);
        server.stop(StopMode::Immediate, DEADLINE).unwrap();

        source.work(LOAD);
        // What the server of the last round writes begins in one file of the log and ends in the next.
        let end = source.end_near_end_of_file(SEGMENT);
        source.server.stop(StopMode::Immediate, DEADLINE).unwrap();
        let wal = scratch.path("wal");
        std::fs::create_dir(&wal).unwrap();
        for number in 1..=end.0 / SEGMENT {
            let name = wal_name(number);
            if source.data.join("pg_wal").join(&name).exists() {
                std::fs::copy(source.data.join("pg_wal").join(&name), wal.join(&name)).unwrap();
            }
        }
        let last = wal.join(wal_name(end.0 / SEGMENT));
        std::fs::rename(&last, last.with_extension("partial")).unwrap();
        let archive = Archive::new(Arc::new(plain(&wal)), SEGMENT).unwrap();
        Received { bin: bin.to_owned(), wal, archive, standby, begin, end }
    }

    /// Puts exactly the log from one position to another into a copy.
    fn place(&self, data: &Path, from: Lsn, to: Lsn) {
        let target = data.join("pg_wal");
        for entry in std::fs::read_dir(&target).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if name.len() == 24 || name.ends_with(".history") {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
        for number in from.0 / SEGMENT..=(to.0 - 1) / SEGMENT {
            let whole = self.wal.join(wal_name(number));
            let partial = whole.with_extension("partial");
            let mut bytes = std::fs::read(if whole.exists() { whole } else { partial }).unwrap();
            let keep = (to.0 - number * SEGMENT).min(SEGMENT) as usize;
            bytes[keep..].fill(0);
            plain(&target).write_atomic(&wal_name(number), &bytes, 0o600).unwrap();
            let path = target.join(wal_name(number));
            if let Some(user) = user() {
                std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid)).unwrap();
            }
        }
    }

    /// One round in a copy that is a standby's or a point.
    fn round(&self, scratch: &Scratch, data: &Path, end: &End) -> Point {
        let files: Arc<dyn DataDir> = Arc::new(plain(data));
        match Point::read(&*files, SEGMENT).unwrap() {
            Some(point) => {
                self.place(data, point.end().replay_from(), end.position());
                rounds::resume(&*files, SEGMENT, &point).unwrap();
            }
            None => self.place(data, control(&self.bin, data).redo_lsn, end.position()),
        }
        let spec = scratch.spec(&self.bin, data, "round");
        let point = rounds::run(&files, spec, end, DEADLINE, &|| Ok(()), &mut || true).unwrap();
        assert_eq!(Point::read(&*files, SEGMENT).unwrap().as_ref(), Some(&point));
        assert_eq!(point.end(), end);
        point
    }

    /// Opens a copy of a standby or a point at a position, as VDBs are.
    fn open(&self, scratch: &Scratch, from: &Path, name: &str, to: Lsn) -> Server {
        let data = scratch.copy(from, name);
        let files = plain(&data);
        let point = Point::read(&files, SEGMENT).unwrap();
        let begin = point.as_ref().map(|point| point.end().replay_from());
        self.place(&data, begin.unwrap_or_else(|| control(&self.bin, &data).redo_lsn), to);
        if let Some(point) = point {
            rounds::resume(&files, SEGMENT, &point).unwrap();
        }
        let control = control(&self.bin, &data);
        assert!(!control.was_opened());
        let spec = scratch.spec(&self.bin, &data, name);
        let (target, timeline) = (Target::EndOfWal, Timeline::Latest);
        let tick = &mut |_| true;
        let recovered = recovery::run(&files, spec, &control, target, timeline, DEADLINE, tick);
        let recovered = recovered.unwrap();
        assert_eq!(recovered.end_lsn, to);
        recovered.server
    }
}

fn wal_name(number: u64) -> String {
    format!("00000001{:08X}{:08X}", number / 256, number % 256)
}

/// Everything that replay writes, by path.
fn replayed_files(data: &Path) -> BTreeMap<String, PathBuf> {
    const PLACES: [&str; 7] = [
        "base",
        "global",
        "pg_xact",
        "pg_multixact/offsets",
        "pg_multixact/members",
        "pg_commit_ts",
        "pg_twophase",
    ];
    let mut found = BTreeMap::new();
    let mut open: Vec<PathBuf> = PLACES.iter().map(|place| data.join(place)).collect();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
                continue;
            }
            let path = entry.path().strip_prefix(data).unwrap().to_str().unwrap().to_owned();
            if !path.ends_with("pg_control") && !path.ends_with("pg_internal.init") {
                found.insert(path, entry.path());
            }
        }
    }
    found
}

/// Compares block by block all but the content of unlogged relations; returns how many blocks. Before 15 free space maps
/// are left out: replay may change one without writing it, and whatever stops the server, here or elsewhere, loses that.
/// They are hints, which the server corrects where they are wrong.
fn compare(one: &Path, other: &Path) -> usize {
    let (ours, theirs) = (replayed_files(one), replayed_files(other));
    let names = |files: &BTreeMap<String, PathBuf>| files.keys().cloned().collect::<BTreeSet<_>>();
    let only: Vec<String> = names(&ours).symmetric_difference(&names(&theirs)).cloned().collect();
    assert!(only.is_empty(), "only in one of the two: {only:?}");
    let version = std::fs::read_to_string(one.join("PG_VERSION")).unwrap();
    let maps_are_hints = version.trim().parse::<u32>().unwrap() < 15;
    let mut blocks = 0;
    for (path, file) in &ours {
        let relation = path.split(['_', '.']).next().unwrap();
        let is_unlogged = ours.contains_key(&format!("{relation}_init"));
        if is_unlogged && !path.ends_with("_init") || maps_are_hints && path.contains("_fsm") {
            continue;
        }
        let (a, b) = (std::fs::read(file).unwrap(), std::fs::read(&theirs[path]).unwrap());
        assert_eq!(a.len(), b.len(), "{path}");
        for (number, (a, b)) in a.chunks(PAGE).zip(b.chunks(PAGE)).enumerate() {
            let at = a.iter().zip(b).position(|(a, b)| a != b);
            assert_eq!(at, None, "block {number} of {path} differs");
            blocks += 1;
        }
    }
    blocks
}

/// What all tables hold, in all databases.
fn content(server: &Server) -> BTreeMap<String, String> {
    const TABLES: &str = "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'm', 'S') \
         AND c.relpersistence = 'p' AND n.nspname NOT LIKE 'pg_toast%' \
         AND c.relname NOT IN ('pg_authid', 'pg_statistic')";
    let mut all = BTreeMap::new();
    let mut session = server.connect().unwrap();
    let open =
        session.query_column("SELECT gid FROM pg_prepared_xacts ORDER BY 1", DEADLINE).unwrap();
    assert!(!open.is_empty());
    all.insert("prepared".to_owned(), open.join(" "));
    let databases = "SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1";
    for database in session.query_column(databases, DEADLINE).unwrap() {
        let mut session = server.connect_to(&database).unwrap();
        for table in session.query_column(TABLES, DEADLINE).unwrap() {
            // A sequence has no type of its own.
            let rows = format!(
                "SELECT md5(coalesce(string_agg(row, chr(10) ORDER BY row), '')) \
                 FROM (SELECT t::text AS row FROM (SELECT * FROM {table}) t) rows"
            );
            let digest = session.query_column(&rows, DEADLINE).unwrap().remove(0);
            all.insert(format!("{database}.{table}"), digest);
        }
    }
    all
}

fn content_of(mut server: Server) -> BTreeMap<String, String> {
    let content = content(&server);
    server.stop(StopMode::Immediate, DEADLINE).unwrap();
    content
}

/// The length of a round in bytes, of `all`: mostly short, so that much is open at its end.
fn step(turn: u64, all: u64) -> u64 {
    [1, 9000, 300_000, 5, all / 45, 70_000, all / 9][(turn % 7) as usize] + turn * 4099 % 8192
}

/// Servers of each version where `OFFSHOOT_TEST_FULL` asks for it, otherwise of the newest: each takes half a minute.
fn versions() -> Vec<PathBuf> {
    let all = bin_dirs();
    let first = if std::env::var_os("OFFSHOOT_TEST_FULL").is_some() { 0 } else { all.len() - 1 };
    all[first..].to_vec()
}

#[test]
fn many_rounds_end_where_one_recovery_ends() {
    for bin in versions() {
        let scratch = Scratch::new();
        let received = Received::make(&scratch, &bin);
        let (begin, limit) = (received.begin, received.end);
        let last = End::before(&received.archive, begin, limit).unwrap().unwrap();
        let whole = scratch.copy(&received.standby, "whole");
        let started = Instant::now();
        received.round(&scratch, &whole, &last);
        let once = started.elapsed();

        let data = scratch.copy(&received.standby, "rounds");
        let (mut count, mut at, mut turn) = (0, begin, 0);
        let started = Instant::now();
        let mut halfway = None;
        while at < last.position() {
            turn += 1;
            let limit = Lsn(at.0 + step(turn, last.position().0 - begin.0)).min(last.position());
            let Some(end) = End::before(&received.archive, at, limit).unwrap() else { continue };
            received.round(&scratch, &data, &end);
            (count, at) = (count + 1, end.position());
            if halfway.is_none() && at.0 > (begin.0 + last.position().0) / 2 {
                halfway = Some(scratch.copy(&data, "halfway"));
            }
        }
        let took = started.elapsed();
        let blocks = compare(&data, &whole);
        let megabytes = (at.0 - begin.0) >> 20;
        println!(
            "{}: {megabytes} MB in {count} rounds in {took:?}, in one in {once:?}: {blocks} blocks alike",
            bin.display()
        );
        assert!(count > 10 && blocks > 1000, "{count} rounds, {blocks} blocks");

        // What a VDB gets, from the standby, from a point long before and from the one just there.
        let to = received.end;
        let open = |from: &Path, name: &str| received.open(&scratch, from, name, to);
        let honest = content_of(open(&received.standby, "honest"));
        assert!(honest.len() > 100);
        assert_eq!(content_of(open(&halfway.unwrap(), "further")), honest);
        let mut server = open(&data, "there");
        assert_eq!(content(&server), honest);
        let all = scope(&bin, &scratch.path("there"), |_| None);
        let found = check_running(&server, &all, DEADLINE, &mut |_| Ok(())).unwrap();
        assert!(found.sound(), "{found:?}");
        server.stop(StopMode::Immediate, DEADLINE).unwrap();
        misused(&scratch, &received, &data, &last);
    }
}

/// What is no point stays none, and what is none does not become one.
fn misused(scratch: &Scratch, received: &Received, point: &Path, last: &End) {
    let again = |data: &Path| {
        let files: Arc<dyn DataDir> = Arc::new(plain(data));
        let spec = scratch.spec(&received.bin, data, "misused");
        rounds::run(&files, spec, last, DEADLINE, &|| Ok(()), &mut || true).unwrap_err()
    };
    // It was not made to go on.
    let data = scratch.copy(point, "not_resumed");
    assert_eq!(again(&data).code, ErrorKind::WrongState);
    // Its log ends elsewhere.
    let data = scratch.copy(&received.standby, "elsewhere");
    let early = Lsn((received.begin.0 + last.position().0) / 2);
    let early = End::before(&received.archive, received.begin, early).unwrap().unwrap();
    received.place(&data, control(&received.bin, &data).redo_lsn, early.position());
    let failure = again(&data);
    assert!(Point::read(&plain(&data), SEGMENT).unwrap().is_none(), "{failure}");
    // Somebody reads tables in it.
    let data = scratch.copy(point, "read");
    config::write_private(&plain(&data), &control(&received.bin, &data)).unwrap();
    assert!(Point::read(&plain(&data), SEGMENT).unwrap().is_none());
    // A base backup whose end was not replayed.
    let data = scratch.copy(&received.standby, "labelled");
    std::fs::write(data.join("backup_label"), "").unwrap();
    assert_eq!(again(&data).code, ErrorKind::WrongState);
}
