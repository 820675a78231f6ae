//! A source that was linked: what most promises begin with.

use crate::files::{PlainTarget, copy_tree, give_to, plain};
use crate::harness::{Content, Harness, PATIENCE, Production};
use crate::random::Random;
use offshoot_connector::{
    CheckedSource, Commit, Connector, Copied, CopyRequest, LogStream, LogTarget, ReceivedLog,
    Replay, Replayed, Server, ServerSpec, Source, StreamRequest,
};
use offshoot_os::SystemClock;
use offshoot_types::{Failure, LogPosition, Share};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A commit that was made on the source.
#[derive(Debug, Clone)]
pub struct Written {
    /// Its label.
    pub label: String,
    /// What it set,
    pub key: String,
    /// and to what.
    pub value: String,
}

/// A data directory of the suite's own: a clone of an image.
#[derive(Debug, Clone)]
pub struct Image {
    /// Where it is.
    pub data: PathBuf,
    name: String,
}

/// Waits until something is so.
///
/// # Panics
/// When it is not for too long.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// A source, its stream, its log and a copy.
pub struct Linked<'a> {
    /// What the connector's tests do.
    pub harness: &'a dyn Harness,
    /// The connector.
    pub connector: Arc<dyn Connector>,
    /// The database in production.
    pub production: Box<dyn Production>,
    /// What was found out about it.
    pub checked: CheckedSource,
    /// Its content before the first commit of `written`.
    pub before: Content,
    /// The commits made since.
    pub written: Vec<Written>,
    /// What was received.
    pub log: Arc<dyn ReceivedLog>,
    /// Receives it; none while it is stopped.
    pub stream: Option<Arc<dyn LogStream>>,
    /// The reservation.
    pub reservation: Option<String>,
    /// The copy as it was made.
    pub copy: Image,
    /// Where the copy begins and ends.
    pub copied: Copied,
    number: AtomicU32,
    // Last, as it removes the directories of all the others.
    scratch: Scratch,
}

/// A directory; dropping it ends everything that runs in it.
struct Scratch {
    root: tempfile::TempDir,
    connector: Arc<dyn Connector>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let runtime = self.root.path().join("run");
        for entry in std::fs::read_dir(runtime).into_iter().flatten().flatten() {
            let _ = self.connector.stop_leftover(&entry.path(), Duration::from_secs(20));
        }
    }
}

