//! The keeper's own process.

use crate::protocol::{
    DONE, DROP, ENGINE, HELD, HOLD, LIST, MESSAGE_LEN, PATIENCE, message, parse,
};
use offshoot_os::descriptors::{self, DESCRIPTORS_MAX};
use offshoot_os::process::{ProcessId, User};
use offshoot_os::{Clock, SystemClock};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often a keeper looks whether its engine is ending.
const LOOK: Duration = Duration::from_secs(1);
/// How long an engine may take to end by itself, as the kernel takes its memory back first, and how long until not even what
/// is held is spared; both from when it was first seen ending.
const ENDS_WITHIN: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(33)];

/// How long a new keeper waits for the engine that started it.
const FIRST_ENGINE: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    held: BTreeMap<u64, Vec<OwnedFd>>,
    /// The processes of engines that are connected; more than one only for a moment.
    engines: Vec<i32>,
    served: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Runs a keeper at a socket until nobody needs it any more.
///
/// An engine that was killed cannot end while one of its threads waits for an answer that the engine itself would have given; and
/// whoever started it waits for its end before there is another one. So after a moment `release` is told to let such waits
/// fail, but for those that belong to what is held under these numbers; if it lives on, without exception.
///
/// # Errors
/// When the socket cannot be made.
pub fn run(socket: &Path, release: impl Fn(&[u64]) + Send + 'static) -> io::Result<()> {
    survive_shortage();
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    // Only for its owner, from the first moment on.
    let mask = rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o177));
    let listener = UnixListener::bind(socket);
    rustix::process::umask(mask);
    let listener = listener?;
    let shared = Arc::new(Shared::default());
    let accepting = shared.clone();
    std::thread::Builder::new().name("accept".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = accepting.clone();
            let serve = move || serve(&shared, &stream);
            if std::thread::Builder::new().name("serve".to_owned()).spawn(serve).is_err() {
                tracing::warn!("no thread for a connection");
            }
        }
    })?;
    let watching = shared.clone();
    std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(move || watch(&watching, &release))?;
    wait_until_useless(&shared);
    // The end of this process closes what is held.
    std::fs::remove_file(socket)
}

/// An engine that was killed and has not ended yet.
struct Ending {
    pid: i32,
    since: Duration,
    /// How often what it may wait for was let fail.
    released: usize,
}

/// Looks whether the engine is ending and does not get there.
fn watch(shared: &Shared, release: &dyn Fn(&[u64])) {
    let mut before: Option<Ending> = None;
    loop {
        SystemClock.sleep(LOOK);
        // Where there is a next one, the one before has ended as far as it matters.
        let engine = match shared.state.lock().engines[..] {
            [pid] => ProcessId::of(pid).filter(ProcessId::is_dying),
            _ => None,
        };
        let last = before.take();
        let Some(ProcessId { pid, .. }) = engine else { continue };
        let now = SystemClock.elapsed();
        let fresh = Ending { pid, since: now, released: 0 };
        let mut ending = last.filter(|last| last.pid == pid).unwrap_or(fresh);
        let waited = now.saturating_sub(ending.since);
        if ENDS_WITHIN.get(ending.released).is_some_and(|within| waited >= *within) {
            tracing::warn!(pid, "an engine that was killed does not end: what it waits for fails");
            let held = shared.state.lock().held.keys().copied().collect::<Vec<u64>>();
            release(if ending.released == 0 { &held } else { &[] });
            ending.released += 1;
        }
        before = Some(ending);
    }
}

/// When memory runs out, others go first: the databases and the engine can be restarted, this
/// cannot. Only a process with `CAP_SYS_RESOURCE` may ask for it.
fn survive_shortage() {
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", "-900") {
        tracing::debug!(%error, "a shortage of memory may end the keeper");
    }
}

fn wait_until_useless(shared: &Shared) {
    let mut state = shared.state.lock();
    let mut alone_since = SystemClock.elapsed();
    loop {
        if !state.engines.is_empty() {
            shared.changed.wait(&mut state);
            alone_since = SystemClock.elapsed();
            continue;
        }
        let patience = match (state.served, state.held.is_empty()) {
            (false, _) => FIRST_ENGINE,
            (true, true) => return,
            (true, false) => PATIENCE,
        };
        let waited = SystemClock.elapsed().saturating_sub(alone_since);
        if waited >= patience {
            tracing::warn!(held = state.held.len(), "no engine comes: what is held ends");
            return;
        }
        shared.changed.wait_for(&mut state, patience - waited);
    }
}

/// One connection, of an engine or of somebody who asks for it.
fn serve(shared: &Shared, stream: &UnixStream) {
    let Ok(peer) = descriptors::peer(stream) else { return };
    let own = User::own_uid();
    if peer.uid != own && peer.uid != 0 {
        return;
    }
    let mut is_engine = false;
    let mut bytes = [0; MESSAGE_LEN];
    while let Ok(Some(fds)) = descriptors::receive(stream, &mut bytes) {
        let Some((what, key)) = parse(&bytes) else { break };
        if matches!(what, HOLD | LIST) && !is_engine {
            is_engine = true;
            let mut state = shared.state.lock();
            state.engines.push(peer.pid);
            state.served = true;
            shared.changed.notify_all();
        }
        if answer(shared, stream, what, key, fds).is_err() {
            break;
        }
    }
    if is_engine {
        let mut state = shared.state.lock();
        if let Some(index) = state.engines.iter().position(|pid| *pid == peer.pid) {
            state.engines.remove(index);
        }
        shared.changed.notify_all();
    }
}

fn answer(
    shared: &Shared,
    stream: &UnixStream,
    what: u32,
    key: u64,
    fds: Vec<OwnedFd>,
) -> io::Result<()> {
    let mut state = shared.state.lock();
    let mut told = 0;
    match what {
        HOLD => {
            if fds.is_empty() || fds.len() > DESCRIPTORS_MAX {
                return Err(io::ErrorKind::InvalidData.into());
            }
            state.held.insert(key, fds);
        }
        DROP => drop(state.held.remove(&key)),
        LIST => {
            for (key, fds) in &state.held {
                let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
                descriptors::send(stream, &message(HELD, *key), &fds)?;
            }
        }
        ENGINE => told = state.engines.last().map_or(0, |pid| *pid as u64),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    }
    descriptors::send(stream, &message(DONE, told), &[])
}
