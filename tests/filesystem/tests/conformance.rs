//! What `offshoot_delivery` promises, checked for the delivery that `OFFSHOOT_TEST_DELIVERY` names. With `mount.rs`,
//! `several.rs`, `takeover.rs` and `scripts/test-filesystem.sh` (pjdfstest and fsx) this is the suite of a delivery.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests measure time themselves

use offshoot_filesystem_tests::{Kept, Server};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const BLOCK: usize = 8192;

fn server(options: &[&str]) -> Server {
    Server::start(env!("CARGO_BIN_EXE_serve_mount"), options)
}

/// A block that says in each of its words which version it is.
fn version(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK / 8)
}

/// The version of a block; `Err` with two of them when it is torn.
fn version_of(block: &[u8]) -> Result<u64, (u64, u64)> {
    let mut words = block.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    let first = words.next().unwrap();
    words.find(|word| *word != first).map_or(Ok(first), |other| Err((first, other)))
}

/// Memory that may be read into past the kernel's cache.
fn aligned(memory: &mut [u8]) -> &mut [u8] {
    let skipped = memory.as_ptr().align_offset(BLOCK);
    &mut memory[skipped..skipped + BLOCK]
}

/// Promise 1, for a concurrent reader. Bypassing the kernel's caches: what the engine answers counts. (Linux
/// promises nothing of the kind for a page cache, whose reader may see both halves of a write.)
#[test]
fn a_block_is_never_seen_torn() {
    const BLOCKS: u64 = 4;
    let server = server(&["--snapshots"]);
    let path = server.mount().join("pages");
    fs::write(&path, vec![0; BLOCKS as usize * BLOCK]).unwrap();
    let done = AtomicBool::new(false);
    let read = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for start in 0..2 {
            let (path, done, read) = (&path, &done, &read);
            scope.spawn(move || {
                let file =
                    File::options().read(true).custom_flags(libc::O_DIRECT).open(path).unwrap();
                let mut memory = vec![0; 2 * BLOCK];
                let mut seen = [0; BLOCKS as usize];
                for block in (0..BLOCKS).cycle().skip(start) {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let page = aligned(&mut memory);
                    file.read_exact_at(page, block * BLOCK as u64).unwrap();
                    let version = version_of(page).unwrap_or_else(|(one, other)| {
                        panic!("block {block} is torn: of versions {one} and {other}")
                    });
                    let last = std::mem::replace(&mut seen[block as usize], version);
                    assert!(version >= last, "block {block}: {version} after {last}");
                    read.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let file = File::options().write(true).open(&path).unwrap();
        let until = Instant::now() + Duration::from_secs(3);
        for number in (1_u64..).take_while(|_| Instant::now() < until) {
            file.write_all_at(&version(number), number % BLOCKS * BLOCK as u64).unwrap();
            if number % 64 == 0 {
                file.sync_data().unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(read.load(Ordering::Relaxed) > 100, "hardly anything was read");
}

/// Promises 1 and 2, over the death of an engine whose clients do not survive it, as over a power loss.
#[test]
fn a_block_is_whole_after_a_crash_and_not_older_than_what_was_synced() {
    const BLOCKS: u64 = 16;
    let mut server = server(&[]);
    let path = server.mount().join("pages");
    fs::write(&path, vec![0; BLOCKS as usize * BLOCK]).unwrap();
    let mut number = 0;
    for round in 0..3 {
        // For each block the version that was synced last, and the one that was written last.
        let synced: [AtomicU64; BLOCKS as usize] = Default::default();
        let written: [AtomicU64; BLOCKS as usize] = Default::default();
        let last = std::thread::scope(|scope| {
            let (synced, written, path) = (&synced, &written, &path);
            let writing = scope.spawn(move || {
                let file = OpenOptions::new().write(true).open(path).unwrap();
                loop {
                    number += 1;
                    let block = number % BLOCKS;
                    written[block as usize].store(number, Ordering::SeqCst);
                    let mut done = file.write_all_at(&version(number), block * BLOCK as u64);
                    if done.is_ok() && number % 5 == 0 {
                        done = file.sync_data();
                        if done.is_ok() {
                            for (synced, written) in synced.iter().zip(written) {
                                synced.store(written.load(Ordering::SeqCst), Ordering::SeqCst);
                            }
                        }
                    }
                    if done.is_err() {
                        return number;
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(300 + 50 * round));
            server.kill();
            writing.join().unwrap()
        });
        number = last;
        offshoot_filesystem_tests::clean_stale(&server.path(""));
        server.start_again();
        let content = fs::read(&path).unwrap();
        for (block, page) in content.chunks(BLOCK).enumerate() {
            let found = version_of(page).unwrap_or_else(|(one, other)| {
                panic!("block {block} is torn: of versions {one} and {other}")
            });
            let least = synced[block].load(Ordering::SeqCst);
            let most = written[block].load(Ordering::SeqCst);
            assert!(found >= least, "block {block}: {found} where {least} was synced");
            assert!(most == 0 || found <= most, "block {block}: {found} where {most} was the last");
        }
        assert!(
            synced.iter().any(|synced| synced.load(Ordering::SeqCst) > 0),
            "nothing was synced"
        );
    }
}

/// Everything that a client may cache of a tree: names, missing names, attributes, contents, mapped pages.
fn look(mount: &Path, file: &str) -> (Vec<String>, bool, u64, Vec<u8>) {
    let mut names: Vec<String> = fs::read_dir(mount)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let path = mount.join(file);
    let length = fs::metadata(&path).unwrap().len();
    (names, mount.join("missing").exists(), length, fs::read(&path).unwrap())
}

/// Promise 3: a rewind puts the dataset's own earlier state at its location.
#[test]
fn after_a_rewind_nothing_of_later_is_served() {
    let mut server = server(&[]);
    let mount = server.mount();
    fs::write(mount.join("file"), vec![b'a'; 5 * BLOCK]).unwrap();
    let before = look(&mount, "file");
    let snapshot = server.command(&format!("snapshot {}", mount.display()));
    for round in 0..4_u8 {
        // The same names, inode numbers and, at first, lengths: only the content distinguishes them.
        let file = File::options().write(true).open(mount.join("file")).unwrap();
        file.write_all_at(&vec![b'b' + round; 5 * BLOCK], 0).unwrap();
        if round % 2 == 1 {
            file.set_len(BLOCK as u64).unwrap();
            fs::write(mount.join("missing"), b"there").unwrap();
        }
        drop(file);
        assert_ne!(look(&mount, "file"), before, "it is in the client's caches");
        server.command(&format!("unmount {}", mount.display()));
        let dataset = server.command(&format!("clone {snapshot}"));
        server.command(&format!("mount {dataset} {}", mount.display()));
        assert_eq!(look(&mount, "file"), before, "round {round}");
    }
}

/// Promise 3: a refresh puts another dataset's newer state at the location.
#[test]
fn after_a_refresh_nothing_of_before_is_served() {
    let mut server = server(&[]);
    let (source, copy) = (server.mount(), server.mountpoint("copy"));
    for round in 0..4_u8 {
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        let file = options.open(source.join("file")).unwrap();
        file.write_all_at(&vec![b'a' + round; 3 * BLOCK], 0).unwrap();
        drop(file);
        fs::write(source.join(format!("made-{round}")), b"x").unwrap();
        let expected = look(&source, "file");
        let snapshot = server.command(&format!("snapshot {}", source.display()));
        let dataset = server.command(&format!("clone {snapshot}"));
        if round > 0 {
            server.command(&format!("unmount {}", copy.display()));
        }
        server.command(&format!("mount {dataset} {}", copy.display()));
        assert_eq!(look(&copy, "file"), expected, "round {round}");
        // What the copy's own clients do to it is gone with the next refresh, too.
        fs::write(copy.join("missing"), b"there").unwrap();
        fs::write(copy.join("file"), b"of the copy").unwrap();
        assert_eq!(look(&copy, "file").3, b"of the copy");
    }
}

/// Promises 4 and 5: killed under load, and resumed from what was handed over.
#[test]
fn what_was_acknowledged_is_there_when_the_engine_was_killed_under_load() {
    const KILLS: u64 = 3;
    let mut kept = Kept::start(env!("CARGO_BIN_EXE_serve_mount"));
    let mount = kept.server.mount();
    let done = AtomicBool::new(false);
    let acknowledged: [AtomicU64; 3] = Default::default();
    std::thread::scope(|scope| {
        for (worker, acknowledged) in acknowledged.iter().enumerate() {
            let (mount, done) = (&mount, &done);
            scope.spawn(move || {
                let dir = mount.join(format!("worker-{worker}"));
                fs::create_dir(&dir).unwrap();
                while !done.load(Ordering::Relaxed) {
                    let number = acknowledged.load(Ordering::Relaxed) + 1;
                    step(&dir, number).unwrap_or_else(|error| panic!("{worker}: {error}"));
                    acknowledged.store(number, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..KILLS {
            let before = acknowledged.each_ref().map(|count| count.load(Ordering::Relaxed));
            std::thread::sleep(Duration::from_millis(300));
            kept.kill_and_start();
            let deadline = Instant::now() + Duration::from_secs(20);
            let moved = |(count, before): (&AtomicU64, u64)| count.load(Ordering::Relaxed) > before;
            while !acknowledged.iter().zip(before).all(moved) && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(acknowledged.iter().zip(before).all(moved), "somebody does not go on");
        }
        done.store(true, Ordering::Relaxed);
    });
    // What is acknowledged at the very end counts, too: nothing is synced by this test.
    kept.kill_and_start();
    for (worker, acknowledged) in acknowledged.iter().enumerate() {
        let (dir, last) =
            (mount.join(format!("worker-{worker}")), acknowledged.load(Ordering::Relaxed));
        assert!(last > 0);
        let names = fs::read_dir(&dir).unwrap().count() as u64;
        assert_eq!(names, last.min(KEPT), "names of worker {worker}");
        for number in last.saturating_sub(KEPT - 1).max(1)..=last {
            let content = fs::read(dir.join(format!("kept-{number}"))).unwrap();
            assert_eq!(version_of(&content), Ok(number), "of worker {worker}");
        }
    }
    kept.stop();
}

/// Files that a worker leaves.
const KEPT: u64 = 10;

/// Makes a file, gives it another name, removes an old one: each would fail if done twice.
fn step(dir: &Path, number: u64) -> io::Result<()> {
    let made = dir.join(format!("new-{number}"));
    let file = OpenOptions::new().write(true).create_new(true).open(&made)?;
    file.write_all_at(&version(number), 0)?;
    fs::rename(&made, dir.join(format!("kept-{number}")))?;
    if number > KEPT {
        fs::remove_file(dir.join(format!("kept-{}", number - KEPT)))?;
    }
    fs::create_dir(dir.join("directory"))?;
    fs::remove_dir(dir.join("directory"))
}
