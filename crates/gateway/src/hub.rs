//! What the connections of a gateway have in common: whether it serves, and how many there are of each kind.
//!
//! All runs on one thread. Where a connection looks at the phase and acts on it without waiting in between, nothing comes
//! between the two.

use crate::backend::Target;
use crate::control::{State, Status, VERSION, Why};
use crate::turns::Turns;
use offshoot_os::random_bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::watch;
use tokio::time::Instant;

/// Longest key for cancelling that a server may make, with the process's id, in bytes.
const KEY_BYTES_MAX: usize = 4 + 256;

/// What a gateway does at present.
#[derive(Debug, Clone)]
pub(crate) enum Phase {
    /// It passes connections on.
    Serving(Arc<Target>),
    /// It holds. Sessions at work may go on until then.
    Held { why: Why, until: Instant },
    /// It ends.
    Ended,
}

/// The common part.
#[derive(Debug)]
pub(crate) struct Hub {
    /// Of the VDB.
    pub(crate) name: String,
    phase: watch::Sender<Phase>,
    /// The last one served.
    last: Mutex<Option<Arc<Target>>>,
    /// Connections to the server.
    open: watch::Sender<u64>,
    waiting: watch::Sender<u64>,
    clients: AtomicU64,
    sessions: AtomicU64,
    /// Parked sessions by role.
    parked: Mutex<BTreeMap<String, u64>>,
    busy: AtomicU64,
    began: Instant,
    /// When something was last under way, in milliseconds since `began`.
    active_ms: AtomicU64,
    keys: Mutex<HashMap<Vec<u8>, Option<Vec<u8>>>>,
    /// Of sessions that are read or opened anew without a client that waits.
    pub(crate) turns: Turns,
}

impl Hub {
    /// Holds until it is told to serve.
    pub(crate) fn new(name: String) -> Arc<Hub> {
        let began = Instant::now();
        Arc::new(Hub {
            name,
            phase: watch::Sender::new(Phase::Held { why: Why::Change, until: began }),
            last: Mutex::default(),
            open: watch::Sender::new(0),
            waiting: watch::Sender::new(0),
            clients: AtomicU64::new(0),
            sessions: AtomicU64::new(0),
            parked: Mutex::default(),
            busy: AtomicU64::new(0),
            began,
            active_ms: AtomicU64::new(0),
            keys: Mutex::default(),
            turns: Turns::default(),
        })
    }

