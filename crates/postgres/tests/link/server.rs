//! A throw-away PostgreSQL server.

use offshoot_connector::PlainDir;
use offshoot_os::process::{Child, Sink, Spec, User, run};
use offshoot_os::unused_port;
use offshoot_postgres::archive::Archive;
use offshoot_postgres::base_backup::{BaseBackup, BaseBackupRequest, SILENCE, take_base_backup};
use offshoot_postgres::commit_index::CommitIndex;
use offshoot_postgres::installation::{Installation, Tools, find_installations};
use offshoot_postgres::receiver::{Receiver, ReceiverSpec};
use offshoot_postgres::slot::create_slot;
use offshoot_postgres::source::{Password, Session, Source, SourceFacts, read_facts};
use offshoot_rig::Initdb;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The password of the superuser and of `linker`.
pub const PASSWORD: &str = "s3cret ü'";
/// A long time for this machine; every wait ends by then.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn installations() -> Vec<Installation> {
    let more = std::env::var_os("OFFSHOOT_TEST_PG_BINS").unwrap_or_default();
    let more: Vec<PathBuf> = std::env::split_paths(&more).collect();
    find_installations(&more)
}

pub fn tools() -> Tools {
    static TOOLS: OnceLock<Tools> = OnceLock::new();
    let newest = || installations().into_iter().next().expect("a PostgreSQL server is installed");
    TOOLS.get_or_init(|| Tools::new(newest()).unwrap()).clone()
}

/// A temporary directory that the servers' user owns; removed when dropped.
pub fn scratch() -> tempfile::TempDir {
    let parent = std::env::var_os("OFFSHOOT_SCRATCH_DIR").unwrap_or_else(|| "/var/tmp".into());
    let dir = tempfile::Builder::new().prefix("offshoot-link-").tempdir_in(parent).unwrap();
    tools().own_directory(dir.path()).unwrap();
    dir
}

/// Gives a path, and all below it, to the user that servers run as.
pub fn give_to_tools(path: &Path) {
    let Some(User { uid, gid, .. }) = tools().user else { return };
    std::os::unix::fs::lchown(path, Some(uid), Some(gid)).unwrap();
    if std::fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            give_to_tools(&entry.unwrap().path());
        }
    }
}

/// Copies a source into a directory that is made for it.
pub fn copy_of(tools: &Tools, source: &Source, facts: &SourceFacts, target: &Path) -> BaseBackup {
    tools.own_directory(target).unwrap();
    let files = PlainDir::new(target);
    let request =
        BaseBackupRequest { tools, source, facts, target, files: &files, silence: SILENCE };
    take_base_backup(&request, &|_| {}, &|| false).unwrap()
}

fn check(spec: Spec) -> String {
    let output = run(&spec, PATIENCE).unwrap();
    assert!(output.success(), "{}: {}", spec.name(), output.stderr_text());
    output.stdout_text()
}

