//! Starting, stopping, and what a killed engine leaves.

use offshoot_os::process::{ProcessId, Signal, Spec, run};
use offshoot_postgres::config::{self, Settings, VdbOptions};
use offshoot_postgres::server::{self, Server, ServerSpec, StopMode};
use offshoot_types::{ErrorKind, Failure};

use crate::cluster::*;

fn adopted(scratch: &Scratch, bin: &std::path::Path) -> ServerSpec {
    let data = fresh(scratch, bin, "data");
    let dir = plain(&data);
    config::adopt(&dir, bin, user().as_ref(), &Settings::new()).unwrap();
    config::write_vdb(&dir, &control(bin, &data), &VdbOptions::default()).unwrap();
    let mut spec = scratch.spec(bin, &data, "vdb");
    spec.superusers = vec![BOSS.to_owned()];
    spec
}

/// Why it does not start: the start notices a server that ends immediately, otherwise the wait
/// does.
fn failed_start(spec: ServerSpec) -> Failure {
    server::start(spec).and_then(|mut server| server.wait_ready(DEADLINE)).err().unwrap()
}

fn started(spec: ServerSpec) -> Server {
    let mut server = server::start(spec).unwrap();
    server.wait_ready(DEADLINE).unwrap();
    server
}

#[test]
fn a_taken_port_is_a_clear_error_and_leaves_nothing() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let mut spec = adopted(&scratch, &bin);
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    spec.tcp_port = Some(port);
    let failure = server::start(spec.clone()).unwrap_err();
    assert_eq!(failure.code, ErrorKind::AlreadyExists);
    assert!(failure.message.contains(&port.to_string()), "{}", failure.message);
    assert!(failure.hint.contains("--port"));
    assert!(!spec.data_dir.join("postmaster.pid").exists());
    drop(listener);
    let mut server = started(spec);
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
}

#[test]
fn errors_of_a_start_carry_the_servers_words() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let spec = adopted(&scratch, &bin);
    for (name, value, kind) in [
        ("work_mem", "plenty", ErrorKind::InvalidInput),
        ("shared_preload_libraries", "no_such_library", ErrorKind::HostUnprepared),
    ] {
        let mut spec = spec.clone();
        spec.forced.push((name.to_owned(), value.to_owned()));
        let failure = failed_start(spec);
        assert_eq!(failure.code, kind, "{}", failure.message);
        assert!(failure.message.contains(value), "{}", failure.message);
    }
    let control_file = spec.data_dir.join("global/pg_control");
    std::fs::write(&control_file, vec![7; 8192]).unwrap();
    let failure = failed_start(spec);
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
    assert!(failure.message.contains("incompatible with server"), "{}", failure.message);
}

#[test]
fn a_socket_path_that_is_too_long_is_refused_before_anything_starts() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let mut spec = adopted(&scratch, &bin);
    spec.runtime_dir = scratch.path(&"x".repeat(100));
    let failure = server::start(spec).unwrap_err();
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
    assert!(failure.message.contains("107"));
}

#[test]
fn a_stop_is_clean_and_the_image_says_so() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let spec = adopted(&scratch, &bin);
        let mut server = started(spec.clone());
        let session = server.connect().unwrap();
        let double = server::start(spec.clone()).unwrap_err();
        assert_eq!(double.code, ErrorKind::AlreadyExists);
        assert!(server.running());
        assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
        drop(session);
        assert!(!server.running());
        use offshoot_postgres::control::ClusterState;
        assert_eq!(control(&bin, &spec.data_dir).state, ClusterState::ShutDown);

        let mut server = started(spec.clone());
        assert!(server.stop(StopMode::Immediate, DEADLINE).unwrap());
        assert_eq!(control(&bin, &spec.data_dir).state, ClusterState::InProduction);
        assert!(!server.stop(StopMode::Fast, DEADLINE).unwrap(), "nothing ran");
    }
}

