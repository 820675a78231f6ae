use super::server::{PATIENCE, Server, archive_in, scratch, wait_for};
use offshoot_os::SystemClock;
use offshoot_os::process::{ProcessId, Signal};
use offshoot_postgres::Lsn;
use offshoot_postgres::receiver::{Receiver, ReceiverState};
use offshoot_postgres::slot::{SlotState, slot_state};
use offshoot_types::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SEGMENT: u64 = 1 << 20;

#[test]
fn what_was_committed_is_proved_and_in_the_archive() {
    let server = Server::start(&[]);
    let place = scratch();
    let log = place.path().join("log");
    let archive = archive_in(&log, SEGMENT);
    let receiver = server.receive(&log);
    server.sql("CREATE TABLE t(i int)");
    for round in 0..3 {
        server.sql("INSERT INTO t SELECT generate_series(1, 3000)");
        let flushed: Lsn = server.sql("SELECT pg_current_wal_flush_lsn()").parse().unwrap();
        let before: jiff::Timestamp = server.facts().clock;
        let synced = receiver.ask_now(PATIENCE).unwrap();
        assert!(synced.lsn >= flushed, "round {round}: {synced:?} {flushed}");
        assert!(synced.time >= before, "round {round}: {synced:?} {before}");
        let first = archive.files().unwrap()[0];
        let end = archive.valid_end(archive.start(&first)).unwrap();
        assert!(end >= flushed, "round {round}: {end} {flushed}");
    }
    let status = receiver.status();
    assert_eq!(status.state, ReceiverState::Streaming);
    assert!(status.received >= status.synced_to.map(|synced| synced.lsn));

    // Also unasked, about once a second.
    let before = receiver.status().synced_to.unwrap();
    wait_for("a proof", || receiver.status().synced_to.unwrap().time > before.time);
    receiver.stop();
    assert_eq!(receiver.status().state, ReceiverState::Stopped);
    assert_eq!(receiver.ask_now(PATIENCE).unwrap_err().code, ErrorKind::WrongState);
}

#[test]
fn asynchronous_commits_are_covered_by_the_proof() {
    let server = Server::start(&["synchronous_commit = off"]);
    let place = scratch();
    let receiver = server.receive(&place.path().join("log"));
    server.sql("CREATE TABLE t(i int)");
    for _ in 0..3 {
        server.sql("INSERT INTO t VALUES (1)");
        let written: Lsn = server.sql("SELECT pg_current_wal_insert_lsn()").parse().unwrap();
        let synced = receiver.ask_now(PATIENCE).unwrap();
        assert!(synced.lsn >= written, "{synced:?} {written}");
    }
}

#[test]
fn the_stream_survives_restarts_of_the_source_and_of_itself() {
    let mut server = Server::start(&[]);
    let place = scratch();
    let log = place.path().join("log");
    let archive = archive_in(&log, SEGMENT);
    let receiver = server.receive(&log);
    server.sql("CREATE TABLE t(i int)");
    receiver.ask_now(PATIENCE).unwrap();
    server.stop(false);
    wait_for("the loss to be noticed", || {
        matches!(receiver.status().state, ReceiverState::Retrying(_))
    });
    let ReceiverState::Retrying(why) = receiver.status().state else { panic!() };
    assert_eq!(why.code, ErrorKind::SourceUnreachable, "{why}");
    // A caller gets the answer soon, however long it would wait.
    let began = std::time::Instant::now();
    assert_eq!(receiver.ask_now(PATIENCE).unwrap_err().code, ErrorKind::SourceUnreachable);
    assert!(began.elapsed() < PATIENCE / 4, "{:?}", began.elapsed());
    server.run();
    server.sql("INSERT INTO t SELECT generate_series(1, 30000)");
    let flushed: Lsn = server.sql("SELECT pg_current_wal_flush_lsn()").parse().unwrap();
    assert!(receiver.ask_now(PATIENCE).unwrap().lsn >= flushed);
    assert_eq!(receiver.status().state, ReceiverState::Streaming);

    // A receiver that stops in the middle of a file continues there; one whose file was left half
    // made does too.
    drop(receiver);
    let last = *archive.files().unwrap().last().unwrap();
    assert!(last.partial);
    let unborn = offshoot_postgres::archive::WalFile { number: last.number + 1, ..last };
    std::fs::write(log.join(archive.file_name(&unborn)), vec![0; 4096]).unwrap();
    super::server::give_to_tools(&log.join(archive.file_name(&unborn)));
    let receiver = server.receive(&log);
    let synced = receiver.ask_now(PATIENCE).unwrap();
    assert!(synced.lsn >= flushed);
    let first = archive.files().unwrap()[0];
    assert!(archive.valid_end(archive.start(&first)).unwrap() >= flushed);
    let files = archive.files_for(archive.start(&first), Some(flushed)).unwrap();
    assert!(files.len() >= 2 && files.iter().rev().skip(2).all(|file| !file.partial), "{files:?}");
}

