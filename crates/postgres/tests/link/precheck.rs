use super::server::{PASSWORD, PATIENCE, Server, installations, wait_for};
use offshoot_postgres::installation::choose_installation;
use offshoot_postgres::slot::{SlotState, create_slot, drop_slot, slot_state};
use offshoot_postgres::source::{Password, Source, precheck};
use offshoot_types::ErrorKind;
use std::net::TcpListener;
use std::time::Instant;

#[test]
fn a_good_source_passes_with_its_facts() {
    let server = Server::start(&[]);
    let found = precheck(&server.source("linker"), &installations());
    assert_eq!(found.problems, []);
    assert!(found.warnings.iter().any(|one| one.hint.contains("max_slot_wal_keep_size")));
    let facts = found.into_result().unwrap();
    assert!(choose_installation(&installations(), facts.major).is_ok());
    assert!(facts.size_bytes > 1 << 20 && facts.system_identifier > 0);
    assert_eq!(facts.wal_segment_bytes, 1 << 20);
    assert!(facts.data_checksums && !facts.in_recovery && !facts.archiving);
    assert_eq!((facts.timeline, facts.tablespaces.len()), (1, 0));
}

#[test]
fn a_wrong_password_and_a_missing_database_are_named() {
    let server = Server::start(&[]);
    let wrong = Source::parse(&server.uri("linker"), Some(Password::new("hunter2"))).unwrap();
    let failure = precheck(&wrong, &installations()).into_result().unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceRefused);
    assert!(failure.message.contains("password of linker is wrong"), "{failure}");
    assert!(!format!("{failure:?} {wrong:?}").contains("hunter2"), "{failure:?} {wrong:?}");

    let uri = format!("postgresql://linker@127.0.0.1:{}/nowhere", server.port);
    let nowhere = Source::parse(&uri, Some(Password::new(PASSWORD))).unwrap();
    let failure = precheck(&nowhere, &installations()).into_result().unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceRefused);
    assert!(failure.message.contains("nowhere"), "{failure}");
}

#[test]
fn all_problems_are_collected_with_their_mends() {
    let server =
        Server::start(&["wal_level = minimal", "max_wal_senders = 0", "max_replication_slots = 0"]);
    server.sql("ALTER ROLE linker NOREPLICATION");
    let found = precheck(&server.source("linker"), &installations());
    let mends: Vec<&str> = found.problems.iter().map(|problem| problem.hint.as_str()).collect();
    for mend in [
        "ALTER SYSTEM SET wal_level = replica",
        "ALTER SYSTEM SET max_wal_senders = 10",
        "ALTER SYSTEM SET max_replication_slots = 10",
        "ALTER ROLE linker REPLICATION;",
    ] {
        assert!(mends.iter().any(|one| one.contains(mend)), "{mend} is not in {mends:?}");
    }
    assert_eq!(found.problems.len(), 4, "{:?}", found.problems);
    let failure = found.into_result().unwrap_err();
    assert!(failure.message.starts_with("4 things"), "{failure}");
    assert!(failure.hint.contains("(4) ALTER ROLE"), "{}", failure.hint);
}

#[test]
fn rules_that_admit_no_replication_are_named() {
    let server = Server::start(&[]);
    let rules = server.data().join("pg_hba.conf");
    std::fs::write(&rules, "host all all 127.0.0.1/32 scram-sha-256\n").unwrap();
    server.sql("SELECT pg_reload_conf()");
    let checked = || precheck(&server.source("linker"), &installations()).into_result();
    wait_for("the rules to be read", || checked().is_err());
    let failure = checked().unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceRefused);
    assert!(
        failure.hint.contains("host replication linker 127.0.0.1/32 scram-sha-256"),
        "{}",
        failure.hint
    );
}

#[test]
fn a_role_that_may_not_connect_is_told_the_grant() {
    let server = Server::start(&[]);
    server.sql("REVOKE CONNECT ON DATABASE postgres FROM PUBLIC");
    let failure = precheck(&server.source("linker"), &installations()).into_result().unwrap_err();
    assert_eq!(failure.hint, "GRANT CONNECT ON DATABASE postgres TO linker;");
}

#[test]
fn an_unsupported_or_missing_version_is_named() {
    let server = Server::start(&[]);
    let failure = precheck(&server.source("linker"), &[]).into_result().unwrap_err();
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
    assert!(failure.hint.contains("apt-get install postgresql-"), "{}", failure.hint);
}

#[test]
fn unreachable_sources_fail_within_moments() {
    let began = Instant::now();
    let closed = Source::parse("postgresql://linker@127.0.0.1:1/postgres", None).unwrap();
    let failure = precheck(&closed, &installations()).into_result().unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceUnreachable);
    assert!(began.elapsed() < PATIENCE);

    // Accepts connections and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("postgresql://x@127.0.0.1:{}/y", silent.local_addr().unwrap().port());
    let began = Instant::now();
    let failure = Source::parse(&uri, None).unwrap().connect().err().unwrap();
    assert_eq!(failure.code, ErrorKind::SourceUnreachable);
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

#[test]
fn slots_are_created_taken_over_and_dropped() {
    let server = Server::start(&["max_replication_slots = 1"]);
    let session = server.source("linker").connect().unwrap();
    assert_eq!(slot_state(&session, "offshoot_a"), Ok(SlotState::Missing));
    let state = create_slot(&session, "offshoot_a").unwrap();
    assert!(matches!(state, SlotState::Reserved { active: false, .. }), "{state:?}");
    assert_eq!(create_slot(&session, "offshoot_a"), Ok(state));
    let failure = create_slot(&session, "offshoot_b").unwrap_err();
    assert!(failure.hint.contains("max_replication_slots"), "{failure:?}");
    drop_slot(&session, "offshoot_a").unwrap();
    drop_slot(&session, "offshoot_a").unwrap();
    assert_eq!(slot_state(&session, "offshoot_a"), Ok(SlotState::Missing));
}
