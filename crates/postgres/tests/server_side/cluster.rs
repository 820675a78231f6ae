//! Real clusters for the tests: made once, copied for each test, gone at its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use offshoot_connector::PlainDir;
use offshoot_launcher::{Launcher, ThisHost};
use offshoot_os::process::{Output, Spec, User, run};
use offshoot_postgres::control::{self, Control};
use offshoot_postgres::server::{Server, ServerSpec, USER, stop_leftover};
use offshoot_rig::Initdb;
use offshoot_types::Share;

/// The source's bootstrap superuser: not `postgres`, as nobody promised that.
pub const BOSS: &str = "the boss";

pub const DEADLINE: Duration = Duration::from_secs(120);

/// Program directories of the PostgreSQL versions to test with.
pub fn bin_dirs() -> Vec<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    if let Some(more) = std::env::var_os("OFFSHOOT_TEST_PG_BINS") {
        dirs.extend(std::env::split_paths(&more));
    }
    dirs.retain(|dir| dir.join("postgres").is_file());
    dirs.sort();
    dirs.dedup();
    assert!(!dirs.is_empty(), "no PostgreSQL to test with; set OFFSHOOT_TEST_PG_BINS");
    dirs
}

/// Whether a version's contributed extensions are there; some distributions leave them out.
pub fn has_amcheck(bin_dir: &Path) -> bool {
    let prefix = bin_dir.parent().expect("a prefix");
    let libraries = ["lib/amcheck.so", "lib/postgresql/amcheck.so"];
    libraries.iter().any(|library| prefix.join(library).is_file())
}

pub fn this_host() -> ThisHost {
    ThisHost::with_user(USER).expect("a user to run servers as")
}

pub fn user() -> Option<User> {
    this_host().user().cloned()
}

/// Runs a program as the server's user; it must succeed.
pub fn succeed(spec: Spec) -> Output {
    let output = run(&spec.user(user()).cwd("/").env("LC_ALL", "C"), DEADLINE).expect("it runs");
    assert!(output.success(), "{}\n{}", output.stdout_text(), output.stderr_text());
    output
}

/// Copies a running source, without its log.
pub fn base_backup(server: &Server, bin: &Path, to: &Path) {
    succeed(
        Spec::new(bin.join("pg_basebackup"))
            .args(["-U", BOSS, "-p", "5432", "--wal-method=none", "-c", "fast", "--no-sync"])
            .arg("-h")
            .arg(server.spec().socket_dir())
            .arg("-D")
            .arg(to),
    );
}

/// A directory that the server's user owns. When dropped, servers in it are stopped and it goes.
pub struct Scratch {
    pub root: PathBuf,
}

impl Scratch {
    pub fn new() -> Self {
        let base = std::env::var_os("OFFSHOOT_SCRATCH_DIR").unwrap_or_else(|| "/var/tmp".into());
        let number = u64::from_ne_bytes(offshoot_os::random_bytes());
        let root = PathBuf::from(base).join(format!("os-{number:012x}"));
        std::fs::create_dir(&root).expect("a scratch directory");
        if let Some(user) = user() {
            std::os::unix::fs::chown(&root, Some(user.uid), Some(user.gid)).expect("chown");
        }
        Scratch { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// A cold copy of a cluster that does not run.
    pub fn copy(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        succeed(Spec::new("/bin/cp").arg("-a").arg("--reflink=auto").arg(from).arg(&to));
        to
    }

    /// How to start the cluster in `data_dir`; all else is named after `name`.
    pub fn spec(&self, bin_dir: &Path, data_dir: &Path, name: &str) -> ServerSpec {
        ServerSpec {
            preload: None,
            name: name.to_owned(),
            bin_dir: bin_dir.to_owned(),
            udp: true,
            data_dir: data_dir.to_owned(),
            runtime_dir: self.path(&format!("run-{name}")),
            log_file: self.path(&format!("{name}.log")),
            launcher: Arc::new(this_host()),
            memory_bytes: None,
            processes_max: 1000,
            tcp_port: None,
            share: Share::Usual,
            exposure: None,
            reaches: Vec::new(),
            superusers: Vec::new(),
            forced: Vec::new(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("run-") {
                let _ = stop_leftover(&this_host(), &entry.path(), DEADLINE);
            }
        }
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// A cluster fresh from initdb (stopped, with page checksums), made once per version and copied.
pub fn fresh(scratch: &Scratch, bin_dir: &Path, name: &str) -> PathBuf {
    static FIRST: OnceLock<(Scratch, std::sync::Mutex<Vec<PathBuf>>)> = OnceLock::new();
    let (templates, made) = FIRST.get_or_init(|| (Scratch::new(), Default::default()));
    let template = templates.path(&bin_dir.to_string_lossy().replace('/', "_"));
    let mut made = made.lock().expect("nobody failed here");
    if !made.contains(&template) {
        let initdb = Initdb { bin_dir, superuser: BOSS, password: None, more: &[] };
        initdb.make(user().as_ref(), &template).expect("a cluster");
        made.push(template.clone());
        on_exit(&templates.root);
    }
    drop(made);
    scratch.copy(&template, name)
}

/// Statics are never dropped: the templates' directory goes when the test binary exits.
fn on_exit(root: &Path) {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    extern "C" fn remove() {
        if let Some(root) = ROOT.get() {
            let _ = std::fs::remove_dir_all(root);
        }
    }
    if ROOT.set(root.to_owned()).is_ok() {
        // SAFETY: the function has the right type and does not unwind.
        unsafe { libc::atexit(remove) };
    }
}

pub fn control(bin_dir: &Path, data_dir: &Path) -> Control {
    control::read(bin_dir, data_dir, user().as_ref()).expect("a control file")
}

pub fn plain(data_dir: &Path) -> PlainDir {
    PlainDir::new(data_dir)
}

/// Runs SQL with psql and a URI; returns what it printed, or its error.
pub fn psql(bin_dir: &Path, uri: &str, sql: &str) -> Result<String, String> {
    let spec = Spec::new(bin_dir.join("psql"))
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql, uri])
        .user(user())
        .env_remove("PGPASSWORD")
        .env("PGCONNECT_TIMEOUT", "10")
        .cwd("/");
    let output = run(&spec, DEADLINE).expect("psql runs");
    match output.success() {
        true => Ok(output.stdout_text().trim().to_owned()),
        false => Err(output.stderr_text()),
    }
}

/// Shares the WAL of a cluster as the engine does: each file under another name, then renamed.
pub fn share_wal(from: &Path, to: &Path) {
    share_wal_of(from, to, "");
}

/// Shares the WAL files whose names begin so.
pub fn share_wal_of(from: &Path, to: &Path, prefix: &str) {
    let target = to.join("pg_wal");
    for entry in std::fs::read_dir(from.join("pg_wal")).expect("pg_wal").flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(prefix) || (name.len() != 24 && !name.ends_with(".history")) {
            continue;
        }
        let temporary = target.join(format!("{name}.new"));
        std::fs::copy(entry.path(), &temporary).expect("copied");
        if let Some(user) = user() {
            std::os::unix::fs::chown(&temporary, Some(user.uid), Some(user.gid)).expect("chown");
        }
        std::fs::rename(&temporary, target.join(&*name)).expect("renamed");
    }
}
