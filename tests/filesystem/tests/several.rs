//! Several mounts, mounts of other states, mounts that other programs hold on to.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use offshoot_filesystem_tests::{Server, is_mounted};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn server(options: &[&str]) -> Server {
    Server::start(env!("CARGO_BIN_EXE_serve_mount"), options)
}

#[test]
fn two_clones_are_independent() {
    let mut server = server(&[]);
    let (origin, left, right) =
        (server.mount(), server.mountpoint("left"), server.mountpoint("right"));
    fs::write(origin.join("file"), vec![1; 100_000]).unwrap();
    let snapshot = server.command(&format!("snapshot {}", origin.display()));
    for clone in [&left, &right] {
        let dataset = server.command(&format!("clone {snapshot}"));
        server.command(&format!("mount {dataset} {}", clone.display()));
    }
    fs::write(left.join("file"), b"left").unwrap();
    fs::write(right.join("other"), b"right").unwrap();
    fs::remove_file(right.join("file")).unwrap();
    assert_eq!(fs::read(origin.join("file")).unwrap(), vec![1; 100_000]);
    assert_eq!(fs::read(left.join("file")).unwrap(), b"left");
    assert!(!left.join("other").exists() && !right.join("file").exists());
    assert_eq!(server.command(&format!("unmount {}", left.display())), "Clean");
    assert!(!is_mounted(&left) && is_mounted(&right));
    server.stop();
    assert!(!is_mounted(&right) && !is_mounted(&origin));
}

/// What is written is gathered by the kernel; after a flush an image has all of it, also where files were changed,
/// renamed and removed meanwhile. The flush waits until programs have closed what they wrote: only then is it all there.
#[test]
fn gathered_writes_are_in_the_dataset_after_a_flush() {
    let mut server = server(&["--write-back"]);
    let (mount, clone) = (server.mount(), server.mountpoint("clone"));
    let at = mount.display();
    File::create(mount.join("file")).unwrap();
    for round in 0..5_u8 {
        let file = File::options().write(true).open(mount.join("file")).unwrap();
        for page in 0..200_u64 {
            file.write_all_at(&[round + 1; 8192], (page * 7 % 200) * 8192).unwrap();
        }
        // A name that goes while its times are not told yet.
        fs::write(mount.join("passing"), b"soon gone").unwrap();
        let held = File::options().append(true).open(mount.join("passing")).unwrap();
        (&held).write_all(b" and written to").unwrap();
        fs::remove_file(mount.join("passing")).unwrap();
        fs::write(mount.join("new"), [round; 100]).unwrap();
        fs::rename(mount.join("new"), mount.join("renamed")).unwrap();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop((file, held));
        });
        server.command(&format!("flush {at}"));
        closing.join().unwrap();
        let snapshot = server.command(&format!("snapshot {at}"));
        let dataset = server.command(&format!("clone {snapshot}"));
        server.command(&format!("mount {dataset} {}", clone.display()));
        assert!(fs::read(clone.join("file")).unwrap() == vec![round + 1; 200 * 8192]);
        assert_eq!(fs::read(clone.join("renamed")).unwrap(), [round; 100]);
        assert!(!clone.join("passing").exists());
        assert_eq!(server.command(&format!("unmount {}", clone.display())), "Clean");
    }
    server.command(&format!("flush {at}"));
}

#[test]
fn a_remount_after_a_rewind_shows_nothing_stale() {
    let mut server = server(&[]);
    let mount = server.mount();
    let path = mount.join("file");
    let read = || fs::read(mount.join("file")).unwrap();
    fs::write(&path, vec![b'a'; 64 << 10]).unwrap();
    fs::write(mount.join("gone-later"), b"x").unwrap();
    assert_eq!(read(), vec![b'a'; 64 << 10]);
    let snapshot = server.command(&format!("snapshot {}", mount.display()));
    for round in 0..10_u8 {
        // Same names, inode numbers and lengths; other contents, all in the kernel's caches.
        let file = File::options().write(true).open(&path).unwrap();
        file.write_all_at(&vec![b'b' + round; 64 << 10], 0).unwrap();
        drop(file);
        fs::remove_file(mount.join("gone-later")).unwrap();
        fs::write(mount.join("later"), b"x").unwrap();
        assert_eq!(read(), vec![b'b' + round; 64 << 10]);

        server.command(&format!("unmount {}", mount.display()));
        let dataset = server.command(&format!("clone {snapshot}"));
        server.command(&format!("mount {dataset} {}", mount.display()));
        assert_eq!(read(), vec![b'a'; 64 << 10], "round {round}");
        assert!(mount.join("gone-later").exists() && !mount.join("later").exists());
    }
}

