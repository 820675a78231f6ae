//! A source, a pool, and engines on it.

use offshoot_catalog::{Keyring, SecretKey};
use offshoot_engine::KeyPlaces;
use offshoot_os::process::{Child, Output, Sink, Spec, run};
use offshoot_toy::{Client, create};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TOYD: &str = env!("CARGO_BIN_EXE_toyd-for-engine");
const ENGINE: &str = env!("CARGO_BIN_EXE_toy-engine");
const PATIENCE: Duration = Duration::from_secs(300);

/// How many parts the ports of VDBs are divided into: one for each test that runs at the same time.
const PARTS: u64 = 8;
const VDB_PORTS: u64 = 3500;

/// A new directory. The engine of its pool looks for ports where those of the tests beside this one do not: whenever an
/// engine is killed, its VDBs' ports are free for a moment, and another could take them.
fn apart(parent: &Path) -> tempfile::TempDir {
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().and_then(|slot| slot.parse().ok());
    let slot = slot.map(|slot: u64| slot % PARTS);
    loop {
        let new = tempfile::Builder::new().prefix("os-j").rand_bytes(5).tempdir_in(parent).unwrap();
        // As the engine does: `ground/paths`.
        let pool = new.path().join("pool");
        let bytes = pool.as_os_str().as_encoded_bytes().iter();
        let number = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let part = number % VDB_PORTS * PARTS / VDB_PORTS;
        if slot.is_none_or(|slot| slot == part) {
            return new;
        }
    }
}

/// A source and a pool. Dropped, everything of them is gone.
pub struct Bed {
    root: tempfile::TempDir,
    port: u16,
    source: Child,
    /// Whether VDBs outlive the engine.
    pub keeper: bool,
    /// Whether the pool is encrypted; from the first engine on.
    pub encrypted: bool,
}

impl Bed {
    pub fn new() -> Bed {
        let parent = std::env::var_os("OFFSHOOT_SCRATCH_DIR").unwrap_or_else(|| "/var/tmp".into());
        let root = apart(Path::new(&parent));
        create(&root.path().join("source/data"), "boss", "s3cret").unwrap();
        let port = offshoot_os::unused_port().unwrap();
        let source = root.path().join("source");
        let spec = Spec::new(TOYD)
            .args(["--data".as_ref(), source.join("data").as_os_str()])
            .args(["--runtime".as_ref(), source.as_os_str()])
            .args(["--port", &port.to_string()])
            .stderr(Sink::File(source.join("log")))
            .die_with_parent(true);
        let bed =
            Bed { source: spec.spawn().unwrap(), root, port, keeper: false, encrypted: false };
        let end = Instant::now() + PATIENCE;
        while Client::open(&bed.uri()).is_err() {
            assert!(Instant::now() < end, "the source does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        for number in 0..20 {
            bed.commit(&format!("k{number}"), &"v".repeat(number * 37 + 1));
        }
        bed
    }

    pub fn pool(&self) -> PathBuf {
        self.root.path().join("pool")
    }

    /// The key that the engine made for secrets.
    pub fn key(&self) -> Keyring {
        let keys = std::fs::read_dir(self.pool().with_extension("keys")).unwrap();
        let [key] = &keys.map(|one| one.unwrap().path()).collect::<Vec<_>>()[..] else {
            panic!("one key")
        };
        let text = std::fs::read_to_string(key).unwrap();
        text.lines().find_map(SecretKey::parse).expect("a key").into()
    }

    fn uri(&self) -> String {
        format!("toy://boss:s3cret@127.0.0.1:{}/main", self.port)
    }

    pub fn commit(&self, key: &str, value: &str) {
        Client::open(&self.uri()).unwrap().ask(&format!("SET {key} {value}")).unwrap();
    }

    /// Nobody can ask the source any more.
    pub fn stop_source(&mut self) {
        self.source.kill_group();
    }

    /// Runs an engine that does these actions; it dies at a point where one is given.
    pub fn run<A: AsRef<str>>(&self, crash: Option<&str>, actions: &[A]) -> Output {
        let keeper = self.keeper.then_some("--keeper");
        let mut spec = Spec::new(ENGINE).args(keeper).arg(self.pool()).arg(TOYD).arg(self.uri());
        spec = spec.args(actions.iter().map(AsRef::as_ref));
        if self.encrypted {
            spec = spec.env("OFFSHOOT_TOY_ENCRYPT", "yes");
        }
        if let Some(point) = crash {
            spec = spec.env("OFFSHOOT_CRASH_AT", point);
        }
        run(&spec, PATIENCE).unwrap()
    }

    /// The same without a death: the answers.
    pub fn answers<A: AsRef<str>>(&self, actions: &[A]) -> Vec<Value> {
        answers(&self.run(None, actions))
    }

    /// Nothing runs, nothing is mounted.
    pub fn check_closed(&self) {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let pool = self.pool();
        let pool = pool.to_string_lossy();
        assert!(!mounts.lines().any(|line| line.contains(&*pool)), "a mount is left");
        assert!(servers(&self.pool()).is_empty(), "a server is left");
        self.check_store();
    }

    /// The store is whole.
    pub fn check_store(&self) {
        let directory = Some(self.pool().with_extension("keys"));
        let keys = KeyPlaces { directory, ..KeyPlaces::default() };
        let report = offshoot_engine::check_pool(&self.pool(), &keys, &mut |_, _| ()).unwrap();
        assert!(report.damage.is_empty(), "the store is damaged");
        assert!(report.report.findings.is_empty(), "{:?}", report.report.findings);
    }

    /// The process of the server that works for a VDB.
    pub fn server_of(&self, vdb: &str) -> i32 {
        let title = format!("--name\0vdb {vdb}\0");
        let found = servers(&self.pool()).into_iter().find(|(_, text)| text.contains(&title));
        found.unwrap_or_else(|| panic!("no server of {vdb}")).0
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.source.kill_group();
    }
}

/// What an engine answered that did not die.
pub fn answers(output: &Output) -> Vec<Value> {
    assert!(output.success(), "{}\n{}", output.stdout_text(), output.stderr_text());
    told(output)
}

/// What an engine answered.
pub fn told(output: &Output) -> Vec<Value> {
    let text = output.stdout_text();
    assert!(!text.contains("\"failed\""), "{text}\n{}", output.stderr_text());
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The servers whose data lies below a directory, with their command lines.
fn servers(below: &Path) -> Vec<(i32, String)> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let ours = |pid: i32| {
        let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let data = format!("--data\0{}", below.display());
        (text.contains("toyd-for-engine") && text.contains(&data)).then_some((pid, text))
    };
    pids.filter_map(ours).collect()
}
