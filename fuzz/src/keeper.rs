//! Messages between an engine and its keeper, both ends, over real sockets.

use crate::target::Target;
use offshoot_keeper::{Keeper, run};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::LazyLock;

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "keeper-requests", run: requests, seeds },
    Target { name: "keeper-answers", run: answers, seeds },
];

/// A keeper of this process; the engine that it serves stays.
struct Served {
    socket: PathBuf,
    _engine: Keeper,
    _dir: tempfile::TempDir,
}

static SERVED: LazyLock<Served> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("there is a place for a socket");
    let socket = dir.path().join("keeper");
    let at = socket.clone();
    std::thread::spawn(move || run(&at, |_| {}));
    let engine = loop {
        match Keeper::connect(&socket) {
            Ok(keeper) => break keeper,
            Err(_) => std::thread::yield_now(),
        }
    };
    assert!(engine.list().expect("it answers").is_empty());
    Served { socket, _engine: engine, _dir: dir }
});

/// What an engine may send.
fn requests(bytes: &[u8]) {
    let mut stream = UnixStream::connect(&SERVED.socket).expect("the keeper answers");
    // It hangs up on what it does not understand.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answers = Vec::new();
    let _ = stream.read_to_end(&mut answers);
    assert!(answers.len() <= bytes.len(), "one answer for each request");
}

/// What a keeper may answer.
fn answers(bytes: &[u8]) {
    static DIR: LazyLock<tempfile::TempDir> =
        LazyLock::new(|| tempfile::tempdir().expect("there is a place for a socket"));
    static LISTENER: LazyLock<UnixListener> = LazyLock::new(|| {
        UnixListener::bind(DIR.path().join("keeper")).expect("a socket can be made")
    });
    LazyLock::force(&LISTENER);
    let Ok(keeper) = Keeper::connect(&DIR.path().join("keeper")) else { return };
    let (mut stream, _) = LISTENER.accept().expect("it is connected");
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let _ = keeper.list();
    let _ = keeper.engine();
    let _ = keeper.drop_held(1);
}

fn seeds() -> Vec<Vec<u8>> {
    // As `crates/keeper` encodes them, in the machine's order: what, version, key.
    let message = |what: u32, key: u64| {
        [&what.to_ne_bytes()[..], &1u32.to_ne_bytes(), &key.to_ne_bytes()].concat()
    };
    let requests = [message(4, 0), message(3, 0), message(2, 7)].concat();
    vec![requests, message(1, 7), [message(17, 3), message(16, 1)].concat(), message(16, 99)]
}