#[test]
fn changes_by_the_engine_are_seen_at_once() {
    let mut server = server(&[]);
    let mount = server.mount();
    let at = mount.display();
    fs::create_dir(mount.join("dir")).unwrap();
    fs::write(mount.join("dir/conf"), b"before").unwrap();
    assert_eq!(fs::read(mount.join("dir/conf")).unwrap(), b"before");
    for round in 0..20 {
        server.command(&format!("write {at} dir/conf after-{round}"));
        let expected = format!("after-{round}");
        assert_eq!(fs::read_to_string(mount.join("dir/conf")).unwrap(), expected);
    }
    assert!(!mount.join("dir/new").exists());
    server.command(&format!("write {at} dir/new text"));
    assert_eq!(fs::read(mount.join("dir/new")).unwrap(), b"text");
    assert_eq!(fs::read_dir(mount.join("dir")).unwrap().count(), 2);
    server.command(&format!("chmod {at} dir/new 600"));
    assert_eq!(fs::metadata(mount.join("dir/new")).unwrap().permissions().mode() & 0o777, 0o600);
    server.command(&format!("remove {at} dir"));
    assert!(!mount.join("dir/conf").exists() && !mount.join("dir").exists());
}

/// The same after a flush where writes are gathered: there the kernel believes its own lengths rather than ours. A server
/// that is started again in such a mount finds other settings and another log than the one before it left.
#[test]
fn changes_by_the_engine_are_seen_where_writes_are_gathered() {
    let mut server = server(&["--write-back"]);
    let (mount, other) = (server.mount(), server.mountpoint("other"));
    let (at, from) = (mount.display(), other.display());
    let snapshot = server.command(&format!("snapshot {at}"));
    let dataset = server.command(&format!("clone {snapshot}"));
    server.command(&format!("mount {dataset} {from}"));
    for round in 1..10_u8 {
        let log = vec![round; usize::from(round) * 100_000];
        fs::write(other.join("log"), &log).unwrap();
        server.command(&format!("flush {from}"));
        // What a server leaves, and what follows in its place: shorter first, then longer.
        fs::write(mount.join("settings"), b"of the server before").unwrap();
        fs::write(mount.join("log"), vec![0; 500_000]).unwrap();
        fs::write(mount.join("pages"), vec![round; 100_000]).unwrap();
        server.command(&format!("flush {at}"));
        let settings = "x".repeat(usize::from(round) * 5);
        server.command(&format!("write {at} settings {settings}"));
        server.command(&format!("remove {at} log"));
        assert!(!mount.join("log").exists());
        server.command(&format!("share {from} log {at} log"));
        assert_eq!(fs::read_to_string(mount.join("settings")).unwrap(), settings);
        assert!(fs::read(mount.join("log")).unwrap() == log);
        assert!(fs::read(mount.join("pages")).unwrap() == vec![round; 100_000]);
    }
}

/// A stream asks for each piece that arrives; what came meanwhile shares a flush.
#[test]
fn flushes_of_a_stream_are_apart() {
    let mut server = server(&["--write-back"]);
    let mount = server.mount();
    let file = File::create(mount.join("log")).unwrap();
    server.command(&format!("stream {}", mount.display()));
    let began = Instant::now();
    for piece in 0..21_u64 {
        file.write_all_at(&[1; 1000], piece * 1000).unwrap();
        file.sync_all().unwrap();
    }
    assert!(began.elapsed() >= Duration::from_millis(200), "{:?}", began.elapsed());
}

