use super::server::{Server, give_to_tools, scratch, tools};
use offshoot_connector::PlainDir;
use offshoot_postgres::Lsn;
use offshoot_postgres::base_backup::{
    BackupProgress, BaseBackupRequest, SILENCE, TABLESPACES_DIR, take_base_backup,
    verify_base_backup,
};
use offshoot_types::{ErrorKind, Failure};
use std::path::Path;
use std::sync::Mutex;

fn back_up(
    server: &Server,
    target: &Path,
    progress: &dyn Fn(BackupProgress),
    cancelled: &dyn Fn() -> bool,
) -> Result<offshoot_postgres::base_backup::BaseBackup, Failure> {
    let (tools, source, facts) = (tools(), server.source("linker"), server.facts());
    if !target.exists() {
        tools.own_directory(target).unwrap();
    }
    let request = BaseBackupRequest {
        tools: &tools,
        source: &source,
        facts: &facts,
        target,
        files: &PlainDir::new(target),
        silence: SILENCE,
    };
    let backup = take_base_backup(&request, progress, cancelled)?;
    // It was copied as this process's user; the caller gives it to the servers' user.
    give_to_tools(target);
    Ok(backup)
}

fn entries(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

/// Asserts that only directories are there (`archive_status`, from 17 on `summaries`), and no log.
fn assert_no_log(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        assert!(path.is_dir(), "{} is left", path.display());
    }
}

/// What the database's tool says about a copy; `None` if this installation's tool does not run.
fn verified(target: &Path) -> Option<Result<(), Failure>> {
    match verify_base_backup(&tools(), target, &|| false) {
        Err(failure) if failure.code == ErrorKind::HostUnprepared => {
            println!("not verified: {failure}");
            None
        }
        result => Some(result),
    }
}

#[test]
fn a_backup_with_tablespaces_verifies_and_starts_anywhere() {
    let mut server = Server::start(&["wal_keep_size = 100MB"]);
    let outside = scratch();
    let location = outside.path().join("fast=disk");
    std::fs::create_dir(&location).unwrap();
    give_to_tools(&location);
    server.sql(&format!(
        "CREATE TABLESPACE fast LOCATION '{}';;\
         CREATE TABLE t TABLESPACE fast AS SELECT g AS id FROM generate_series(1, 5000) g",
        location.display()
    ));
    let place = scratch();
    let target = place.path().join("copy");
    let seen = Mutex::new(Vec::new());
    let done = back_up(&server, &target, &|now| seen.lock().unwrap().push(now), &|| false).unwrap();
    assert!(done.start > Lsn(0) && done.end > done.start && done.timeline == 1);
    assert!(done.bytes > 1 << 20, "{done:?}");
    let last = *seen.lock().unwrap().last().unwrap();
    assert_eq!((last.done_bytes, last.total_bytes), (done.bytes, done.bytes));
    assert_no_log(&target.join("pg_wal"));

    let oid = server.facts().tablespaces[0].oid.to_string();
    let link = std::fs::read_link(target.join("pg_tblspc").join(&oid)).unwrap();
    assert_eq!(link, Path::new("..").join(TABLESPACES_DIR).join(&oid));
    verified(&target).unwrap_or(Ok(())).unwrap();

    // Moved as a whole, with the log it needs, it starts; the source's directories may be gone.
    server.sql("CHECKPOINT;;SELECT pg_switch_wal()");
    let moved = scratch();
    std::fs::rename(&target, moved.path().join("data")).unwrap();
    for entry in std::fs::read_dir(server.data().join("pg_wal")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let copy = moved.path().join("data/pg_wal").join(path.file_name().unwrap());
            std::fs::copy(&path, &copy).unwrap();
            give_to_tools(&copy);
        }
    }
    server.stop(false);
    std::fs::remove_dir_all(&location).unwrap();
    let copy = Server::on(moved, &[]);
    assert_eq!(copy.sql("SELECT count(*) FROM t"), "5000");
}

#[test]
fn a_damaged_copy_does_not_verify() {
    let server = Server::start(&[]);
    let place = scratch();
    let target = place.path().join("copy");
    back_up(&server, &target, &|_| {}, &|| false).unwrap();
    let file = target.join("PG_VERSION");
    let mut text = std::fs::read(&file).unwrap();
    text[0] ^= 1;
    std::fs::write(&file, text).unwrap();
    let Some(result) = verified(&target) else { return };
    let failure = result.unwrap_err();
    assert_eq!(failure.code, ErrorKind::DataDamaged);
    assert!(failure.message.contains("PG_VERSION"), "{failure}");
}

#[test]
fn a_source_that_fails_to_archive_does_not_hold_the_backup_up() {
    let server = Server::start(&["archive_mode = on", "archive_command = 'false'"]);
    let place = scratch();
    let target = place.path().join("copy");
    let began = std::time::Instant::now();
    back_up(&server, &target, &|_| {}, &|| false).unwrap();
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    assert_no_log(&target.join("pg_wal"));
    verified(&target).unwrap_or(Ok(())).unwrap();
}

#[test]
fn a_cancelled_backup_leaves_nothing() {
    let server = Server::start(&[]);
    server.sql("CREATE TABLE big AS SELECT repeat('x', 500) FROM generate_series(1, 100000)");
    let place = scratch();
    let target = place.path().join("copy");
    // As soon as the first data has arrived.
    let arrived = || std::fs::read_dir(&target).is_ok_and(|entries| entries.count() > 0);
    let failure = back_up(&server, &target, &|_| {}, &arrived).unwrap_err();
    assert_eq!(failure.code, ErrorKind::Cancelled);
    assert_eq!(entries(&target), 0);
    back_up(&server, &target, &|_| {}, &|| false).unwrap();
}

#[test]
fn a_source_that_dies_leaves_nothing_and_a_clear_error() {
    let mut server = Server::start(&[]);
    let (tools, source, facts) = (tools(), server.source("linker"), server.facts());
    server.stop(false);
    let place = scratch();
    let target = place.path().join("copy");
    tools.own_directory(&target).unwrap();
    let request = BaseBackupRequest {
        tools: &tools,
        source: &source,
        facts: &facts,
        target: &target,
        files: &PlainDir::new(&target),
        silence: SILENCE,
    };
    let failure = take_base_backup(&request, &|_| {}, &|| false).unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceUnreachable, "{failure}");
    assert_eq!(entries(&target), 0);
}

#[test]
fn a_directory_in_use_is_refused_untouched() {
    let server = Server::start(&[]);
    let place = scratch();
    std::fs::write(place.path().join("precious"), "x").unwrap();
    let failure = back_up(&server, place.path(), &|_| {}, &|| false).unwrap_err();
    assert_eq!(failure.code, ErrorKind::WrongState);
    assert!(place.path().join("precious").exists());
}
