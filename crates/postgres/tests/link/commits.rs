use super::server::{PATIENCE, Server, archive_in, index_in, scratch, tools};
use jiff::Timestamp;
use offshoot_os::process::run;
use offshoot_postgres::Lsn;
use offshoot_postgres::archive::Archive;
use offshoot_postgres::commit_index::{Commit, CommitIndex};
use std::path::Path;

const SEGMENT: u64 = 1 << 20;

/// All commits that an index knows, one by one.
pub fn all(index: &CommitIndex) -> Vec<Commit> {
    let (mut commits, mut from) = (Vec::new(), Lsn(0));
    while let Some(commit) = index.first_from(from).unwrap() {
        from = commit.end;
        commits.push(commit);
    }
    commits
}

/// The commits that the database's own tool finds in whole files: (lsn, xid).
fn by_tool(archive: &Archive, log: &Path) -> Vec<(Lsn, u32)> {
    let files: Vec<_> = archive.files().unwrap().into_iter().filter(|f| !f.partial).collect();
    let (first, last) = (files.first().unwrap(), files.last().unwrap());
    let output = run(
        &tools()
            .source_spec("pg_waldump")
            .args(["--rmgr=Transaction", "--path"])
            .arg(log)
            .args([archive.name(first), archive.name(last)]),
        PATIENCE,
    )
    .unwrap();
    let text = output.stdout_text();
    let after = |line: &str, key: &str| {
        let (_, rest) = line.split_once(key)?;
        Some(rest.trim_start().split([',', ':', ';', ' ']).next()?.to_owned())
    };
    text.lines()
        .filter(|line| line.contains("desc: COMMIT"))
        .map(|line| {
            let xid = match line.contains("COMMIT_PREPARED") {
                true => after(line, "desc: COMMIT_PREPARED").unwrap(),
                false => after(line, "tx:").unwrap(),
            };
            (after(line, "lsn:").unwrap().parse().unwrap(), xid.parse().unwrap())
        })
        .collect()
}

#[test]
fn known_transactions_are_found_by_time_xid_and_position() {
    let server = Server::start(&["track_commit_timestamp = on"]);
    let place = scratch();
    let log = place.path().join("log");
    let archive = archive_in(&log, SEGMENT);
    let receiver = server.receive(&log);
    let index = index_in(&archive, &place.path().join("index"));
    server.sql("CREATE TABLE t(i int, filler text)");
    let mut known: Vec<(u32, Timestamp)> = Vec::new();
    let mut synced = Lsn(0);
    for round in 0..12 {
        let xid: u32 = server
            .sql(&format!(
                "INSERT INTO t SELECT {round}, repeat('x', 900) FROM generate_series(1, 600) \
                 RETURNING (txid_current())::text"
            ))
            .parse()
            .unwrap();
        let time = server.sql(&format!(
            "SELECT to_char(pg_xact_commit_timestamp('{xid}') AT TIME ZONE 'UTC', \
             'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
        ));
        known.push((xid, time.parse().unwrap()));
        synced = receiver.ask_now(PATIENCE).unwrap().lsn;
        assert!(index.update().unwrap() >= synced);
    }
    check(&index, &known);
    assert!(archive.files().unwrap().len() > 4);

    // The same from a cold start, from a damaged file on, and from nothing.
    for damage in [0, 1, 2] {
        drop_files(&place.path().join("index"), damage);
        let again = index_in(&archive, &place.path().join("index"));
        assert!(again.update().unwrap() >= synced);
        assert_eq!(all(&again), all(&index), "damage {damage}");
        check(&again, &known);
    }
    compare_with_tool(&archive, &log, &index);

    // Piece by piece.
    let again = index_in(&archive, &place.path().join("pieces"));
    for enough in [synced.0 - 2 * SEGMENT, synced.0 - SEGMENT].map(Lsn) {
        let reached = again.update_until(enough).unwrap();
        assert!(enough <= reached && reached < Lsn(enough.0 + SEGMENT / 2), "{enough} {reached}");
    }
    again.update().unwrap();
    assert_eq!(all(&again), all(&index));

    // What is removed is forgotten; the rest is still found.
    let keep = Lsn(archive.start(archive.files().unwrap().last().unwrap()).0);
    index.remove_before(keep).unwrap();
    assert!(archive.remove_before(keep).unwrap() > 0);
    assert!(index.first_from(Lsn(0)).unwrap().is_none_or(|first| first.end > keep));
    let again = index_in(&archive, &place.path().join("index"));
    again.update().unwrap();
    assert_eq!(all(&again), all(&index));
}