#[test]
fn files_are_shared_between_datasets() {
    let mut server = server(&[]);
    let (mount, other) = (server.mount(), server.mountpoint("other"));
    let snapshot = server.command(&format!("snapshot {}", mount.display()));
    let dataset = server.command(&format!("clone {snapshot}"));
    server.command(&format!("mount {dataset} {}", other.display()));
    let content: Vec<u8> = (0..3_000_001_u32).map(|at| (at / 5) as u8).collect();
    fs::write(mount.join("segment"), &content).unwrap();
    fs::write(other.join("place"), b"is taken").unwrap();
    let share = format!("share {} segment {} place", mount.display(), other.display());
    assert_eq!(server.command(&share), "3000001");
    fs::remove_file(mount.join("segment")).unwrap();
    assert!(fs::read(other.join("place")).unwrap() == content);
}

mod needs_fuse_connections {
    use super::*;

    #[test]
    #[ignore = "needs root or /sys/fs/fuse/connections, to abort a connection"]
    fn a_busy_mount_is_taken_away_and_its_users_get_errors() {
        let mut server = server(&[]);
        let mount = server.mount();
        fs::write(mount.join("file"), vec![1; 1 << 20]).unwrap();
        let mut open = File::open(mount.join("file")).unwrap();
        assert_eq!(server.command(&format!("unmount {}", mount.display())), "Forced");
        assert!(!is_mounted(&mount));
        let mut rest = Vec::new();
        let mut written = File::options().write(true).open(mount.join("file"));
        assert!(written.is_err(), "the directory below is empty");
        // What the kernel has cached may still be read; asking the server fails instead of hanging.
        let _ = open.read_to_end(&mut rest);
        assert!(open.sync_all().is_err());
        written = File::create(mount.join("below"));
        assert!(written.unwrap().write_all(b"x").is_ok());
        fs::remove_file(mount.join("below")).unwrap();
        server.command(&format!("mount dataset-1 {}", mount.display()));
        assert_eq!(fs::read(mount.join("file")).unwrap().len(), 1 << 20);
    }
}

