//! A process that serves a mount, and what tests do with it.

use offshoot_delivery::Delivery;
use offshoot_fuse::{Fuse, FuseOptions};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long a server may take for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a test may take that usually takes seconds.
const TEST_TIMEOUT: Duration = Duration::from_secs(300);

/// The delivery that is tested: as the variable `OFFSHOOT_TEST_DELIVERY` says, else FUSE.
pub fn delivery_name() -> String {
    std::env::var("OFFSHOOT_TEST_DELIVERY").unwrap_or_else(|_| "fuse".to_owned())
}

/// A delivery by its name; a new one gets its row here and must pass all that is in this crate. The options are
/// FUSE's own.
///
/// # Errors
/// If there is none of this name.
pub fn delivery(name: &str, options: FuseOptions) -> Result<Arc<dyn Delivery>, String> {
    match name {
        "fuse" => Ok(Arc::new(Fuse::with(options))),
        _ => Err(format!("no delivery is called {name}")),
    }
}

/// Removes what killed servers left below a directory; returns what.
pub fn clean_stale(dir: &Path) -> Vec<PathBuf> {
    let delivery = delivery(&delivery_name(), FuseOptions::default()).unwrap();
    delivery.clean_stale(dir, &[]).unwrap()
}

/// Ends the whole test process, with a message, when it is not dropped in time: a test that hangs
/// must fail, not stop everything. The mounts are aborted first, so that nothing is left waiting.
pub struct Watchdog {
    _disarm: mpsc::Sender<()>,
}

impl Watchdog {
    /// Arms it for a test that uses mounts below `dir`.
    pub fn new(dir: &Path, limit: Duration) -> Watchdog {
        let (sender, receiver) = mpsc::channel::<()>();
        let dir = dir.to_owned();
        std::thread::spawn(move || {
            if receiver.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("a test under {} took longer than {limit:?}", dir.display());
                detach_below(&dir);
                std::process::abort();
            }
        });
        Watchdog { _disarm: sender }
    }
}

/// Aborts and detaches every mount below a directory.
pub fn detach_below(dir: &Path) {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = table.lines().rev().filter_map(|line| line.split(' ').nth(4));
    for point in points.map(Path::new).filter(|point| point.starts_with(dir)) {
        let Ok(path) = CString::new(point.as_os_str().as_bytes()) else { continue };
        // SAFETY: a valid C string.
        let detached = unsafe {
            libc::umount2(path.as_ptr(), libc::MNT_FORCE);
            libc::umount2(path.as_ptr(), libc::MNT_DETACH)
        };
        if detached != 0 {
            let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(point).status();
        }
    }
}

/// Whether something is mounted exactly there.
pub fn is_mounted(path: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().any(|line| line.split(' ').nth(4).is_some_and(|at| Path::new(at) == path))
}

/// Makes a file, open for synchronous writes.
pub fn synchronous_writer(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).custom_flags(libc::O_DSYNC).open(path).unwrap()
}

/// Rewrites the first page of a file while others open it and read that page, again and again: what a write
/// left, a read that begins after it must see.
pub fn read_during_writes(writer: &File, path: &Path) {
    const PAGE: usize = 8192;
    const WRITES: u64 = 2_000;
    const READS_EACH: u64 = 50;
    let written = AtomicU64::new(0);
    writer.write_all_at(&[0; PAGE], 0).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while written.load(Ordering::Acquire) < WRITES {
                    let reader = File::open(path).unwrap();
                    for _ in 0..READS_EACH {
                        let least = written.load(Ordering::Acquire);
                        let mut page = vec![0; PAGE];
                        reader.read_exact_at(&mut page, 0).unwrap();
                        let seen = u64::from_le_bytes(page[PAGE - 8..].try_into().unwrap());
                        assert!(seen >= least, "{seen} was read after {least} was written");
                    }
                }
            });
        }
        for number in 1..=WRITES {
            let page = number.to_le_bytes().repeat(PAGE / 8);
            writer.write_all_at(&page, 0).unwrap();
            written.store(number, Ordering::Release);
        }
    });
}

