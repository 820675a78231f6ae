use super::commits::all;
use super::server::{PATIENCE, Server, archive_in, copy_of, index_in, scratch, tools, wait_for};
use offshoot_os::SystemClock;
use offshoot_postgres::Lsn;
use offshoot_postgres::receiver::{Receiver, ReceiverState};
use std::sync::Arc;

const SEGMENT: u64 = 1 << 20;

/// A standby of a server, streaming.
fn standby_of(primary: &Server) -> Server {
    let place = scratch();
    let target = place.path().join("data");
    let (tools, source, facts) = (tools(), primary.admin(), primary.facts());
    copy_of(&tools, &source, &facts, &target);
    std::fs::write(target.join("standby.signal"), "").unwrap();
    super::server::give_to_tools(&target);
    let secret = super::server::PASSWORD.replace('\'', r"\\''");
    Server::on(
        place,
        &[
            "wal_keep_size = 100MB",
            &format!(
                "primary_conninfo = 'host=127.0.0.1 port={} user=postgres password=''{secret}'''",
                primary.port
            ),
        ],
    )
}

#[test]
fn a_promoted_standby_is_followed_onto_its_timeline() {
    let mut primary = Server::start(&["wal_keep_size = 100MB"]);
    let place = scratch();
    let log = place.path().join("log");
    let archive = archive_in(&log, SEGMENT);
    let receiver = primary.receive(&log);
    let index = index_in(&archive, &place.path().join("index"));
    primary.sql("CREATE TABLE t(i int)");
    let standby = standby_of(&primary);
    primary.sql("INSERT INTO t SELECT generate_series(1, 20000)");
    let position: Lsn = primary.sql("SELECT pg_current_wal_flush_lsn()").parse().unwrap();
    wait_for("the standby to catch up", || {
        standby.sql("SELECT pg_last_wal_replay_lsn()").parse::<Lsn>().unwrap() >= position
    });
    receiver.ask_now(PATIENCE).unwrap();
    index.update().unwrap();
    let before = all(&index);
    drop(receiver);
    primary.stop(true);
    standby.sql("SELECT pg_promote(true, 30)");

    // The address now leads to the promoted standby, which has no slot of ours.
    let receiver = Receiver::start(standby.receiver_spec(&log), Arc::new(SystemClock)).unwrap();
    receiver.wait_streaming(PATIENCE).unwrap();
    let mut kept = Vec::new();
    for _ in 0..30 {
        let xid = standby.sql("INSERT INTO t VALUES (1) RETURNING (txid_current())::text");
        kept.push(xid.parse::<u32>().unwrap());
    }
    let synced = receiver.ask_now(PATIENCE).unwrap();
    assert_eq!(receiver.status().state, ReceiverState::Streaming);
    assert!(index.update().unwrap() >= synced.lsn);
    let history = archive.history().unwrap();
    assert_eq!(history.newest().id, 2);
    let switch = history.newest().begin;

    let after = all(&index);
    assert_eq!(after[..before.len()], before);
    assert!(
        after[before.len()..].iter().all(|commit| commit.lsn >= switch && commit.timeline == 2)
    );
    for xid in kept {
        assert_eq!(index.by_xid(xid).unwrap().unwrap().timeline, 2, "{xid}");
    }
    assert_eq!(archive.history_files().unwrap().len(), 1);
    let first = archive.files().unwrap()[0];
    let files = archive.files_for(archive.start(&first), None).unwrap();
    assert!(files.iter().any(|file| file.timeline == 2) && files[0].timeline == 1);
    assert!(archive.valid_end(archive.start(&first)).unwrap() >= synced.lsn);

    let again = index_in(&archive, &place.path().join("index"));
    again.update().unwrap();
    assert_eq!(all(&again), after);
}

#[test]
fn a_standby_that_lacks_what_was_received_is_a_gap() {
    let mut primary = Server::start(&["wal_keep_size = 100MB"]);
    let place = scratch();
    let log = place.path().join("log");
    let receiver = primary.receive(&log);
    let standby = standby_of(&primary);
    standby.sql("SELECT pg_promote(true, 30)");
    primary.sql("CREATE TABLE never_seen(i int)");
    receiver.ask_now(PATIENCE).unwrap();
    drop(receiver);
    primary.stop(false);
    let receiver = Receiver::start(standby.receiver_spec(&log), Arc::new(SystemClock)).unwrap();
    let failure = receiver.wait_streaming(PATIENCE).unwrap_err();
    assert!(failure.message.contains("received already"), "{failure}");
    assert!(matches!(receiver.status().state, ReceiverState::Gap(_)));
}