#[test]
fn killing_the_server_under_load_leaves_nobody_hanging() {
    let mut server = server(&[]);
    let mount = server.mount();
    let stop = AtomicBool::new(false);
    let rounds: [AtomicU64; 4] = Default::default();
    std::thread::scope(|scope| {
        for (thread, rounds) in rounds.iter().enumerate() {
            let (mount, stop) = (&mount, &stop);
            scope.spawn(move || {
                let path = mount.join(format!("file-{thread}"));
                let file =
                    File::options().read(true).write(true).create_new(true).open(path).unwrap();
                let mut page = vec![7; 8192];
                // Ends with an error, which the server's death must cause; otherwise the watchdog
                // barks.
                let failed = loop {
                    let offset = (rounds.load(Ordering::Relaxed) * 37 % 100) * 8192;
                    let result = match thread {
                        0 => file.write_all_at(&page, offset).and_then(|()| file.sync_data()),
                        1 => fs::read_dir(mount).map(|entries| entries.for_each(drop)),
                        2 => file.set_len(0).and_then(|()| file.write_all_at(&page, offset)),
                        _ => file
                            .write_all_at(&page, 0)
                            .and_then(|()| file.read_exact_at(&mut page, 0)),
                    };
                    if let Err(error) = result {
                        break error;
                    }
                    rounds.fetch_add(1, Ordering::Relaxed);
                };
                assert!(stop.load(Ordering::Relaxed), "before the kill: {failed}");
            });
        }
        while rounds.iter().any(|rounds| rounds.load(Ordering::Relaxed) < 20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        // Waits for the process: it must not hang in requests of its own.
        server.kill();
    });
    offshoot_filesystem_tests::clean_stale(&server.path(""));
    server.start_again();
    assert!(fs::read_dir(&mount).unwrap().count() <= 4);
}

#[test]
fn a_full_pool_refuses_writes_loses_nothing_and_recovers() {
    let mut server = server(&["--capacity-mib=300"]);
    let mount = server.mount();
    // Incompressible, and different everywhere.
    let mut state = 1_u64;
    let mut chunk = vec![0; 1 << 20];
    let mut refill = |chunk: &mut Vec<u8>| {
        for word in chunk.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
    };
    let mut written = Vec::new();
    let error = loop {
        refill(&mut chunk);
        let path = mount.join(format!("file-{}", written.len()));
        let result = File::create(&path)
            .and_then(|mut file| file.write_all(&chunk).and_then(|()| file.sync_all()));
        match result {
            Ok(()) => written.push(chunk[..8].to_vec()),
            Err(error) => break error,
        }
        assert!(written.len() < 300, "300 MiB fit into 300 MiB");
    };
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert!(written.len() > 50, "only {} MiB fitted", written.len());
    let check = |count: usize| {
        for (number, start) in written.iter().enumerate().take(count) {
            let content = fs::read(mount.join(format!("file-{number}"))).unwrap();
            assert_eq!((content.len(), &content[..8]), (1 << 20, &start[..]), "file {number}");
        }
    };
    check(written.len());
    let half = written.len() / 2;
    for number in half..=written.len() {
        let _ = fs::remove_file(mount.join(format!("file-{number}")));
    }
    let deadline = Instant::now() + Duration::from_secs(120);
    let again = loop {
        refill(&mut chunk);
        let result = File::create(mount.join("again"))
            .and_then(|mut file| file.write_all(&chunk).and_then(|()| file.sync_all()));
        match result {
            Ok(()) => break chunk.clone(),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
                assert!(Instant::now() < deadline, "the room never came back");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    };
    server.kill();
    offshoot_filesystem_tests::clean_stale(&server.path(""));
    server.start_again();
    check(half);
    assert!(fs::read(mount.join("again")).unwrap() == again);
}

mod needs_root {
    use super::*;

    #[test]
    #[ignore = "needs root"]
    fn a_mount_whose_connection_was_aborted_is_replaced() {
        let mut server = server(&[]);
        let mount = server.mount();
        fs::write(mount.join("file"), b"content").unwrap();
        let path = std::ffi::CString::new(mount.as_os_str().as_encoded_bytes()).unwrap();
        let open = File::open(mount.join("file")).unwrap();
        // Busy, so that the order only aborts the connection.
        // SAFETY: a valid C string.
        unsafe { libc::umount2(path.as_ptr(), libc::MNT_FORCE) };
        drop(open);
        // It answers nobody, until its session has noticed and unmounted it.
        match fs::read_dir(&mount) {
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN)),
            Ok(mut names) => assert!(names.next().is_none(), "it serves its files"),
        }
        server.command(&format!("mount dataset-1 {}", mount.display()));
        assert_eq!(fs::read(mount.join("file")).unwrap(), b"content");
        let twice = server.try_command(&format!("mount dataset-1 {}", mount.display()));
        assert!(twice.unwrap_err().contains("a dataset is mounted there"));
        server.stop();
        assert!(!is_mounted(&mount));
    }

    /// As services with mounts of their own, containers and `unshare --mount` make them: whoever began with a copy of this
    /// host's mounts keeps their file systems.
    #[test]
    #[ignore = "needs root"]
    fn a_copy_of_the_mount_in_another_namespace_holds_nobody_up() {
        let mut server = server(&[]);
        let mount = server.mount();
        fs::write(mount.join("file"), b"content").unwrap();
        let script = r#"cat "$1/file"; echo; read -r _; cat "$1/file" 2>&1; true"#;
        let mut other = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
            .arg(&mount)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(other.stdout.take().unwrap());
        let mut line = String::new();
        printed.read_line(&mut line).unwrap();
        assert_eq!(line, "content\n");

        let begun = Instant::now();
        assert_eq!(server.command(&format!("unmount {}", mount.display())), "Clean");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        server.command(&format!("mount dataset-1 {}", mount.display()));
        assert_eq!(fs::read(mount.join("file")).unwrap(), b"content");

        drop(other.stdin.take());
        let mut rest = String::new();
        printed.read_to_string(&mut rest).unwrap();
        other.wait().unwrap();
        assert!(rest.contains("not connected"), "the copy is served on: {rest}");
    }

    #[test]
    #[ignore = "needs root"]
    fn only_with_allow_other_do_other_users_get_in() {
        for (options, allowed) in [(&["--allow-other"][..], true), (&[][..], false)] {
            let server = server(options);
            fs::write(server.mount().join("open"), b"all").unwrap();
            fs::write(server.mount().join("closed"), b"none").unwrap();
            let closed = fs::Permissions::from_mode(0o600);
            fs::set_permissions(server.mount().join("closed"), closed).unwrap();
            let cat = |name: &str| {
                let output = Command::new("cat")
                    .arg(server.mount().join(name))
                    .uid(65534)
                    .gid(65534)
                    .output()
                    .unwrap();
                output.status.success()
            };
            assert_eq!(cat("open"), allowed);
            assert!(!cat("closed"));
        }
    }

    #[test]
    #[ignore = "needs root"]
    fn a_user_without_access_to_fuse_is_told_what_mends_it() {
        let dir = user_directory();
        // In the test's own mount namespace only root may use it, whatever this host has set up.
        let script = r#"
        set -eu
        mknod "$1/fuse" c 10 229
        chmod 600 "$1/fuse"
        mount --bind "$1/fuse" /dev/fuse
        exec setpriv --reuid=65534 --regid=65534 --clear-groups "$1/serve_mount" "$1/pool" "$1/mount"
    "#;
        let output = Command::new("timeout")
            .args(["--kill-after=2", "120", "unshare", "--mount", "sh", "-c", script, "sh"])
            .arg(dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("/dev/fuse may not be opened by this user"), "{text}");
    }
}

