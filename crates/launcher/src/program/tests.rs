use super::*;
use crate::ThisHost;
use offshoot_os::process::{ProcessId, Spec};
use offshoot_types::Share;
use std::path::Path;

fn launch(dir: &Path, script: &str) -> Launch {
    Launch {
        name: "hook".to_owned(),
        command: Spec::new("/bin/sh").args(["-c", script]),
        runtime_dir: dir.to_owned(),
        data_dir: dir.to_owned(),
        ends: true,
        own_dirs: Vec::new(),
        program_dirs: Vec::new(),
        port: 0,
        tcp: false,
        connects: Vec::new(),
        udp: false,
        reaches: Vec::new(),
        memory_bytes: None,
        processes_max: 100,
        share: Share::Usual,
    }
}

/// How it ended, and what it said.
fn ran(script: &str, output_max: Option<usize>) -> (Result<Ran, Failure>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    let ran = run_to_end(
        &ThisHost::as_ourselves(),
        launch(dir.path(), script),
        output_max,
        &mut |line| {
            said.extend(line);
            Ok(())
        },
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "no record is left");
    (ran, said)
}

#[test]
fn what_a_program_writes_is_said_or_kept() {
    let (both, said) = ran("echo one; echo two >&2; printf three", None);
    let both = both.unwrap();
    assert!(both.success() && both.output.is_empty(), "{both:?}");
    assert_eq!(said, ["one", "two", "three"]);

    let (kept, said) = ran("printf 'a\\0b\\n'; echo two >&2; exit 3", Some(4));
    let kept = kept.unwrap();
    assert!(!kept.success());
    assert_eq!((kept.how().as_str(), &kept.output[..]), ("exit status 3", &b"a\0b\n"[..]));
    assert_eq!(said, ["two"]);

    let (closed, said) = ran("exec >&- 2>&-; sleep 0.3", None);
    assert!(closed.unwrap().success() && said.is_empty());
}

#[test]
fn the_signal_that_ends_a_program_is_told() {
    let (killed, _) = ran("kill -KILL $$", None);
    let killed = killed.unwrap();
    assert!(!killed.success());
    assert_eq!(killed.how(), "signal 9");
}

#[test]
fn one_that_writes_too_much_is_told_and_refused() {
    for script in ["printf 12345", "yes", "yes 2>/dev/null; exit 0"] {
        let (refused, _) = ran(script, Some(4));
        assert_eq!(refused.unwrap_err().code, ErrorKind::InvalidInput, "{script}");
    }
}

#[test]
fn whoever_follows_it_ends_it_and_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let script = "sleep 301 & echo $!; wait";
    let mut child = None;
    let ended =
        run_to_end(&ThisHost::as_ourselves(), launch(dir.path(), script), None, &mut |line| {
            child = child.or_else(|| line?.parse::<i32>().ok()).or(child);
            match child {
                Some(_) => Err(Failure::new(ErrorKind::Cancelled, "enough", "")),
                None => Ok(()),
            }
        });
    assert_eq!(ended.unwrap_err().code, ErrorKind::Cancelled);
    assert!(ProcessId::of(child.unwrap()).is_none_or(|child| !child.alive()));

    // What it leaves behind is not waited for; a cell would end it.
    let started = SystemClock.elapsed();
    let (left, said) = ran("sleep 5 & echo $!", None);
    assert!(left.unwrap().success());
    assert!(SystemClock.elapsed() - started < Duration::from_secs(4));
    assert_eq!(said.len(), 1);
}