fn check(index: &CommitIndex, known: &[(u32, Timestamp)]) {
    let micro = jiff::SignedDuration::from_micros(1);
    for (xid, time) in known {
        let commit = index.by_xid(*xid).unwrap().unwrap();
        assert_eq!((commit.xid, commit.time), (*xid, *time));
        assert_eq!(index.last_not_after(*time).unwrap(), Some(commit));
        assert_ne!(index.last_not_after(*time - micro).unwrap(), Some(commit));
        assert_eq!(index.last_at_lsn(commit.lsn).unwrap(), Some(commit));
        assert_eq!(index.last_at_lsn(commit.end).unwrap(), Some(commit));
        assert_ne!(index.last_at_lsn(Lsn(commit.lsn.0 - 1)).unwrap(), Some(commit));
    }
    assert_eq!(index.by_xid(4_000_000_000).unwrap(), None);
    assert_eq!(index.last_not_after("2001-01-01T00:00:00Z".parse().unwrap()).unwrap(), None);
    assert_eq!(index.last().unwrap(), all(index).last().copied());
    assert_eq!(index.count(), all(index).len() as u64);
}

/// 0: nothing; 1: cuts a file in the middle of the index; 2: removes all.
fn drop_files(dir: &Path, damage: u32) {
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    match damage {
        0 => {}
        1 => {
            let path = &paths[paths.len() / 2];
            let length = std::fs::metadata(path).unwrap().len();
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_len(length - 1).unwrap();
        }
        _ => paths.iter().for_each(|path| std::fs::remove_file(path).unwrap()),
    }
}

fn compare_with_tool(archive: &Archive, log: &Path, index: &CommitIndex) {
    let expected = by_tool(archive, log);
    assert!(expected.len() > 10);
    let last = expected.last().unwrap().0;
    let ours: Vec<(Lsn, u32)> =
        all(index).iter().filter(|c| c.lsn <= last).map(|c| (c.lsn, c.xid)).collect();
    assert_eq!(ours, expected);
}

#[test]
fn prepared_transactions_and_all_kinds_of_commits_agree_with_the_database() {
    let server = Server::start(&[]);
    let place = scratch();
    let log = place.path().join("log");
    let archive = archive_in(&log, SEGMENT);
    let receiver = server.receive(&log);
    let index = index_in(&archive, &place.path().join("index"));
    server.sql("CREATE TABLE t(i int);;CREATE TABLE old(i int)");
    let prepared = |name: &str, what: &str| -> u32 {
        let session = server.session();
        session.rows("BEGIN").unwrap();
        session.rows(what).unwrap();
        let row = session.row("SELECT txid_current()::text").unwrap();
        session.rows(&format!("PREPARE TRANSACTION '{name}'")).unwrap();
        row[0].clone().unwrap().parse().unwrap()
    };
    let plain = prepared("plain", "INSERT INTO t VALUES (1)");
    // With dropped files, statistics, invalidations and subtransactions before its id.
    let rich = prepared(
        "rich",
        "SAVEPOINT a; CREATE TABLE gone(i int); SAVEPOINT b; INSERT INTO gone VALUES (1); \
         RELEASE b; RELEASE a; DROP TABLE old; CREATE TABLE old(j int)",
    );
    let aborted = prepared("aborted", "CREATE TABLE never(i int)");
    receiver.ask_now(PATIENCE).unwrap();
    index.update().unwrap();
    assert_eq!(index.by_xid(plain).unwrap(), None, "prepared is not committed");
    server.sql("COMMIT PREPARED 'plain';;COMMIT PREPARED 'rich';;ROLLBACK PREPARED 'aborted'");
    // A record that spans files, and a file that ends early.
    server.sql("SELECT pg_logical_emit_message(true, 'x', repeat('y', 2500000))");
    server.sql("CREATE TABLE u AS SELECT 1;;VACUUM FULL u;;TRUNCATE u;;SELECT pg_switch_wal()");
    server.sql("INSERT INTO u VALUES (1);;SELECT pg_switch_wal();;INSERT INTO u VALUES (2)");
    let synced = receiver.ask_now(PATIENCE).unwrap();
    assert!(index.update().unwrap() >= synced.lsn);
    let (first, second) =
        (index.by_xid(plain).unwrap().unwrap(), index.by_xid(rich).unwrap().unwrap());
    assert!(first.lsn < second.lsn && first.time <= second.time);
    assert_eq!(index.by_xid(aborted).unwrap(), None);
    compare_with_tool(&archive, &log, &index);
    let again = index_in(&archive, &place.path().join("index"));
    again.update().unwrap();
    assert_eq!(all(&again), all(&index));
}
