//! What servers promise.

use crate::linked::stop_at_once;
use crate::{Harness, Image, Linked, PATIENCE, Random, until};
use offshoot_connector::{Grant, Role, Server, ServerSpec, StopMode, VdbOptions};
use offshoot_domain::{Secret, TiesCut};
use offshoot_os::process::Signal;
use offshoot_types::ErrorKind;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A way to end a server.
type End<'a> = &'a dyn Fn(&dyn Server);

fn vdb() -> Role {
    Role::Vdb(VdbOptions::default())
}

/// A linked source and an image of its newest moment.
fn with_image(harness: &dyn Harness) -> (Linked<'_>, Image) {
    let mut linked = Linked::new(harness);
    linked.write(5, 2000, &mut Random::fresh());
    linked.receive();
    let image = linked.finished(linked.commits()[4].end);
    (linked, image)
}

/// A VDB's spec, with a port.
fn spec(linked: &Linked<'_>, image: &Image) -> ServerSpec {
    ServerSpec { tcp_port: offshoot_os::unused_port(), ..linked.spec(&linked.clone_of(image)) }
}

fn grant(
    linked: &Linked<'_>,
    server: &dyn Server,
    spec: &ServerSpec,
    keep_source_logins: bool,
) -> String {
    granted(linked, server, spec, keep_source_logins).0
}

/// The URI of a VDB that was given to its users, and what it is told to lack.
fn granted(
    linked: &Linked<'_>,
    server: &dyn Server,
    spec: &ServerSpec,
    keep_source_logins: bool,
) -> (String, Option<TiesCut>) {
    let password = Secret::new(linked.connector.new_password());
    let grant = Grant { keep_source_logins, ..Grant::new(password.clone()) };
    let granted = server.grant(&grant, PATIENCE).unwrap();
    let uri = linked.connector.vdb_uri(spec.tcp_port.unwrap(), &password, &granted.database);
    (uri, granted.ties)
}

/// A restarted engine finds its servers, and only its own.
pub fn a_server_is_found_again(harness: &dyn Harness) {
    let (linked, image) = with_image(harness);
    let connector = &linked.connector;
    let spec = spec(&linked, &image);
    assert!(connector.adopt(spec.clone()).unwrap().is_none());
    let started = connector.start(spec.clone(), vdb()).unwrap();
    started.wait_ready(PATIENCE).unwrap();
    assert!(started.running() && started.recovering().is_none());
    let again = connector.start(spec.clone(), vdb());
    assert_eq!(again.err().expect("it runs").code, ErrorKind::AlreadyExists);
    let id = started.process_id();
    drop(started);
    let found = connector.adopt(spec.clone()).unwrap().expect("it runs on");
    assert_eq!(found.process_id(), id);
    found.wait_ready(PATIENCE).unwrap();
    assert!(found.running() && found.position().is_ok());
    let other = ServerSpec { tcp_port: offshoot_os::unused_port(), ..spec.clone() };
    assert_eq!(connector.adopt(other).err().expect("another port").code, ErrorKind::WrongState);
    let other = ServerSpec { data_dir: linked.path("elsewhere"), ..spec.clone() };
    assert_eq!(connector.adopt(other).err().expect("other data").code, ErrorKind::WrongState);
    assert!(found.stop(StopMode::Fast, PATIENCE).unwrap());
    assert!(!found.running() && connector.adopt(spec).unwrap().is_none());
}

/// Even if nothing else is known about it, and twice.
pub fn a_leftover_is_stopped_by_its_runtime_directory(harness: &dyn Harness) {
    let (linked, image) = with_image(harness);
    let connector = &linked.connector;
    let (one, other) = (spec(&linked, &image), spec(&linked, &image));
    let left = connector.start(one.clone(), vdb()).unwrap();
    let stays = connector.start(other.clone(), vdb()).unwrap();
    stays.wait_ready(PATIENCE).unwrap();
    // An engine that was killed right after it started it has recorded nothing.
    for entry in std::fs::read_dir(&one.runtime_dir).unwrap().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "json") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    for _ in 0..2 {
        connector.stop_leftover(&one.runtime_dir, PATIENCE).unwrap();
        assert!(!left.running());
    }
    connector.stop_leftover(&linked.path("run/never"), PATIENCE).unwrap();
    assert!(stays.running(), "another server was stopped, too");
    stop_at_once(&*stays);
    let again = connector.start(one, vdb()).unwrap();
    again.wait_ready(PATIENCE).unwrap();
    stop_at_once(&*again);
}

