//! The process that serves a mount is killed; programs on the mount wait for the next one and notice
//! nothing. The test itself is the keeper.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests measure time themselves

use offshoot_filesystem_tests::{
    Kept, delivery, delivery_name, read_during_writes, synchronous_writer,
};
use offshoot_fuse::FuseOptions;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const BLOCK: usize = 8192;
const WORKERS: u64 = 3;

/// Deterministic numbers of one worker.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// What one worker expects in its directory: file name → content.
struct Worker {
    dir: PathBuf,
    numbers: Numbers,
    files: BTreeMap<String, Vec<u8>>,
    made: u64,
    /// A file without a name.
    unnamed: Option<(File, Vec<u8>)>,
}

impl Worker {
    fn new(mount: &Path, number: u64) -> Worker {
        let dir = mount.join(format!("worker-{number}"));
        fs::create_dir(&dir).unwrap();
        let numbers = Numbers(number * 7919 + 1);
        Worker { dir, numbers, files: BTreeMap::new(), made: 0, unnamed: None }
    }

    fn some_file(&mut self) -> Option<String> {
        if self.files.is_empty() {
            return None;
        }
        let index = self.numbers.below(self.files.len() as u64) as usize;
        self.files.keys().nth(index).cloned()
    }

    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("file-{}", self.made)
    }

    /// One operation, also applied to the expectation. Nothing may fail.
    fn step(&mut self) -> io::Result<()> {
        let existing = self.some_file();
        match (self.numbers.below(16), existing) {
            (0, _) | (_, None) => self.create(),
            (1..=6, Some(name)) => self.write(&name),
            (7, Some(name)) => File::open(self.dir.join(name))?.sync_all(),
            (8 | 9, Some(name)) => self.check(&name),
            (10, Some(name)) => self.rename(name),
            (11, Some(name)) => self.unlink(name),
            (12, Some(name)) => self.link_and_unlink(&name),
            (13, _) => {
                let dir = self.dir.join("directory");
                fs::create_dir(&dir)?;
                fs::remove_dir(&dir)
            }
            (14, Some(name)) => self.cut(&name),
            (_, _) => self.use_unnamed(),
        }
    }

    fn create(&mut self) -> io::Result<()> {
        let name = self.fresh();
        OpenOptions::new().write(true).create_new(true).open(self.dir.join(&name))?;
        self.files.insert(name, Vec::new());
        Ok(())
    }

    fn write(&mut self, name: &str) -> io::Result<()> {
        let block = self.numbers.below(32) as usize;
        let data = vec![self.numbers.below(256) as u8; BLOCK];
        let file = OpenOptions::new().write(true).open(self.dir.join(name))?;
        file.write_all_at(&data, (block * BLOCK) as u64)?;
        put(self.files.get_mut(name).unwrap(), block * BLOCK, &data);
        Ok(())
    }

    fn check(&mut self, name: &str) -> io::Result<()> {
        let content = fs::read(self.dir.join(name))?;
        assert!(content == self.files[name], "{name} has other content");
        Ok(())
    }

    fn rename(&mut self, name: String) -> io::Result<()> {
        let new = if self.numbers.below(2) == 0 {
            self.fresh()
        } else {
            self.some_file().filter(|other| *other != name).unwrap_or_else(|| "renamed".to_owned())
        };
        fs::rename(self.dir.join(&name), self.dir.join(&new))?;
        let content = self.files.remove(&name).unwrap();
        self.files.insert(new, content);
        Ok(())
    }

    fn unlink(&mut self, name: String) -> io::Result<()> {
        let file = OpenOptions::new().read(true).write(true).open(self.dir.join(&name))?;
        fs::remove_file(self.dir.join(&name))?;
        self.unnamed = Some((file, self.files.remove(&name).unwrap()));
        Ok(())
    }

    fn link_and_unlink(&mut self, name: &str) -> io::Result<()> {
        let other = self.dir.join("second-name");
        fs::hard_link(self.dir.join(name), &other)?;
        assert!(fs::read(&other)? == self.files[name], "another name, other content");
        fs::remove_file(&other)
    }

    fn cut(&mut self, name: &str) -> io::Result<()> {
        let len = self.numbers.below(20 * BLOCK as u64);
        OpenOptions::new().write(true).open(self.dir.join(name))?.set_len(len)?;
        self.files.get_mut(name).unwrap().resize(len as usize, 0);
        Ok(())
    }

    /// A file stays without a name while it is open.
    fn use_unnamed(&mut self) -> io::Result<()> {
        let (at, byte) = (self.numbers.below(8) as usize * BLOCK, self.numbers.below(256) as u8);
        let Some((file, content)) = &mut self.unnamed else { return Ok(()) };
        let mut held = vec![0; content.len()];
        file.read_exact_at(&mut held, 0)?;
        assert!(held == *content, "a file without a name has other content");
        file.write_all_at(&[byte; BLOCK], at as u64)?;
        put(content, at, &[byte; BLOCK]);
        Ok(())
    }

    /// The directory holds exactly what is expected.
    fn check_all(&mut self) {
        let there = fs::read_dir(&self.dir).unwrap();
        let mut names: Vec<String> =
            there.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, self.files.keys().cloned().collect::<Vec<_>>());
        for name in names {
            self.check(&name).unwrap();
        }
    }
}