    /// The phase, and its changes.
    pub(crate) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.subscribe()
    }

    /// The phase now.
    pub(crate) fn phase_now(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// From now on serves.
    pub(crate) fn serve(&self, target: Target) {
        let target = Arc::new(target);
        *self.last.lock() = Some(Arc::clone(&target));
        // What ends has ended.
        self.phase.send_if_modified(|phase| {
            let change = !matches!(phase, Phase::Ended);
            if change {
                *phase = Phase::Serving(target);
            }
            change
        });
    }

    /// From now on holds; sessions at work may go on until then. While it holds already, only the reason changes.
    pub(crate) fn hold(&self, reason: Why, grace_until: Instant) {
        self.phase.send_if_modified(|phase| {
            match phase {
                Phase::Serving(_) => *phase = Phase::Held { why: reason, until: grace_until },
                Phase::Held { why, .. } => *why = reason,
                Phase::Ended => return false,
            }
            true
        });
    }

    /// From now on ends.
    pub(crate) fn end(&self) {
        self.phase.send_replace(Phase::Ended);
    }

    /// The server that is served, or was last.
    pub(crate) fn last_target(&self) -> Option<Arc<Target>> {
        self.last.lock().clone()
    }

    /// Counts a connection to the server that is about to be opened; none while no server is served.
    pub(crate) fn open(self: &Arc<Self>) -> Option<(Open, Arc<Target>)> {
        let Phase::Serving(target) = self.phase_now() else { return None };
        self.open.send_modify(|count| *count += 1);
        Some((Open(Arc::clone(self)), target))
    }

    /// How many connections to the server there are, and its changes.
    pub(crate) fn open_count(&self) -> watch::Receiver<u64> {
        self.open.subscribe()
    }

    /// How many clients wait for the server, and its changes.
    pub(crate) fn waiting_count(&self) -> watch::Receiver<u64> {
        self.waiting.subscribe()
    }

    /// A client waits for the server as long as the value lives.
    pub(crate) fn wait(self: &Arc<Self>) -> Waiting {
        self.waiting.send_modify(|count| *count += 1);
        self.touch();
        Waiting(Arc::clone(self))
    }

    /// Counts a client as long as the value lives; none if there are as many already.
    pub(crate) fn enter(self: &Arc<Self>, clients_max: u64) -> Option<Entered> {
        if self.clients.load(Relaxed) >= clients_max {
            return None;
        }
        self.clients.fetch_add(1, Relaxed);
        Some(Entered(Arc::clone(self)))
    }

    /// How many clients are connected, logged in or not.
    pub(crate) fn client_count(&self) -> u64 {
        self.clients.load(Relaxed)
    }

    /// Counts a session as long as the value lives.
    pub(crate) fn begin(self: &Arc<Self>) -> Session {
        self.sessions.fetch_add(1, Relaxed);
        self.touch();
        Session { hub: Arc::clone(self), busy: false }
    }

    /// Counts a parked session as long as the value lives.
    pub(crate) fn park(self: &Arc<Self>, role: &str) -> Parked {
        *self.parked.lock().entry(role.to_owned()).or_default() += 1;
        Parked { hub: Arc::clone(self), role: role.to_owned() }
    }

    /// Something was under way just now.
    pub(crate) fn touch(&self) {
        self.active_ms.store(self.now_ms(), Relaxed);
    }

    /// Whether a server is served, and somebody uses it or is about to.
    pub(crate) fn is_in_use(&self) -> bool {
        let used = self.busy.load(Relaxed) > 0 || *self.waiting.borrow() > 0;
        used && matches!(*self.phase.borrow(), Phase::Serving(_))
    }

    /// How it stands.
    pub(crate) fn status(&self) -> Status {
        let state = match &*self.phase.borrow() {
            Phase::Serving(_) => State::Serving,
            Phase::Held { why: Why::Asleep, .. } => State::Asleep,
            Phase::Held { why: Why::Change, .. } | Phase::Ended => State::Holding,
        };
        let parked = self.parked.lock();
        let idle_ms = match self.busy.load(Relaxed) {
            0 => self.now_ms().saturating_sub(self.active_ms.load(Relaxed)),
            _ => 0,
        };
        Status {
            version: VERSION,
            state,
            sessions: self.sessions.load(Relaxed),
            parked: parked.values().sum(),
            waiting: *self.waiting.borrow(),
            idle_ms,
            parked_roles: parked.keys().cloned().collect(),
        }
    }

    /// Makes a key for cancelling in the place of a server's: as long, and nobody else's.
    pub(crate) fn make_key(self: &Arc<Self>, server_key: &[u8]) -> Option<Key> {
        if !(8..=KEY_BYTES_MAX).contains(&server_key.len()) {
            return None;
        }
        let mut keys = self.keys.lock();
        loop {
            let mut made: Vec<u8> = random_bytes::<KEY_BYTES_MAX>()[..server_key.len()].to_vec();
            // The id of a process is positive.
            made[0] &= 0x7f;
            made[3] |= 1;
            if !keys.contains_key(&made) {
                keys.insert(made.clone(), Some(server_key.to_vec()));
                return Some(Key { hub: Arc::clone(self), made });
            }
        }
    }

    /// The server's key in the place of which this one was made; none for an unknown one, or without a server.
    pub(crate) fn server_key(&self, made: &[u8]) -> Option<Vec<u8>> {
        self.keys.lock().get(made)?.clone()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A connection to the server.
#[derive(Debug)]
pub(crate) struct Open(Arc<Hub>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|count| *count -= 1);
    }
}

/// A client that waits for the server.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Hub>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.send_modify(|count| *count -= 1);
    }
}

/// A client.
#[derive(Debug)]
pub(crate) struct Entered(Arc<Hub>);

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Relaxed);
    }
}

/// A client that has logged in.
#[derive(Debug)]
pub(crate) struct Session {
    hub: Arc<Hub>,
    busy: bool,
}

impl Session {
    /// Says whether something is under way in it.
    pub(crate) fn set_busy(&mut self, busy: bool) {
        if self.busy != busy {
            self.busy = busy;
            self.hub.touch();
            if busy {
                self.hub.busy.fetch_add(1, Relaxed);
            } else {
                self.hub.busy.fetch_sub(1, Relaxed);
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.set_busy(false);
        self.hub.sessions.fetch_sub(1, Relaxed);
    }
}

/// A parked session.
#[derive(Debug)]
pub(crate) struct Parked {
    hub: Arc<Hub>,
    role: String,
}

impl Drop for Parked {
    fn drop(&mut self) {
        let mut parked = self.hub.parked.lock();
        if let Some(count) = parked.get_mut(&self.role) {
            *count -= 1;
            if *count == 0 {
                parked.remove(&self.role);
            }
        }
    }
}

/// A key for cancelling that a client has.
#[derive(Debug)]
pub(crate) struct Key {
    hub: Arc<Hub>,
    made: Vec<u8>,
}

impl Key {
    /// What the client is told.
    pub(crate) fn made(&self) -> &[u8] {
        &self.made
    }

    /// It now stands for another key of a server, or for none.
    pub(crate) fn stands_for(&self, server_key: Option<&[u8]>) {
        self.hub.keys.lock().insert(self.made.clone(), server_key.map(<[u8]>::to_vec));
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.hub.keys.lock().remove(&self.made);
    }
}

#[cfg(test)]
mod tests;
