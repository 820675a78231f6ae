use super::*;

/// Far longer than anything here takes, also on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(120);

fn shell(script: &str) -> Spec {
    Spec::new("/bin/sh").arg("-c").arg(script)
}

#[test]
fn run_returns_streams_and_status() {
    let output = run(&shell("echo out; echo err >&2; exit 3"), PATIENCE).unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(!output.success());
    assert_eq!(output.stdout_text(), "out\n");
    assert_eq!(output.stderr_text(), "err");
    assert_eq!(describe(output.status), "exit code 3");
}

#[test]
fn run_kills_the_whole_group_on_timeout() {
    let spec = shell("sleep 300 & echo $! >&2; wait");
    let started = SystemClock.elapsed();
    // Long enough for the shell to name its child, wherever this runs.
    let error = run(&spec, Duration::from_secs(3)).unwrap_err();
    assert!(SystemClock.elapsed() - started < PATIENCE);
    let ProcessError::TimedOut { stderr, .. } = error else { panic!("{error}") };
    let grandchild: i32 = stderr.trim().parse().unwrap();
    let gone = ProcessId::of(grandchild).is_none_or(|id| id.wait_end(PATIENCE));
    assert!(gone, "the grandchild {grandchild} outlived the timeout");
}

#[test]
fn a_missing_program_names_itself() {
    let error = run(&Spec::new("/no/such/program"), PATIENCE).unwrap_err();
    assert!(matches!(error, ProcessError::Spawn { .. }));
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}

#[test]
fn wait_timeout_and_terminate() {
    let mut child = shell("exec sleep 300").spawn().unwrap();
    assert_eq!(child.wait_timeout(Duration::from_millis(20)).unwrap(), None);
    let id = child.process_id().unwrap();
    assert!(id.alive());
    let status = child.terminate(PATIENCE).unwrap();
    assert_eq!(describe(status), "signal 15");
    assert!(!id.alive());
    assert!(!id.signal(Signal::Terminate).unwrap());
}

#[test]
fn terminate_kills_what_ignores_it() {
    let mut child = shell("trap '' TERM; echo ready; while :; do sleep 0.05; done")
        .stdout(Sink::Pipe)
        .spawn()
        .unwrap();
    let lines = child.take_stdout_lines().unwrap();
    assert_eq!(lines.next_within(PATIENCE), Line::Text("ready".into()));
    let status = child.terminate(Duration::from_millis(100)).unwrap();
    assert_eq!(describe(status), "signal 9");
}

#[test]
fn a_reused_pid_is_not_the_same_process() {
    let mut child = shell("exec sleep 300").spawn().unwrap();
    let real = child.process_id().unwrap();
    let other = ProcessId { start_ticks: real.start_ticks + 1, ..real };
    assert!(!other.alive());
    assert!(!other.signal(Signal::Kill).unwrap());
    assert!(!other.kill_group().unwrap());
    assert!(other.wait_end(PATIENCE));
    assert!(!real.wait_end(Duration::from_millis(20)));
    assert!(real.kill_group().unwrap());
    assert!(child.wait_timeout(PATIENCE).unwrap().is_some());
}

#[test]
fn lines_split_at_carriage_returns_and_end() {
    let mut child = shell("printf 'a\\rb\\n\\nc'").stdout(Sink::Pipe).spawn().unwrap();
    let lines = child.take_stdout_lines().unwrap();
    for expected in ["a", "b", "c"] {
        assert_eq!(lines.next_within(PATIENCE), Line::Text(expected.into()));
    }
    assert_eq!(lines.next_within(PATIENCE), Line::End);
    child.wait_timeout(PATIENCE).unwrap().unwrap();
}

#[test]
fn the_environment_can_be_cleared_and_debug_hides_values() {
    let spec = shell("echo \"$SECRET:$HOME\"").clear_env().env("SECRET", "sesame");
    assert_eq!(run(&spec, PATIENCE).unwrap().stdout_text(), "sesame:\n");
    assert!(!format!("{spec:?}").contains("sesame"));
}