impl<'a> Linked<'a> {
    /// Links a new source that has some content.
    pub fn new(harness: &'a dyn Harness) -> Linked<'a> {
        Linked::prepared(harness, |_| ())
    }

    /// The same for a prepared source.
    pub fn prepared(
        harness: &'a dyn Harness,
        prepare: impl FnOnce(&mut dyn Production),
    ) -> Linked<'a> {
        let connector = harness.connector();
        let parent = std::env::var_os("OFFSHOOT_SCRATCH_DIR").unwrap_or_else(|| "/var/tmp".into());
        let root =
            tempfile::Builder::new().prefix("os-c").rand_bytes(5).tempdir_in(parent).unwrap();
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(root.path(), all).unwrap();
        let scratch = Scratch { root, connector: connector.clone() };
        let make = |name: &str| {
            let path = scratch.root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&path, private).unwrap();
            give_to(&path, connector.server_user());
            path
        };
        let mut production = harness.produce(&make("source"));
        production.commit("before", "the copy");
        prepare(&mut *production);
        let source = source(&*connector, &*production);
        let checked = source.check().unwrap();
        let (log, index, data) = (make("log"), make("index"), make("copy"));
        std::fs::create_dir(scratch.root.path().join("run")).unwrap();
        let log = connector.open_log(&checked.state, plain(&log), plain(&index)).unwrap();
        let reservation = source.reservation_name("suite");
        if let Some(name) = &reservation {
            source.reserve_log(name).unwrap();
        }
        let mut linked = Linked {
            harness,
            production,
            checked,
            before: Content::new(),
            written: Vec::new(),
            log,
            stream: None,
            reservation,
            copy: Image { data, name: "copy".to_owned() },
            copied: Copied { start: LogPosition(0), end: LogPosition(0), verified: false },
            number: AtomicU32::new(0),
            connector,
            scratch,
        };
        linked.stream();
        linked.copied = linked.copy_to(&linked.copy, &|| false).unwrap();
        let target = linked.spec(&linked.copy);
        if !linked.copied.verified {
            linked.source().verify(&target, &|| false).unwrap();
        }
        linked.source().adopt_settings(&target).unwrap();
        linked.before = linked.production.content();
        linked
    }

    /// The source as the connector reaches it.
    pub fn source(&self) -> Box<dyn Source> {
        source(&*self.connector, &*self.production)
    }

    /// A file or directory of the suite.
    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.root.path().join(name)
    }

    /// Where received log is.
    pub fn log_dir(&self) -> PathBuf {
        self.path("log")
    }

    /// Copies the source.
    ///
    /// # Errors
    /// The connector's.
    pub fn copy_to(&self, to: &Image, cancelled: &dyn Fn() -> bool) -> Result<Copied, Failure> {
        let target = self.spec(to);
        let progress = |done, total| assert!(done <= total, "{done} of {total} bytes");
        let checked = &self.checked;
        let request = CopyRequest { checked, target: &target, progress: &progress, cancelled };
        self.source().copy(&request)
    }

    /// Starts the stream (again) and waits until it receives.
    pub fn stream(&mut self) -> Arc<dyn LogStream> {
        let stream = self.source().stream(self.stream_request()).unwrap();
        stream.wait_streaming(PATIENCE).unwrap();
        self.stream = Some(stream.clone());
        stream
    }

    /// What the stream is started with.
    pub fn stream_request(&self) -> StreamRequest {
        StreamRequest {
            state: self.checked.state.clone(),
            version: self.checked.version.clone(),
            reservation: self.reservation.clone(),
            log: plain(&self.log_dir()),
            directory: self.log_dir(),
            clock: Arc::new(SystemClock),
        }
    }

    /// Opens log as a restarted engine does.
    ///
    /// # Errors
    /// The connector's.
    pub fn reopen(&self, log: &Path, index: &Path) -> Result<Arc<dyn ReceivedLog>, Failure> {
        self.connector.open_log(&self.checked.state, plain(log), plain(index))
    }

    /// An empty directory that the servers' user owns.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        give_to(&path, self.connector.server_user());
        path
    }

    /// Commits this many times, values of random lengths up to `bytes_max`.
    pub fn write(&mut self, commits: usize, bytes_max: u64, random: &mut Random) {
        for _ in 0..commits {
            let key = format!("k{}", random.below(12));
            let length = 1 + random.below(bytes_max) as usize;
            let mut value = format!("{:x}", random.below(1 << 40)).repeat(length);
            value.truncate(length);
            let label = self.production.commit(&key, &value);
            self.written.push(Written { label, key, value });
        }
    }

    /// Receives and indexes all that the source has.
    pub fn receive(&self) -> LogPosition {
        let stream = self.stream.as_ref().expect("the stream runs");
        let position = stream.ask_now(PATIENCE).unwrap();
        until("the log is indexed", || {
            self.log.update_until(position.log).unwrap() >= position.log
        });
        position.log
    }

    /// Where the commits of `written` are in the log, by their labels.
    pub fn commits(&self) -> Vec<Commit> {
        let find = |one: &Written| self.log.by_transaction(&one.label).unwrap();
        self.written.iter().map(|one| find(one).expect("it was received")).collect()
    }

    /// The content after the given number of commits of `written`.
    pub fn content_after(&self, commits: usize) -> Content {
        let mut content = self.before.clone();
        for one in &self.written[..commits] {
            content.insert(one.key.clone(), one.value.clone());
        }
        content
    }

    /// A clone of an image.
    pub fn clone_of(&self, image: &Image) -> Image {
        let name = format!("c{}", self.number.fetch_add(1, Ordering::Relaxed));
        let data = self.path(&name);
        copy_tree(&image.data, &data);
        Image { data, name }
    }

    /// An empty image.
    pub fn empty(&self) -> Image {
        let name = format!("e{}", self.number.fetch_add(1, Ordering::Relaxed));
        let data = self.directory(&name);
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&data, private).unwrap();
        Image { data, name }
    }

    /// How a server is started on an image.
    pub fn spec(&self, image: &Image) -> ServerSpec {
        ServerSpec {
            name: format!("suite {}", image.name),
            version: self.checked.version.clone(),
            files: plain(&image.data),
            data_dir: image.data.clone(),
            runtime_dir: self.path("run").join(&image.name),
            log_file: self.path(&format!("{}.log", image.name)),
            tcp_port: None,
            share: Share::Usual,
            preload: None,
        }
    }

    /// An image as a target of log.
    pub fn target(&self, image: &Image) -> Arc<dyn LogTarget> {
        let (data, log) = (image.data.clone(), self.log_dir());
        Arc::new(PlainTarget { files: plain(&data), data, log })
    }

    /// Replays a clone up to a position.
    ///
    /// # Errors
    /// The connector's.
    pub fn replay(&self, clone: &Image, to: LogPosition) -> Result<Replayed, Failure> {
        self.replay_watched(clone, to, &mut |_| true)
    }

    /// The same, watched.
    ///
    /// # Errors
    /// The connector's.
    pub fn replay_watched(
        &self,
        clone: &Image,
        to: LogPosition,
        tick: &mut dyn FnMut(Option<LogPosition>) -> bool,
    ) -> Result<Replayed, Failure> {
        let target = self.target(clone);
        let replay = Replay {
            log: &*self.log,
            target: &*target,
            to,
            deadline: PATIENCE,
            flush: &|| Ok(()),
            tick,
        };
        self.connector.replay(self.spec(clone), replay)
    }

    /// What a clone of the copy shows after replay up to a position; then it is stopped.
    pub fn content_at(&self, to: LogPosition) -> Content {
        let clone = self.clone_of(&self.copy);
        let replayed = self.replay(&clone, to).unwrap();
        assert!(replayed.end <= to, "{:?} is behind {to:?}", replayed.end);
        let content = self.content(&clone);
        stop_at_once(&*replayed.server);
        std::fs::remove_dir_all(&clone.data).unwrap();
        content
    }

    /// What a server on an image shows to the engine.
    pub fn content(&self, image: &Image) -> Content {
        self.harness.content(&self.spec(image)).unwrap()
    }

    /// An image that opens without recovery, as the engine makes it for a moment.
    pub fn finished(&self, to: LogPosition) -> Image {
        let clone = self.clone_of(&self.copy);
        let server = self.replay(&clone, to).unwrap().server;
        server.cut_ties().unwrap();
        assert!(server.stop(offshoot_connector::StopMode::Fast, PATIENCE).unwrap());
        self.connector.finish_image(&*plain(&clone.data)).unwrap();
        clone
    }
}

/// Stops a server whose data is discarded.
pub(crate) fn stop_at_once(server: &dyn Server) {
    server.stop(offshoot_connector::StopMode::Immediate, PATIENCE).unwrap();
    assert!(!server.running());
}

fn source(connector: &dyn Connector, production: &dyn Production) -> Box<dyn Source> {
    let uri = connector.parse_source(&production.uri(None), None).unwrap();
    connector.source(&uri).unwrap()
}

impl Drop for Linked<'_> {
    fn drop(&mut self) {
        // It writes into the directories that go now.
        if let Some(stream) = self.stream.take() {
            stream.stop();
        }
    }
}