#[test]
fn a_killed_postmaster_leaves_nothing_that_hinders_the_next() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let spec = adopted(&scratch, &bin);
    let mut killed = started(spec.clone());
    let process = killed.process_id();
    // It cannot notice that the postmaster is gone, and keeps the shared memory.
    let child = process.children().remove(0);
    let stop = Spec::new("/bin/kill").arg("-STOP").arg(child.pid.to_string());
    assert!(run(&stop, DEADLINE).unwrap().success());
    process.signal(Signal::Kill).unwrap();
    assert!(process.wait_end(DEADLINE));
    assert!(!killed.running() && child.alive());
    let mut next = started(spec);
    assert!(!child.alive());
    assert!(next.stop(StopMode::Fast, DEADLINE).unwrap());
}

#[test]
fn what_a_killed_engine_left_is_found_again_or_stopped() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let spec = adopted(&scratch, &bin);
    let process = started(spec.clone()).process_id();

    let mut found = server::adopt(spec.clone()).unwrap().expect("it still runs");
    assert_eq!(found.process_id(), process);
    found.wait_ready(DEADLINE).unwrap();
    let mut other = spec.clone();
    other.data_dir = scratch.path("elsewhere");
    assert_eq!(server::adopt(other).unwrap_err().code, ErrorKind::WrongState);
    drop(found);

    // The file system of the data directory is gone, the record too.
    std::fs::rename(&spec.data_dir, scratch.path("gone")).unwrap();
    std::fs::remove_file(spec.runtime_dir.join("server.json")).unwrap();
    let children = process.children();
    assert!(!children.is_empty());
    assert!(server::stop_leftover(&this_host(), &spec.runtime_dir, DEADLINE).unwrap());
    assert!(!process.alive());
    assert!(children.iter().all(|child| !child.alive()));
    assert!(!server::stop_leftover(&this_host(), &spec.runtime_dir, DEADLINE).unwrap());
    assert!(server::adopt(spec).unwrap().is_none());
}

#[test]
fn a_process_that_only_has_the_pid_is_never_touched() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let spec = adopted(&scratch, &bin);
    let mut server = started(spec.clone());
    let record = std::fs::read_to_string(spec.runtime_dir.join("server.json")).unwrap();
    let old = server.process_id();
    assert!(server.stop(StopMode::Fast, DEADLINE).unwrap());
    let mut bystander = Spec::new("/bin/sleep").arg("300").spawn().unwrap();
    let id = ProcessId::of(bystander.pid()).unwrap();
    let forged =
        record.replace(&format!("\"pid\":{}", old.pid), &format!("\"pid\":{}", id.pid)).replace(
            &format!("\"start_ticks\":{}", old.start_ticks),
            &format!("\"start_ticks\":{}", id.start_ticks),
        );
    assert_ne!(forged, record);
    std::fs::write(spec.runtime_dir.join("server.json"), forged).unwrap();
    let stopped = server::stop_leftover(&this_host(), &spec.runtime_dir, DEADLINE);
    let alive = id.alive();
    bystander.kill_group();
    assert!(!stopped.unwrap());
    assert!(alive, "a process that is no server was stopped");
}

#[test]
fn a_clone_of_a_running_server_starts_beside_it() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let spec = adopted(&scratch, &bin);
    let mut first = started(spec.clone());
    let copy = scratch.copy(&spec.data_dir, "copy");
    config::write_vdb(&plain(&copy), &control(&bin, &copy), &VdbOptions::default()).unwrap();
    let mut second_spec = scratch.spec(&bin, &copy, "second");
    second_spec.superusers = vec![BOSS.to_owned()];
    second_spec.forced.push(("recovery_init_sync_method".into(), "syncfs".into()));
    let mut second = started(second_spec);
    assert!(first.running());
    // And so does one that is only opened to be checked or made clean.
    let third = scratch.copy(&spec.data_dir, "third");
    config::write_private(&plain(&third), &control(&bin, &third)).unwrap();
    let mut third_spec = scratch.spec(&bin, &third, "third");
    third_spec.superusers = vec![BOSS.to_owned()];
    let mut private = started(third_spec);
    assert!(private.stop(StopMode::Fast, DEADLINE).unwrap());
    first.stop(StopMode::Immediate, DEADLINE).unwrap();
    second.stop(StopMode::Immediate, DEADLINE).unwrap();
}