fn put(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    content.resize(content.len().max(at + data.len()), 0);
    content[at..at + data.len()].copy_from_slice(data);
}

/// Runs workers until `done` and returns them; each panics at the first thing that is not as
/// expected.
fn work(mount: &Path, done: &Arc<AtomicBool>, steps: &Arc<AtomicU64>) -> Vec<JoinHandle<Worker>> {
    let start = |number| {
        let (mut worker, done) = (Worker::new(mount, number), done.clone());
        let steps = steps.clone();
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                worker.step().unwrap_or_else(|error| panic!("worker {number}: {error}"));
                steps.fetch_add(1, Ordering::Relaxed);
            }
            worker
        })
    };
    (0..WORKERS).map(start).collect()
}

#[test]
fn programs_do_not_notice_that_the_server_is_killed() {
    let kills: u64 = std::env::var("OFFSHOOT_TEST_KILLS").map_or(5, |text| text.parse().unwrap());
    let mut kept = Kept::start(env!("CARGO_BIN_EXE_serve_mount"));
    let mount = kept.server.mount();
    let (done, steps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let workers = work(&mount, &done, &steps);
    for round in 0..kills {
        let before = steps.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100 + 37 * (round % 5)));
        kept.kill_and_start();
        let deadline = Instant::now() + Duration::from_secs(20);
        while steps.load(Ordering::Relaxed) <= before && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(steps.load(Ordering::Relaxed) > before, "round {round}: nobody goes on");
    }
    done.store(true, Ordering::Relaxed);
    let mut workers: Vec<Worker> =
        workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    // First through the kernel's caches, then without them.
    workers.iter_mut().for_each(Worker::check_all);
    workers.iter_mut().for_each(|worker| drop(worker.unnamed.take()));
    println!("{} steps, {kills} kills", steps.load(Ordering::Relaxed));
    let _server = kept.stop();
}

/// A process that is killed while it waits for its own answer cannot end by itself: the keeper sees to that.
#[test]
fn who_asks_itself_when_it_is_killed_ends_all_the_same() {
    for _ in 0..3 {
        let fail = |dir: &Path| {
            let delivery = delivery(&delivery_name(), FuseOptions::default()).unwrap();
            println!("failed: {:?}", delivery.fail_waiting(dir, &[]).unwrap());
        };
        let program = env!("CARGO_BIN_EXE_serve_mount");
        let mut kept = Kept::releasing(program, &["--ask-itself=4"], fail);
        std::thread::sleep(Duration::from_millis(200));
        // It waits until the process has ended.
        kept.server.kill();
        offshoot_filesystem_tests::clean_stale(&kept.server.path(""));
    }
}

#[test]
fn what_was_written_and_not_synced_is_there_after_a_kill() {
    let mut kept = Kept::start(env!("CARGO_BIN_EXE_serve_mount"));
    let path = kept.server.mount().join("file");
    let content: Vec<u8> = (0..20 * BLOCK).map(|index| (index % 253) as u8).collect();
    fs::write(&path, &content).unwrap();
    kept.kill_and_start();
    // Past the kernel's cache: what the new server has counts.
    fs::write("/proc/sys/vm/drop_caches", "1").ok();
    assert!(fs::read(&path).unwrap() == content);
    fs::remove_file(&path).unwrap();
    let mut server = kept.stop();
    server.start_without_keeper();
    assert_eq!(fs::read_dir(server.mount()).unwrap().count(), 0);
    server.stop();
}

/// Waits for a request of this kind (`FUSE_READ`, …) and returns it whole, without an answer to it. Before it the kernel
/// may ask for the file's capabilities, of which there are none.
fn request(device: &OwnedFd, kind: u32) -> Vec<u8> {
    const FUSE_GETXATTR: u32 = 22;
    let mut request = vec![0; 17 << 20];
    loop {
        let len = rustix::io::read(device, &mut request).unwrap();
        if word(&request, 4) != FUSE_GETXATTR {
            request.truncate(len);
            assert_eq!(word(&request, 4), kind, "the kind of the request");
            return request;
        }
        let none = [&16_u32.to_ne_bytes()[..], &(-libc::ENODATA).to_ne_bytes(), &request[8..16]];
        rustix::io::write(device, &none.concat()).unwrap();
    }
}

