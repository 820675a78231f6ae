//! A server that can be killed while programs use its mount.

use crate::server::{Server, is_mounted};
use offshoot_keeper::Keeper;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The keeper's socket.
const SOCKET: &str = "keeper";

/// A server whose mount outlives it, and the thread that keeps it.
pub struct Kept {
    /// The server.
    pub server: Server,
    keeper: Option<JoinHandle<io::Result<()>>>,
    dir: tempfile::TempDir,
}

impl Kept {
    /// Starts `program` (`serve_mount`) on a new pool.
    pub fn start(program: &str) -> Kept {
        Kept::start_with(program, &[])
    }

    /// The same with more options.
    pub fn start_with(program: &str, options: &[&str]) -> Kept {
        Kept::releasing(program, options, |_| {})
    }

    /// The same with a keeper that lets what waits at mounts below a directory fail when its engine does not end.
    pub fn releasing(
        program: &str,
        options: &[&str],
        release: impl Fn(&Path) + Send + 'static,
    ) -> Kept {
        let below = Arc::new(OnceLock::<PathBuf>::new());
        let known = below.clone();
        let release = move |_: &[u64]| release(known.get().expect("the server has started"));
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join(SOCKET);
        let path = socket.clone();
        let keeper = std::thread::spawn(move || offshoot_keeper::run(&path, release));
        let deadline = Instant::now() + Duration::from_secs(20);
        while !socket.exists() {
            assert!(Instant::now() < deadline, "no keeper");
            std::thread::sleep(Duration::from_millis(2));
        }
        let option = format!("--keeper={}", socket.display());
        let server = Server::start(program, &[&[option.as_str()], options].concat());
        below.set(server.path("")).expect("it is set once");
        Kept { server, keeper: Some(keeper), dir }
    }

    /// The connection to the kernel, while no server reads from it.
    pub fn device(&self) -> OwnedFd {
        let keeper = Keeper::connect(&self.dir.path().join(SOCKET)).unwrap();
        keeper.list().unwrap().remove(0).descriptors.remove(0)
    }

    /// Kills the server and starts another, which continues.
    pub fn kill_and_start(&mut self) {
        self.server.kill();
        self.server.start_again();
    }

    /// Ends all cleanly; the keeper has nothing to hold then and ends too.
    pub fn stop(mut self) -> Server {
        self.server.stop();
        assert!(!is_mounted(&self.server.mount()));
        self.keeper.take().unwrap().join().unwrap().unwrap();
        self.server
    }
}