/// Reported as what it is, so that another port is chosen; nothing is left of the attempt.
pub fn a_taken_port_is_said_to_be(harness: &dyn Harness) {
    let (linked, image) = with_image(harness);
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let clone = linked.clone_of(&image);
    let port = Some(taken.local_addr().unwrap().port());
    let spec = ServerSpec { tcp_port: port, ..linked.spec(&clone) };
    let failure = linked
        .connector
        .start(spec.clone(), vdb())
        .and_then(|server| server.wait_ready(PATIENCE))
        .unwrap_err();
    assert_eq!(failure.code, ErrorKind::AlreadyExists, "{failure}");
    assert!(!failure.hint.is_empty());
    assert!(linked.connector.adopt(spec.clone()).unwrap().is_none());
    let spec = ServerSpec { tcp_port: offshoot_os::unused_port(), ..spec };
    let server = linked.connector.start(spec, vdb()).unwrap();
    server.wait_ready(PATIENCE).unwrap();
    stop_at_once(&*server);
}

/// However it ends, what users were told exists at the next start.
pub fn a_stop_is_clean_or_recovered_from(harness: &dyn Harness) {
    let (linked, image) = with_image(harness);
    let connector = &linked.connector;
    let spec = spec(&linked, &image);
    let mut server = connector.start(spec.clone(), vdb()).unwrap();
    let uri = grant(&linked, &*server, &spec, false);
    let mut wanted = linked.content_after(5);
    let ends: [End<'_>; 5] = [
        &|server| assert!(server.stop(StopMode::Immediate, PATIENCE).unwrap()),
        &|server| assert!(server.stop(StopMode::Fast, PATIENCE).unwrap()),
        &|server| {
            server.process_id().signal(Signal::Kill).unwrap();
            until("it is gone", || !server.running());
            // What it started ends with it, and stopping what does not run is no error.
            assert!(!server.stop(StopMode::Fast, PATIENCE).unwrap());
        },
        &|server| {
            // What it started does not notice, and still holds what the next one needs.
            for child in server.process_id().children() {
                child.signal(Signal::Stop).unwrap();
            }
            server.process_id().signal(Signal::Kill).unwrap();
            until("it is gone", || !server.running());
        },
        &|server| {
            // One that does not listen is killed in time.
            server.process_id().signal(Signal::Stop).unwrap();
            let begun = Instant::now();
            assert!(!server.stop(StopMode::Fast, Duration::from_secs(3)).unwrap());
            assert!(begun.elapsed() < Duration::from_secs(8), "it took {:?}", begun.elapsed());
        },
    ];
    for (round, end) in ends.into_iter().enumerate() {
        for number in 0..10 {
            let (key, value) = (format!("r{round}n{number}"), "x".repeat(700));
            harness.put_by(&uri, &key, &value).unwrap();
            wanted.insert(key, value);
        }
        end(&*server);
        assert!(!server.running());
        connector.stop_leftover(&spec.runtime_dir, PATIENCE).unwrap();
        server = connector.start(spec.clone(), vdb()).unwrap();
        server.wait_ready(PATIENCE).unwrap();
        assert_eq!(harness.content_by(&uri).unwrap(), wanted, "after end {round}");
    }
    stop_at_once(&*server);
}

/// If it is killed at any time during its start, it starts the next time.
pub fn a_killed_start_is_repeated(harness: &dyn Harness) {
    let (linked, image) = with_image(harness);
    let connector = &linked.connector;
    let spec = spec(&linked, &image);
    for pause_ms in [0, 3, 10, 30, 80] {
        let server = connector.start(spec.clone(), vdb()).unwrap();
        std::thread::sleep(Duration::from_millis(pause_ms));
        server.process_id().signal(Signal::Kill).unwrap();
        let failed = server.wait_ready(PATIENCE);
        assert!(failed.is_ok() || !server.running());
        connector.stop_leftover(&spec.runtime_dir, PATIENCE).unwrap();
        until("it is gone", || !server.running());
    }
    let server: Arc<dyn Server> = connector.start(spec.clone(), vdb()).unwrap();
    let uri = grant(&linked, &*server, &spec, false);
    assert_eq!(harness.content_by(&uri).unwrap(), linked.content_after(5));
    stop_at_once(&*server);
}