fn word(request: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*request[at..].first_chunk().unwrap())
}

/// A request is read into memory that was there before (`offshoot_fuse::Heap`): it must not be longer than that. What is
/// read may be more: that is in the answer.
#[test]
fn large_writes_come_in_requests_of_128_kib_and_large_reads_whole() {
    const FUSE_READ: u32 = 15;
    const FUSE_WRITE: u32 = 16;
    const LARGE: usize = 1 << 20;
    /// `fuse_in_header` and `fuse_write_in`.
    const HEADERS: usize = 40 + 40;
    let mut kept = Kept::start(env!("CARGO_BIN_EXE_serve_mount"));
    let path = kept.server.mount().join("file");
    let content: Vec<u8> = (0..LARGE).map(|index| (index % 251) as u8).collect();
    let writer = File::create(&path).unwrap();
    let reader = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
    kept.server.kill();
    let device = kept.device();
    let written = content.clone();
    let write = std::thread::spawn(move || writer.write_all_at(&written, 0).unwrap());
    assert_eq!(request(&device, FUSE_WRITE).len(), HEADERS + (128 << 10));
    // What was read here is asked for again.
    kept.server.start_again();
    write.join().unwrap();
    kept.server.kill();
    let read = std::thread::spawn(move || {
        let mut space = vec![0; LARGE + 4096];
        let at = space.as_ptr().align_offset(4096);
        reader.read_exact_at(&mut space[at..at + LARGE], 0).unwrap();
        space[at..at + LARGE].to_vec()
    });
    let asked = request(&device, FUSE_READ);
    assert_eq!(word(&asked, 40 + 16), LARGE as u32, "fuse_read_in.size");
    kept.server.start_again();
    assert!(read.join().unwrap() == content, "it reads what was written");
    drop(device);
    drop(kept.stop());
}

/// What was opened before the kill and what is opened after it agree on the kernel's cache.
#[test]
fn no_reader_sees_less_than_a_synchronous_write_left_after_a_kill() {
    let mut kept = Kept::start(env!("CARGO_BIN_EXE_serve_mount"));
    let path = kept.server.mount().join("log");
    let writer = synchronous_writer(&path);
    writer.write_all_at(&[0; BLOCK], 0).unwrap();
    kept.kill_and_start();
    read_during_writes(&writer, &path);
    drop(writer);
    drop(kept.stop());
}

mod needs_root {
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Runs a shell script as a user in a directory; what it printed.
    fn run_as(uid: u32, dir: &Path, script: &str) -> io::Result<String> {
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", script]).current_dir(dir).uid(uid).gid(uid).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }

    #[test]
    #[ignore = "needs root"]
    fn files_are_shown_as_one_user_s_who_stays_the_same_after_a_kill() {
        const SHOWN: u32 = 1_900_000_001;
        let options = ["--allow-other", &format!("--owner={SHOWN}")];
        let mut kept = Kept::start_with(env!("CARGO_BIN_EXE_serve_mount"), &options);
        let mount = kept.server.mount();
        fs::set_permissions(&mount, fs::Permissions::from_mode(0o700)).unwrap();
        run_as(SHOWN, &mount, "umask 077; echo one >mine; mkdir dir; chown $(id -u) mine").unwrap();
        assert!(run_as(SHOWN + 1, &mount, "cat mine").is_err(), "another user reads it");
        kept.server.change_option("owner", &(SHOWN + 1).to_string());
        kept.kill_and_start();
        fs::write("/proc/sys/vm/drop_caches", "3").ok();
        for name in ["", "mine", "dir"] {
            let found = fs::metadata(mount.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (SHOWN, SHOWN), "'{name}'");
        }
        run_as(SHOWN, &mount, "echo two >>mine; echo three >dir/new").unwrap();
        assert_eq!(run_as(SHOWN, &mount, "cat mine dir/new").unwrap(), "one\ntwo\nthree");
        // The dataset has the user of the engine, for whoever gets a clone.
        let mut server = kept.stop();
        server.change_option("owner", "4711");
        server.start_without_keeper();
        let found = fs::metadata(server.mount().join("mine")).unwrap();
        assert_eq!((found.uid(), found.mode() & 0o777), (4711, 0o600));
        server.stop();
    }
}
