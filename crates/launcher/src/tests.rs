use super::*;
use offshoot_os::process::{ProcessId, Signal, Sink, Spec};
use offshoot_types::{ErrorKind, Share};
use std::path::Path;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(20);

/// A server that sleeps; its runtime directory is its mark.
fn launch(dir: &Path) -> Launch {
    let runtime_dir = dir.join("run");
    std::fs::create_dir_all(&runtime_dir).unwrap();
    let argument = runtime_dir.display().to_string();
    let command = Spec::new("/bin/bash")
        .args(["-c", "(cd \"$1\" && exec -a 'sleeper: busy' sleep 300) & exec -a sleeperd bash -c 'sleep 300 & wait' sleeperd \"$1\""])
        .args(["bash", &argument])
        .stdout(Sink::File(dir.join("log")))
        .stderr(Sink::File(dir.join("log")));
    Launch {
        name: "vdb one".to_owned(),
        command,
        data_dir: runtime_dir.clone(),
        runtime_dir,
        ends: false,
        own_dirs: Vec::new(),
        program_dirs: Vec::new(),
        port: 4711,
        tcp: false,
        connects: Vec::new(),
        udp: false,
        reaches: Vec::new(),
        memory_bytes: None,
        processes_max: 1000,
        share: Share::Usual,
    }
}

fn mark(dir: &Path) -> Mark {
    Mark { program: "sleeperd", argument: dir.join("run").display().to_string() }
}

/// Launched, and past the programs that come before the server itself.
fn launched(host: &ThisHost, dir: &Path) -> Box<dyn Process> {
    let process = host.launch(launch(dir)).unwrap().expect("it runs");
    for _ in 0..2000 {
        let children = process.id().children();
        let sleep = |child: &ProcessId| child.name().is_some_and(|name| name == "sleep");
        if host.find(&dir.join("run"), &mark(dir)).is_some()
            && children.len() == 2
            && children.iter().all(sleep)
        {
            return process;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it does not become what it should: {:?}", process.titles());
}

#[test]
fn a_server_is_found_again_by_its_record_and_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let (host, runtime) = (ThisHost::as_ourselves(), dir.path().join("run"));
    assert!(host.find(&runtime, &mark(dir.path())).is_none());
    let id = launched(&host, dir.path()).id();
    let found = host.find(&runtime, &mark(dir.path())).unwrap();
    assert_eq!((found.process.id(), found.port), (id, Some(4711)));
    found.check_is_on(&runtime, 4711).unwrap();
    for (data, port) in [(runtime.as_path(), 4712), (dir.path(), 4711)] {
        assert_eq!(found.check_is_on(data, port).unwrap_err().code, ErrorKind::WrongState);
    }
    std::fs::remove_file(runtime.join("server.json")).unwrap();
    let mut found = host.find(&runtime, &mark(dir.path())).unwrap();
    assert_eq!((found.process.id(), found.port), (id, None));
    let children = id.children();
    assert_eq!(children.len(), 2);
    let ended = found.process.end(Signal::Terminate, Signal::Kill, DEADLINE).unwrap();
    assert_eq!(ended, Ended { gently: true, success: None, status: None });
    assert!(!id.alive() && children.iter().all(|child| !child.alive()));
    assert!(host.find(&runtime, &mark(dir.path())).is_none());
}

#[test]
fn what_is_left_ends_with_its_record() {
    let dir = tempfile::tempdir().unwrap();
    let (host, runtime) = (ThisHost::as_ourselves(), dir.path().join("run"));
    let id = launched(&host, dir.path()).id();
    let host: &dyn Launcher = &host;
    let end =
        || host.end_leftover(&runtime, &mark(dir.path()), Signal::Terminate, DEADLINE).unwrap();
    assert!(end());
    assert!(!id.alive() && !runtime.join("server.json").exists());
    assert!(!end());
}

#[test]
fn orphans_of_a_data_directory_end_and_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    let (host, runtime) = (ThisHost::as_ourselves(), dir.path().join("run"));
    let mut process = launched(&host, dir.path());
    let children = process.id().children();
    let (works_there, other): (Vec<_>, Vec<_>) =
        children.into_iter().partition(|child| child.cwd().is_some_and(|cwd| cwd == runtime));
    assert_eq!((works_there.len(), other.len()), (1, 1));
    process.signal(Signal::Kill).unwrap();
    assert!(process.id().wait_end(DEADLINE) && !process.running());
    let program = other[0].program().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    host.end_orphans(&runtime, "another").unwrap();
    assert!(works_there[0].alive());
    host.end_orphans(&runtime, program).unwrap();
    assert!(!works_there[0].alive() && other[0].alive());
    other[0].signal(Signal::Kill).unwrap();
}

#[test]
fn a_program_that_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut launch = launch(dir.path());
    launch.command = Spec::new("/nonexistent/sleeperd");
    let failure = ThisHost::as_ourselves().launch(launch).unwrap_err();
    assert_eq!(failure.code, ErrorKind::HostUnprepared);
    assert!(failure.message.contains("/nonexistent/sleeperd"), "{}", failure.message);
}

mod needs_process_groups {
    use super::*;

    #[test]
    #[ignore = "needs root and control groups of processes"]
    fn a_server_that_somebody_waits_for_goes_first() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let host = ThisHost::as_ourselves();
        let urgent = Launch { share: Share::First, ..launch(one.path()) };
        let mut urgent = host.launch(urgent).unwrap().expect("it runs");
        let mut usual = launched(&host, two.path());
        let shares = |process: &dyn Process| group_of(process.id()).unwrap().processor_share();
        if let (Ok(more), Ok(one)) = (shares(&*urgent), shares(&*usual)) {
            assert_eq!((more, one), (1600, 100));
        }
        urgent.end(Signal::Terminate, Signal::Kill, DEADLINE).unwrap();
        usual.end(Signal::Terminate, Signal::Kill, DEADLINE).unwrap();
    }

    #[test]
    #[ignore = "needs root and control groups of processes"]
    fn each_server_has_a_group_of_its_own_which_ends_with_it() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let host = ThisHost::as_ourselves();
        let mut first = launched(&host, one.path());
        let mut second = launched(&host, two.path());
        let (group, other) = (group_of(first.id()).unwrap(), group_of(second.id()).unwrap());
        // Their directories have the same name.
        assert_ne!(group, other);
        first.end(Signal::Terminate, Signal::Kill, DEADLINE).unwrap();
        assert!(group.limit_processes(1).is_err(), "the group of the first is gone");
        forbid_children(second.id());
        assert_eq!(group_of(second.id()), Some(other.clone()));
        second.end(Signal::Terminate, Signal::Kill, DEADLINE).unwrap();
        assert!(other.limit_processes(1).is_err(), "and that of the second");
    }
}