/// A copy of a database that follows another one never connects there.
pub fn ties_are_cut_for_good(harness: &dyn Harness) {
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    other.set_nonblocking(true).unwrap();
    let port = other.local_addr().unwrap().port();
    let mut linked = Linked::prepared(harness, |production| production.tie_to(port));
    linked.write(3, 100, &mut Random::fresh());
    linked.receive();
    // The database in production may connect; it is now stopped, and nobody else may.
    linked.stream.take().unwrap().stop();
    linked.production.stop(false);
    while other.accept().is_ok() {}
    let clone = linked.clone_of(&linked.copy);
    let server = linked.replay(&clone, linked.commits()[2].end).unwrap().server;
    let before = harness.ties(&linked.spec(&clone));
    assert!(!before.is_empty(), "the copy has no tie that could be cut");
    let cut = server.cut_ties().unwrap();
    assert!(!cut.cut.is_empty(), "{cut:?}");
    assert_eq!(harness.ties(&linked.spec(&clone)), Vec::<String>::new());
    server.cut_ties().unwrap();
    assert_eq!(harness.ties(&linked.spec(&clone)), Vec::<String>::new());
    assert!(server.stop(StopMode::Fast, PATIENCE).unwrap());
    linked.connector.finish_image(&*linked.spec(&clone).files).unwrap();
    let spec = ServerSpec { tcp_port: offshoot_os::unused_port(), ..linked.spec(&clone) };
    let server = linked.connector.start(spec.clone(), vdb()).unwrap();
    let (_, ties) = granted(&linked, &*server, &spec, true);
    let ties = ties.expect("the image tells what was cut");
    assert!(!ties.cut.is_empty() && ties.warnings.is_empty(), "{ties:?}");
    assert_eq!(granted(&linked, &*server, &spec, true).1, None, "what is its users' is not told");
    let uri = grant(&linked, &*server, &spec, true);
    harness.put_by(&uri, "still", "works").unwrap();
    std::thread::sleep(Duration::from_millis(800));
    assert!(other.accept().is_err(), "somebody called the other database");
    assert_eq!(harness.ties(&spec), Vec::<String>::new());
    stop_at_once(&*server);
}

/// Logins of the source do not work on a VDB, unless that was requested.
pub fn logins_are_those_granted(harness: &dyn Harness) {
    let (linked, image) = with_image(harness);
    for keep in [false, true] {
        let spec = spec(&linked, &image);
        let options = VdbOptions { keep_source_logins: keep, ..VdbOptions::default() };
        let server = linked.connector.start(spec.clone(), Role::Vdb(options)).unwrap();
        let uri = grant(&linked, &*server, &spec, keep);
        assert_eq!(harness.content_by(&uri).unwrap(), linked.content_after(5));
        let of_source = linked.production.uri_at(spec.tcp_port.unwrap());
        assert_eq!(harness.content_by(&of_source).is_ok(), keep, "logins kept: {keep}");
        stop_at_once(&*server);
    }
}

/// Before anything is made for them.
pub fn settings_are_looked_at_first(harness: &dyn Harness) {
    let (linked, image) = with_image(harness);
    let ((name, value), (bad_name, bad_value)) = harness.settings();
    let only = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let validate = |settings: &BTreeMap<String, String>| {
        linked.connector.validate_settings(&linked.checked.version, settings)
    };
    validate(&BTreeMap::new()).unwrap();
    validate(&only(name, value)).unwrap();
    let failure = validate(&only(bad_name, bad_value)).unwrap_err();
    assert_eq!(failure.code, ErrorKind::InvalidInput, "{failure}");
    assert!(failure.message.contains(bad_name), "{failure}");
    let spec = spec(&linked, &image);
    let options = VdbOptions { settings: only(name, value), ..VdbOptions::default() };
    let server = linked.connector.start(spec, Role::Vdb(options)).unwrap();
    server.wait_ready(PATIENCE).unwrap();
    stop_at_once(&*server);
}