#[test]
fn an_idle_source_is_proved_again_after_a_restart_of_the_receiver() {
    let server = Server::start(&[]);
    let place = scratch();
    let receiver = server.receive(&place.path().join("log"));
    receiver.ask_now(PATIENCE).unwrap();
    drop(receiver);
    let receiver = server.receive(&place.path().join("log"));
    let began = std::time::Instant::now();
    receiver.ask_now(PATIENCE).unwrap();
    // Sooner than the server sends something on its own, every half of wal_sender_timeout.
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
}

/// However long it takes, as long as log arrives: the tool may run for one file at a time.
#[test]
fn much_log_is_waited_for_while_it_arrives() {
    const SILENCE: Duration = Duration::from_secs(2);
    let server = Server::start(&[]);
    let place = scratch();
    let log = place.path().join("log");
    let receiver = server.receive(&log);
    receiver.ask_now(PATIENCE).unwrap();
    let tool = tool_on(&log);
    tool.signal(Signal::Stop).unwrap();
    server.sql("CREATE TABLE t AS SELECT i FROM generate_series(1, 3000000) i");
    let flushed: Lsn = server.sql("SELECT pg_current_wal_flush_lsn()").parse().unwrap();
    let failure = receiver.ask_now(SILENCE).unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceUnreachable, "nothing arrives: {failure}");

    let began = std::time::Instant::now();
    let files = || std::fs::read_dir(&log).unwrap().count();
    let synced = receiver.receive_all(SILENCE, &mut |_| {
        let before = files();
        tool.signal(Signal::Continue).unwrap();
        if began.elapsed() < SILENCE * 2 {
            wait_for("the next file", || files() > before);
            tool.signal(Signal::Stop).unwrap();
        }
        Ok(())
    });
    tool.signal(Signal::Continue).unwrap();
    assert!(synced.unwrap().lsn >= flushed);
    assert!(began.elapsed() > SILENCE, "{:?}", began.elapsed());
}

/// The tool of this process that writes below a path.
fn tool_on(path: &Path) -> ProcessId {
    let path = path.to_str().unwrap();
    let writes = |child: &ProcessId| child.arguments().iter().any(|one| one == path);
    ProcessId::own().unwrap().children().into_iter().find(writes).unwrap()
}

#[test]
fn a_lost_slot_is_a_gap() {
    let server = Server::start(&["max_slot_wal_keep_size = 1MB"]);
    let place = scratch();
    let receiver = server.receive(&place.path().join("log"));
    receiver.ask_now(PATIENCE).unwrap();
    drop(receiver);
    let session = server.session();
    server.sql("CREATE TABLE t(i int)");
    wait_for("the slot to be lost", || {
        server.sql(
            "INSERT INTO t SELECT generate_series(1, 20000);;SELECT pg_switch_wal();;CHECKPOINT",
        );
        slot_state(&session, "offshoot_test") == Ok(SlotState::Lost)
    });
    let spec = server.receiver_spec(&place.path().join("log"));
    let receiver = Receiver::start(spec, Arc::new(SystemClock)).unwrap();
    let failure = receiver.wait_streaming(PATIENCE).unwrap_err();
    assert!(failure.hint.contains("SnapSync"), "{failure:?}");
    assert!(matches!(receiver.status().state, ReceiverState::Gap(_)));
    assert!(receiver.ask_now(PATIENCE).is_err());
}

#[test]
fn the_log_of_another_cluster_is_never_received() {
    let server = Server::start(&[]);
    let place = scratch();
    let mut spec = server.receiver_spec(&place.path().join("log"));
    spec.system_identifier ^= 1;
    let receiver = Receiver::start(spec, Arc::new(SystemClock)).unwrap();
    let failure = receiver.wait_streaming(PATIENCE).unwrap_err();
    assert!(failure.message.contains("another cluster"), "{failure}");
    assert_eq!(std::fs::read_dir(place.path().join("log")).unwrap().count(), 0);
}