/// A cluster made by an installation's initdb, once; its servers run copies of it.
fn template(tools: &Tools) -> PathBuf {
    static TEMPLATES: Mutex<BTreeMap<PathBuf, tempfile::TempDir>> = Mutex::new(BTreeMap::new());
    // A static is never dropped: the directories are removed when the process ends.
    extern "C" fn remove() {
        TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
    let mut templates = TEMPLATES.lock().unwrap();
    if templates.is_empty() {
        // SAFETY: the function touches only a static that outlives the process's last thread.
        unsafe { libc::atexit(remove) };
    }
    let of = tools.installation.bin_dir.clone();
    let dir = templates.entry(of).or_insert_with(|| new_cluster(tools));
    dir.path().join("data")
}

fn new_cluster(tools: &Tools) -> tempfile::TempDir {
    let dir = scratch();
    let initdb = Initdb {
        bin_dir: &tools.installation.bin_dir,
        superuser: "postgres",
        password: Some(PASSWORD),
        more: &["--wal-segsize=1"],
    };
    initdb.make(tools.user.as_ref(), &dir.path().join("data")).unwrap();
    dir
}

pub struct Server {
    pub tools: Tools,
    pub dir: tempfile::TempDir,
    pub port: u16,
    child: Option<Child>,
}

impl Server {
    /// A running server with the role `linker` (REPLICATION) and some extra settings.
    pub fn start(settings: &[&str]) -> Server {
        Server::of(tools(), settings)
    }

    /// The same of another installation than the newest.
    pub fn of(tools: Tools, settings: &[&str]) -> Server {
        let dir = scratch();
        check(Spec::new("cp").arg("-a").arg(template(&tools)).arg(dir.path().join("data")));
        let server = Server::run_in(tools, dir, settings);
        server.sql(&format!(
            "CREATE ROLE linker LOGIN REPLICATION PASSWORD '{}'",
            PASSWORD.replace('\'', "''")
        ));
        server
    }

    /// A server on a copy of another one's data.
    pub fn on(dir: tempfile::TempDir, settings: &[&str]) -> Server {
        Server::run_in(tools(), dir, settings)
    }

    fn run_in(tools: Tools, dir: tempfile::TempDir, settings: &[&str]) -> Server {
        let mut server = Server { tools, dir, port: unused_port().unwrap(), child: None };
        server.configure(settings);
        server.run();
        server
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    fn configure(&self, settings: &[&str]) {
        let mut text = format!(
            "port = {}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\n\
             fsync = off\nshared_buffers = 16MB\nlogging_collector = off\n\
             log_min_messages = log\nautovacuum = off\nwal_keep_size = 0\nmax_wal_size = 8MB\n\
             min_wal_size = 2MB\nmax_prepared_transactions = 5\n",
            self.port,
            self.dir.path().display()
        );
        for setting in settings {
            text.push_str(setting);
            text.push('\n');
        }
        let path = self.data().join("postgresql.auto.conf");
        std::fs::write(&path, text).unwrap();
        give_to_tools(&path);
    }

    /// Starts the stopped server and waits until it answers.
    pub fn run(&mut self) {
        assert!(self.child.is_none());
        let spec = self
            .tools
            .spec("postgres")
            .arg("-D")
            .arg(self.data())
            .stderr(Sink::File(self.dir.path().join("log")))
            .die_with_parent(true);
        self.child = Some(spec.spawn().unwrap());
        wait_for("the server to start", || self.admin().connect().is_ok());
    }

    /// Stops it: fast, or as a crash does.
    pub fn stop(&mut self, crash: bool) {
        let Some(mut child) = self.child.take() else { return };
        if !crash {
            child.signal(offshoot_os::process::Signal::Interrupt).unwrap();
            child.wait_timeout(PATIENCE).unwrap();
        }
        // They notice within moments that it is gone; a new server is refused while they live.
        let children = child.process_id().map(|id| id.children()).unwrap_or_default();
        child.kill_group();
        if crash {
            assert!(
                children.iter().all(|one| one.wait_end(PATIENCE)),
                "a child outlived the crash"
            );
            let _ = std::fs::remove_file(self.data().join("postmaster.pid"));
        }
    }

    pub fn uri(&self, user: &str) -> String {
        format!("postgresql://{user}@127.0.0.1:{}/postgres", self.port)
    }

    pub fn source(&self, user: &str) -> Source {
        Source::parse(&self.uri(user), Some(Password::new(PASSWORD))).unwrap()
    }

    pub fn admin(&self) -> Source {
        self.source("postgres")
    }

    pub fn session(&self) -> Session {
        let session = self.admin().connect().unwrap();
        // A link sees nothing but the catalog; tests make tables.
        session.rows("SET search_path = public; SET lock_timeout = 0").unwrap();
        session
    }

    pub fn facts(&self) -> SourceFacts {
        read_facts(&self.session()).unwrap()
    }

    /// Runs statements, each in a transaction of its own, and returns the first value of the last.
    pub fn sql(&self, statements: &str) -> String {
        let session = self.session();
        let mut value = None;
        for statement in statements.split(";;") {
            let rows = session.rows(statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
            value = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
        }
        value.unwrap_or_default()
    }

    /// A receiver into a directory, which is made if it is missing.
    pub fn receiver_spec(&self, directory: &Path) -> ReceiverSpec {
        let facts = self.facts();
        self.tools.own_directory(directory).unwrap();
        ReceiverSpec {
            tools: self.tools.clone(),
            source: self.source("linker"),
            system_identifier: facts.system_identifier,
            slot: "offshoot_test".to_owned(),
            archive: archive_in(directory, facts.wal_segment_bytes),
            directory: directory.to_owned(),
        }
    }

    /// Creates the slot and a receiver that streams.
    pub fn receive(&self, directory: &Path) -> Receiver {
        create_slot(&self.source("linker").connect().unwrap(), "offshoot_test").unwrap();
        let receiver =
            Receiver::start(self.receiver_spec(directory), Arc::new(offshoot_os::SystemClock))
                .unwrap();
        receiver.wait_streaming(PATIENCE).unwrap();
        receiver
    }
}

/// The archive in a directory, which is made if it is missing.
pub fn archive_in(directory: &Path, segment_bytes: u64) -> Archive {
    tools().own_directory(directory).unwrap();
    Archive::new(Arc::new(PlainDir::new(directory)), segment_bytes).unwrap()
}

/// The index of an archive in a directory, which is made if it is missing.
pub fn index_in(archive: &Archive, directory: &Path) -> CommitIndex {
    tools().own_directory(directory).unwrap();
    CommitIndex::open(archive.clone(), Arc::new(PlainDir::new(directory))).unwrap()
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lines = offshoot_os::process::last_lines(&self.dir.path().join("log"), 15);
            eprintln!("the server's log ends in:\n{}", lines.join("\n"));
        }
        if let Some(child) = &mut self.child {
            let _ = child.signal(offshoot_os::process::Signal::Interrupt);
            let _ = child.wait_timeout(Duration::from_secs(5));
            child.kill_group();
        }
    }
}

/// Waits until something is so.
pub fn wait_for(what: &str, mut so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !so() {
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