/// As the engine of an ordinary user would: mount through fusermount3, use, die, come back.
const ORDINARY_USER: &str = r#"
set -eu
server=
trap '[ -z "$server" ] || kill -KILL "$server"' EXIT
trap 'exit 1' TERM
start() {
  "$1/serve_mount" "$1/pool" "$1/mount" >"$1/log" 2>&1 </dev/null &
  server=$!
  for _ in $(seq 600); do
    grep -q '^ready' "$1/log" && return
    kill -0 "$server" || break
    sleep 0.1
  done
  cat "$1/log"
  exit 1
}
start "$1"
echo hello >"$1/mount/file"
sync "$1/mount/file"
kill -KILL "$server"
wait "$server" || true
if cat "$1/mount/file" 2>/dev/null; then echo "the mount of a killed server works"; exit 1; fi
start "$1"
[ "$(cat "$1/mount/file")" = hello ]
[ "$(stat -c %u "$1/mount/file")" = "$(id -u)" ]
kill -TERM "$server"
wait "$server"
server=
[ -z "$(ls "$1/mount")" ]
if grep -F "$1/mount" /proc/self/mountinfo; then echo "still mounted"; exit 1; fi
echo "all is well"
"#;

/// Whoever may use `/dev/fuse` on this host: in the test's own mount namespace everybody may, as
/// distributions set it up.
#[test]
fn an_ordinary_user_mounts_and_cleans_up() {
    let dir = user_directory();
    let as_user = r#"exec sh -c "$2" sh "$1""#;
    let as_root = r#"
        set -eu
        mknod "$1/fuse" c 10 229
        chmod 666 "$1/fuse"
        mount --bind "$1/fuse" /dev/fuse
        exec setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "$2" sh "$1"
    "#;
    let (wrapper, script) = match rustix::process::geteuid().is_root() {
        true => (&["unshare", "--mount"][..], as_root),
        false => (&[][..], as_user),
    };
    let output = Command::new("timeout")
        .args(["--kill-after=2", "120"])
        .args(wrapper)
        .args(["sh", "-c", script, "sh"])
        .arg(dir.path())
        .arg(ORDINARY_USER)
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stdout == "all is well\n", "{stdout}{stderr}");
}

/// A directory where an ordinary user (65534 where root runs the test) finds the server program, an
/// empty pool and a mount point.
fn user_directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_serve_mount"), dir.path().join("serve_mount")).unwrap();
    for path in ["pool", "mount"] {
        fs::create_dir(dir.path().join(path)).unwrap();
    }
    for path in ["", "pool", "mount"].iter().filter(|_| rustix::process::geteuid().is_root()) {
        std::os::unix::fs::chown(dir.path().join(path), Some(65534), Some(65534)).unwrap();
    }
    dir
}