#[test]
fn a_file_sink_appends_and_its_last_lines_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    for text in ["one", "two\n\nthree"] {
        let spec = shell(&format!("printf '{text}\n' >&2")).stderr(Sink::File(log.clone()));
        let mut child = spec.spawn().unwrap();
        child.wait_timeout(PATIENCE).unwrap().unwrap();
    }
    assert_eq!(last_lines(&log, 2), ["two", "three"]);
    assert_eq!(last_lines(&log, 9), ["one", "two", "three"]);
    assert!(last_lines(&dir.path().join("missing"), 3).is_empty());
}

#[test]
fn an_unknown_user_is_none() {
    assert_eq!(User::lookup("no-such-user-here").unwrap(), None);
}

mod needs_root {
    use super::*;

    #[test]
    #[ignore = "needs root"]
    fn a_user_and_its_groups_apply() {
        let user = User::lookup("nobody").unwrap().expect("there is one everywhere");
        let spec = shell("id -u; id -g").user(Some(user.clone()));
        let output = run(&spec, PATIENCE).unwrap();
        assert_eq!(output.stdout_text(), format!("{}\n{}\n", user.uid, user.gid));
    }

    #[test]
    #[ignore = "needs root"]
    fn starting_as_another_user_leaves_this_process_as_it_is() {
        let user = User::lookup("nobody").unwrap().expect("there is one everywhere");
        let status = || std::fs::read_to_string("/proc/self/status").unwrap();
        let uids =
            |text: String| text.lines().find(|line| line.starts_with("Uid:")).map(str::to_owned);
        // SAFETY: plain system calls.
        let dumpable = || unsafe { libc::prctl(libc::PR_GET_DUMPABLE) };
        let before = (uids(status()), dumpable());
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let spec = shell("id -u").user(Some(user.clone()));
                let user_id = user.uid.to_string();
                std::thread::spawn(move || {
                    (0..25).for_each(|_| {
                        let output = run(&spec, PATIENCE).unwrap();
                        assert_eq!(output.stdout_text().trim(), user_id);
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((uids(status()), dumpable()), before);
    }
}

#[test]
fn a_child_that_dies_with_its_parent_survives_the_thread_that_asked() {
    let spec = shell("exec sleep 300").die_with_parent(true);
    let mut child = std::thread::spawn(move || spec.spawn().unwrap()).join().unwrap();
    assert_eq!(child.wait_timeout(Duration::from_millis(200)).unwrap(), None);
    child.kill_group();
}

#[test]
fn a_child_inherits_no_signal_mask_no_descriptors_and_the_right_directory() {
    let dir = tempfile::tempdir().unwrap();
    let held = std::fs::File::create(dir.path().join("only-ours")).unwrap();
    let script =
        "pwd; grep -E 'SigBlk|SigCgt' /proc/self/status; ls -l /proc/self/fd | grep -c only-ours";
    let spec = shell(script).cwd("/usr");
    // From a thread that blocks a signal, as runtimes do.
    let output = std::thread::spawn(move || {
        // SAFETY: valid sets; the mask ends with the thread.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        }
        run(&spec, PATIENCE).unwrap()
    })
    .join()
    .unwrap();
    drop(held);
    let text = output.stdout_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "/usr");
    assert!(lines[1].starts_with("SigBlk:") && lines[1].ends_with("0000000000000000"), "{text}");
    assert_eq!(lines[3].trim(), "0", "{text}");
}

#[test]
fn a_bare_name_is_found_in_the_path_and_a_missing_directory_is_an_error() {
    let output = run(&Spec::new("true"), PATIENCE).unwrap();
    assert!(output.success());
    for spec in [Spec::new("no-such-program-here"), Spec::new("true").cwd("/no/such/directory")] {
        let error = run(&spec, PATIENCE).unwrap_err();
        let ProcessError::Spawn { source, .. } = error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::NotFound);
    }
    assert!(Spec::new("true").arg("zero\0byte").spawn().is_err());
}

#[test]
fn a_start_does_not_copy_this_process() {
    let spec = Spec::new("/bin/true");
    let fastest_start = || {
        let starts = (0..20).map(|_| {
            let begin = SystemClock.elapsed();
            let mut child = spec.spawn().unwrap();
            let took = SystemClock.elapsed() - begin;
            child.wait_timeout(PATIENCE).unwrap().unwrap();
            took
        });
        starts.min().unwrap()
    };
    let small = fastest_start();
    let mut memory = vec![0_u8; 512 << 20];
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    // Copying the page tables of this memory takes about 10 ms where a start takes 1 ms. Beside other tests a start may
    // have to wait; one that copied would never be quick.
    let bound = 2 * small + Duration::from_millis(4);
    let large = (0..50).map(|_| fastest_start()).find(|took| *took < bound);
    assert_eq!(memory[4096], 1);
    assert!(large.is_some(), "none in {bound:?}; {small:?} with less memory");
}

#[test]
fn a_child_writes_only_where_it_may() {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).unwrap();
    let script = "echo ours > a; mkdir b && mv a b/a; echo theirs > link/c; echo $?";
    let spec = Spec::new("/bin/sh").args(["-c", script]).cwd(inside.path());
    let reach = Reach { writes: vec![inside.path().to_owned()], ..Reach::default() };
    let output = run(&spec.clone().reaches_only(reach), PATIENCE).unwrap();
    assert_ne!(output.stdout_text().trim(), "0", "{}", output.stderr_text());
    assert!(inside.path().join("b/a").exists() && !outside.path().join("c").exists());
    // Without the rule it can.
    assert_eq!(run(&spec, PATIENCE).unwrap().stdout_text().trim(), "0");
    assert!(outside.path().join("c").exists());
}

#[test]
fn a_child_reads_and_connects_only_where_it_may() {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for dir in [&inside, &outside] {
        std::fs::write(dir.path().join("a"), "words").unwrap();
    }
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, other) = (listen(), listen());
    let port = |listener: &std::net::TcpListener| listener.local_addr().unwrap().port();
    let reach = Reach {
        reads: vec![inside.path().to_owned()],
        ports: vec![port(&own)],
        ..Reach::default()
    };
    let script = |words: &str| Spec::new("/bin/bash").args(["-c", words]);
    let reads = |dir: &tempfile::TempDir| script(&format!("cat {}/a", dir.path().display()));
    let connects = |port: u16| script(&format!("exec 3<>/dev/tcp/127.0.0.1/{port}"));
    let kills = script(&format!("kill -0 {}", std::process::id()));
    let works = |spec: &Spec| run(spec, PATIENCE).unwrap().success();
    for spec in [reads(&inside), connects(port(&own))] {
        assert!(works(&spec.reaches_only(reach.clone())));
    }
    for spec in [reads(&outside), connects(port(&other)), kills] {
        assert!(works(&spec), "without the rule it can: {spec:?}");
        assert!(!works(&spec.clone().reaches_only(reach.clone())), "{spec:?}");
    }
}