/// A pool in a temporary directory, and the process that serves its datasets.
pub struct Server {
    dir: tempfile::TempDir,
    program: PathBuf,
    options: Vec<String>,
    child: Option<Child>,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    _watchdog: Watchdog,
}

impl Server {
    /// Starts `program` (`serve_mount`) with these options on a new pool; the oldest dataset is at
    /// [`Server::mount`]. The test has [`TEST_TIMEOUT`] from here.
    pub fn start(program: &str, options: &[&str]) -> Server {
        let dir = tempfile::Builder::new().prefix("offshoot-mount-").tempdir().unwrap();
        let dir_path = dir.path().canonicalize().unwrap();
        // Other users must be able to reach the mount.
        rustix::fs::chmod(&dir_path, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        std::fs::create_dir(dir_path.join("pool")).unwrap();
        std::fs::create_dir(dir_path.join("mount")).unwrap();
        let mut server = Server {
            _watchdog: Watchdog::new(&dir_path, TEST_TIMEOUT),
            dir,
            program: program.into(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            child: None,
            stdin: None,
            answers: mpsc::channel().1,
        };
        server.start_again();
        server
    }

    /// Starts the server process on the same pool, which no process serves any more.
    pub fn start_again(&mut self) {
        let mut child = Command::new(&self.program)
            .arg(self.path("pool"))
            .arg(self.mount())
            .arg("--commands")
            .arg(format!("--delivery={}", delivery_name()))
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, answers) = mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        self.stdin = child.stdin.take();
        self.child = Some(child);
        self.answers = answers;
        let answer = self.answer();
        assert!(answer.starts_with("ready"), "the server answered: {answer}");
    }

    /// Gives an option `--NAME=VALUE` another value at the next start.
    pub fn change_option(&mut self, name: &str, value: &str) {
        let option = format!("--{name}=");
        self.options.retain(|one| !one.starts_with(&option));
        self.options.push(option + value);
    }

    /// As [`Server::start_again`], with a mount that dies with the server.
    pub fn start_without_keeper(&mut self) {
        self.options.retain(|option| !option.starts_with("--keeper="));
        self.start_again();
    }

    fn answer(&self) -> String {
        self.answers.recv_timeout(ANSWER_TIMEOUT).expect("the server did not answer in time")
    }

    /// Sends a command and returns what it answered after `ok `.
    ///
    /// # Errors
    /// What it answered otherwise.
    pub fn try_command(&mut self, command: &str) -> Result<String, String> {
        let stdin = self.stdin.as_mut().expect("the server runs");
        writeln!(stdin, "{command}").unwrap();
        stdin.flush().unwrap();
        let answer = self.answer();
        answer.strip_prefix("ok ").map(str::to_owned).ok_or(answer)
    }

    /// Sends a command that must succeed.
    pub fn command(&mut self, command: &str) -> String {
        self.try_command(command).unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// The temporary directory of this test, or something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Where the oldest dataset is mounted.
    pub fn mount(&self) -> PathBuf {
        self.path("mount")
    }

    /// Makes another mount point.
    pub fn mountpoint(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// Kills the server with SIGKILL; its mounts are dead then.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.stdin = None;
    }

    /// Lets the server end on its own and checks that it ended well.
    pub fn stop(&mut self) {
        self.stdin = None;
        let mut child = self.child.take().expect("the server runs");
        let status = wait(&mut child, ANSWER_TIMEOUT);
        assert!(status.is_some_and(|status| status.success()), "the server ended: {status:?}");
    }
}

fn wait(child: &mut Child, timeout: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        if let Some(mut child) = self.child.take() {
            wait(&mut child, ANSWER_TIMEOUT);
        }
        detach_below(&self.path(""));
    }
}
