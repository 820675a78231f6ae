//! Looks after gateways: stops VDBs that nobody uses, starts them for whoever connects, and makes gateways anew that
//! have ended.

use crate::core::keys::vdb_key;
use crate::ground::stopping::Stopping;
use crate::jobs::sleep;
use crate::parts::Parts;
use crate::serving::gateways;
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
/// Pause between two tries to start a VDB that somebody waits for.
const WAKE_PAUSE: Duration = Duration::from_secs(3);

/// What is looked after.
#[derive(Default)]
struct Tended {
    look_at: Duration,
    /// By which sleeping VDBs say that somebody wants them.
    wishes: HashMap<VdbId, UnixStream>,
    /// When each may be woken again.
    wake_at: HashMap<VdbId, Duration>,
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
            } else if self.wake_at.get(&id).is_none_or(|at| *at <= parts.clock.elapsed()) {
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
        self.wake_at.insert(id, parts.clock.elapsed() + WAKE_PAUSE);
        match sleep::submit_wake(parts, &vdb) {
            Ok(_) => tracing::info!(vdb = %vdb.name, "woken"),
            Err(failure) if failure.code == ErrorKind::Busy => {}
            Err(failure) => tracing::warn!(vdb = %vdb.name, %failure, "it should be woken"),
        }
        Ok(())
    }

    /// Those that have fallen asleep are listened to at once; the others are looked at from time to time.
    fn look_at_all(&mut self, parts: &Arc<Parts>) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        let is_due = now >= self.look_at;
        if is_due {
            self.look_at = now + PAUSE;
            self.wake_at.retain(|_, at| *at > now);
        }
        let all = parts.catalog.all::<Vdb>()?;
        let asleep: HashSet<VdbId> =
            all.iter().filter(|vdb| vdb.is_asleep()).map(|vdb| vdb.id).collect();
        self.wishes.retain(|id, _| asleep.contains(id));
        for vdb in all.iter() {
            let Some(gateway) = &vdb.gateway else { continue };
            let looked_at = match vdb.state {
                VdbState::Running if is_due => look_at(parts, vdb, gateway),
                _ if asleep.contains(&vdb.id) => self.listen(parts, vdb),
                _ => Ok(()),
            };
            if let Err(failure) = looked_at {
                tracing::warn!(vdb = %vdb.name, %failure, "looking after its gateway");
            }
        }
        Ok(())
    }

    /// Hears of clients of one that sleeps.
    fn listen(&mut self, parts: &Parts, vdb: &Vdb) -> Result<(), Failure> {
        if self.wishes.contains_key(&vdb.id) {
            return Ok(());
        }
        let wishes = |parts: &Parts| {
            let gateway = parts.gateways.get(vdb.id);
            gateway.ok_or_else(|| Failure::internal("a gateway that was not prepared"))?.wishes()
        };
        let stream = wishes(parts).or_else(|_| {
            gateways::rest(parts, vdb)?;
            wishes(parts)
        })?;
        self.wishes.insert(vdb.id, stream);
        Ok(())
    }
}

/// One whose server runs: whether its gateway does, and whether anybody uses it.
fn look_at(parts: &Arc<Parts>, vdb: &Vdb, gateway: &Gateway) -> Result<(), Failure> {
    let Some(server) = parts.servers.get(&vdb_key(vdb.id)) else { return Ok(()) };
    let status = parts.gateways.get(vdb.id).map(|gateway| gateway.status());
    let Some(Ok(status)) = status else {
        // Whoever stops the server holds its gateway first, and a gateway that is gone cannot be held.
        gateways::prepare(parts, vdb)?;
        return gateways::serve(parts, vdb, &*server);
    };
    let limit = gateway.stop_when_idle_ms.map(Duration::from_millis);
    if limit.is_none_or(|limit| status.idle < limit) {
        return Ok(());
    }
    match sleep::submit_sleep(parts, vdb) {
        Ok(_) => tracing::info!(vdb = %vdb.name, "nobody uses it"),
        Err(failure) if failure.code == ErrorKind::Busy => {}
        Err(failure) => return Err(failure),
    }
    Ok(())
}