#[test]
fn a_child_gets_no_more_memory_than_it_may_have() {
    let script = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}";
    let spec = Spec::new("/bin/sh").args(["-c", script]);
    let output = run(&spec.memory_bytes_max(100 << 20), PATIENCE).unwrap();
    assert_ne!(output.stdout_text().trim(), "300000000");
}

#[test]
fn who_waits_for_work_is_not_at_work() {
    let asleep = Spec::new("sleep").arg("60").spawn().unwrap();
    let busy = shell("while :; do :; done").spawn().unwrap();
    let seen = |wanted: bool, pid: i32| {
        (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            is_at_work(pid) == wanted
        })
    };
    let found = [seen(false, asleep.pid()), seen(true, busy.pid())];
    for mut child in [asleep, busy] {
        child.kill_group();
    }
    assert_eq!(found, [true, true]);
    // Its first thread waits for this one, by a lock, or is this one.
    assert!(is_at_work(std::process::id() as i32));
}

#[test]
fn a_line_without_an_end_comes_in_parts() {
    let spec = Spec::new("/bin/sh").args(["-c", "head -c 200000 /dev/zero | tr '\\0' x >&2"]);
    let mut child = spec.stderr(Sink::Pipe).spawn().unwrap();
    let lines = child.take_stderr_lines().unwrap();
    let mut lengths = Vec::new();
    while let Line::Text(part) = lines.next_within(PATIENCE) {
        lengths.push(part.len());
    }
    assert_eq!(lengths.iter().sum::<usize>(), 200_000);
    assert!(lengths.iter().all(|length| *length <= 64 << 10), "{lengths:?}");
    child.wait_timeout(PATIENCE).unwrap();
}
