//! Looks after gateways: stops VDBs that nobody uses, starts them for whoever connects, and makes gateways anew that
//! have ended.

use crate::core::keys::vdb_key;
use crate::ground::stopping::Stopping;
use crate::housekeeping::restart;
use crate::jobs::sleep;
use crate::parts::Parts;
use offshoot_domain::{Gateway, Vdb, VdbState};
use offshoot_os::descriptors::wait_readable;
use offshoot_types::{ErrorKind, Failure, VdbId};
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for clients before anything else is looked at.
const ROUND: Duration = Duration::from_millis(100);
/// Pause between two looks at all gateways.
const PAUSE: Duration = Duration::from_secs(1);
/// Pause between the first two tries to start a VDB that somebody waits for, or to make its gateway anew.
const FIRST_PAUSE: Duration = Duration::from_secs(3);
/// Each further pause is twice as long, up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is looked after.
#[derive(Default)]
struct Tended {
    look_at: Duration,
    /// By which sleeping VDBs say that somebody wants them.
    wishes: HashMap<VdbId, UnixStream>,
    /// VDBs for which something was tried that did not help yet.
    tried: HashMap<VdbId, Tried>,
}

/// A try that is not repeated at once.
struct Tried {
    again_at: Duration,
    pause: Duration,
}

/// Runs until told to stop.
pub fn run(parts: &Arc<Parts>, stopping: &Stopping) {
    let mut tended = Tended::default();
    while !stopping.is_told() {
        if tended.wishes.is_empty() {
            stopping.rest(ROUND);
        }
        if let Err(failure) = tended.wake_wanted(parts).and_then(|()| tended.look_at_all(parts)) {
            tracing::warn!(%failure, "looking after gateways");
            stopping.rest(PAUSE);
        }
    }
}

impl Tended {
    fn wake_wanted(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let ids: Vec<VdbId> = self.wishes.keys().copied().collect();
        let streams: Vec<_> = self.wishes.values().map(AsFd::as_fd).collect();
        let ready = wait_readable(&streams, ROUND)
            .map_err(|error| Failure::internal(format!("waiting for clients: {error}")))?;
        for id in ready.into_iter().filter_map(|place| ids.get(place).copied()) {
            let wished = self.wishes.get_mut(&id).map(|stream| stream.read(&mut [0; 4096]));
            if !matches!(wished, Some(Ok(1..))) {
                // The gateway has ended; it is made anew at the next look.
                self.wishes.remove(&id);
            } else {
                self.wake(parts, id)?;
            }
        }
        Ok(())
    }

    fn wake(&mut self, parts: &Arc<Parts>, id: VdbId) -> Result<(), Failure> {
        let Some(vdb) = parts.catalog.find::<Vdb>(id)?.filter(Vdb::is_asleep) else {
            self.wishes.remove(&id);
            return Ok(());
        };
        if self.may_try(parts, id) {
            submitted(&vdb, "somebody waits for it", sleep::submit_wake(parts, &vdb));
        }
        Ok(())
    }

    /// Whether it is time for another try; if so, that is the one.
    fn may_try(&mut self, parts: &Parts, id: VdbId) -> bool {
        let now = parts.clock.elapsed();
        let pause = match self.tried.get(&id) {
            Some(tried) if now < tried.again_at => return false,
            Some(tried) => (tried.pause * 2).min(LONGEST_PAUSE),
            None => FIRST_PAUSE,
        };
        self.tried.insert(id, Tried { again_at: now + pause, pause });
        true
    }

    /// Those that have fallen asleep are listened to at once; the others are looked at from time to time.
    fn look_at_all(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        let is_due = now >= self.look_at;
        if is_due {
            self.look_at = now + PAUSE;
        }
        let all = parts.catalog.all::<Vdb>()?;
        let asleep: HashSet<VdbId> =
            all.iter().filter(|vdb| vdb.is_asleep()).map(|vdb| vdb.id).collect();
        self.wishes.retain(|id, _| asleep.contains(id));
        for vdb in all.iter() {
            let Some(gateway) = &vdb.gateway else { continue };
            let is_there = match vdb.state {
                VdbState::Running if is_due => look_at(parts, vdb, gateway),
                _ if asleep.contains(&vdb.id) => self.listen(parts, vdb),
                _ => continue,
            };
            if is_there {
                // One that is woken has one more try.
                if vdb.state == VdbState::Running {
                    self.tried.remove(&vdb.id);
                }
            } else if self.may_try(parts, vdb.id) {
                // A job, so that nobody else changes the VDB meanwhile, or deletes it.
                let made = restart::submit_revival(parts, vdb).map(drop);
                submitted(vdb, "its gateway is made anew", made);
            }
        }
        self.tried.retain(|id, _| all.iter().any(|vdb| vdb.id == *id));
        Ok(())
    }

    /// Hears of clients of one that sleeps; whether its gateway is there.
    fn listen(&mut self, parts: &Parts, vdb: &Vdb) -> bool {
        if self.wishes.contains_key(&vdb.id) {
            return true;
        }
        let wishes = parts.gateways.get(vdb.id).map(|gateway| gateway.wishes());
        let Some(Ok(stream)) = wishes else { return false };
        self.wishes.insert(vdb.id, stream);
        true
    }
}

/// One whose server runs: whether its gateway does. If nobody uses it, it is stopped.
fn look_at(parts: &Arc<Parts>, vdb: &Vdb, gateway: &Gateway) -> bool {
    // The watch starts a server that has ended.
    if !parts.servers.is_running(&vdb_key(vdb.id)) {
        return true;
    }
    let idle = parts.gateways.get(vdb.id).map(|gateway| gateway.idle());
    let Some(Ok(idle)) = idle else { return false };
    let limit = gateway.stop_when_idle_ms.map(Duration::from_millis);
    if limit.is_some_and(|limit| idle >= limit) {
        submitted(vdb, "nobody uses it", sleep::submit_sleep(parts, vdb));
    }
    true
}

fn submitted<T>(vdb: &Vdb, why: &str, submitted: Result<T, Failure>) {
    match submitted {
        Ok(_) => tracing::info!(vdb = %vdb.name, "{why}"),
        // Another job holds it; it is looked at again.
        Err(failure) if failure.code == ErrorKind::Busy => {}
        Err(failure) => tracing::warn!(vdb = %vdb.name, %failure, "{why}"),
    }
}
