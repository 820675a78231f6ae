//! Taking over what another engine has sent.

use crate::core::peers;
use crate::face::replication::Replication;
use crate::jobs::failover::{self, Taken, base, copies};
use offshoot_domain::{Dsource, ObjectName, Owner, Peer, Replica, format_duration};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whoever called so recently may still be there.
const RECENT: Duration = Duration::from_secs(5 * 60);

/// What to take over.
#[derive(Debug, Clone, Default)]
pub struct FailoverRequest {
    /// The namespace: the peer's name.
    pub namespace: String,
    /// Whether to do it although the other engine seems to live.
    pub force: bool,
    /// Names that are given instead of those that the dSources and VDBs had there.
    pub rename: BTreeMap<String, String>,
}

impl Replication<'_> {
    /// Makes the copies of another engine's dSources this engine's own; from then on nothing that it sends is taken.
    ///
    /// # Errors
    /// `NotFound` where there is none; `WrongState` if it was done before, or the other engine seems to live; `AlreadyExists`
    /// for a name; `Busy`.
    pub fn fail_over(&self, request: &FailoverRequest) -> Result<JobId, Failure> {
        let namespace: ObjectName = request.namespace.parse()?;
        let peer = self.parts.catalog.find_named::<Peer>(&namespace)?;
        if let Some(at) = peer.as_ref().and_then(|peer| peer.taken_over_at) {
            return Err(Failure::new(
                ErrorKind::WrongState,
                format!("'{namespace}' was taken over already, at {at:.0}"),
                "see how its dSources are: offshoot dsource list",
            ));
        }
        let copies = copies(self.parts, &namespace)?;
        if copies.is_empty() {
            return Err(Failure::new(
                ErrorKind::NotFound,
                format!("there is no copy of another engine's in '{namespace}'"),
                "those that are here are PEER/NAME: offshoot dsource list",
            ));
        }
        check_renamed(&namespace, &copies, &request.rename)?;
        let dsources = taken(&copies, &request.rename, |of| matches!(of, Owner::Dsource(_)))?;
        let vdbs = taken(&copies, &request.rename, |of| matches!(of, Owner::Vdb(_)))?;
        if dsources.is_empty() && peer.is_none() {
            return Err(Failure::new(
                ErrorKind::NotFound,
                format!("only copies of VDBs are in '{namespace}'"),
                "make VDBs of them: offshoot vdb provision NAME --from PEER/NAME",
            ));
        }
        if let (Some(peer), false) = (&peer, request.force) {
            self.check_gone(peer)?;
        }
        let peer = peer.map(|peer| peer.id);
        failover::submit(self.parts, &failover::Input { namespace, peer, dsources, vdbs })
    }

    /// Refuses to take over from an engine that seems to live: two would go on with the same databases.
    fn check_gone(&self, peer: &Peer) -> Result<(), Failure> {
        let alive = |how: String| {
            Failure::new(
                ErrorKind::WrongState,
                format!("'{}' {how}: it may still be at work", peer.name),
                "stop it, and send what is new for the last time (offshoot replication run there); if it is lost, or must not \
                 be waited for: --force",
            )
        };
        if let Some(intake) = failover::intakes(self.parts, peer.id)?.first() {
            return Err(alive(format!("is sending ({intake})")));
        }
        let ms = |at: jiff::Timestamp| self.parts.now().as_millisecond() - at.as_millisecond();
        let ago = peer.seen_at.map(|at| Duration::from_millis(ms(at).max(0).unsigned_abs()));
        if let Some(ago) = ago.filter(|ago| *ago < RECENT) {
            return Err(alive(format!("called {} ago", format_duration(ago))));
        }
        let Some(address) = &peer.address else { return Ok(()) };
        let own = peers::own_key(self.parts)?;
        match self.parts.network.call(address, &peer.fingerprint, &own) {
            Ok(_) => Err(alive(format!("answers at {address}"))),
            Err(_) => Ok(()),
        }
    }
}

/// Refuses a new name for what is not there.
fn check_renamed(
    namespace: &ObjectName,
    copies: &[(Dsource, Replica)],
    rename: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let names: Vec<&str> = copies.iter().map(|(one, _)| base(&one.name)).collect();
    let Some(unknown) = rename.keys().find(|name| !names.contains(&name.as_str())) else {
        return Ok(());
    };
    Err(Failure::new(
        ErrorKind::NotFound,
        format!("there is no '{unknown}' in '{namespace}' to be given another name"),
        format!("name one of these: {}", names.join(", ")),
    ))
}

/// The copies of one kind of object, with the names that they get.
fn taken(
    copies: &[(Dsource, Replica)],
    rename: &BTreeMap<String, String>,
    of_kind: impl Fn(Owner) -> bool,
) -> Result<Vec<Taken>, Failure> {
    let own = copies.iter().filter(|(_, replica)| of_kind(replica.origin));
    let taken = |(one, _): &(Dsource, Replica)| {
        let name = base(&one.name);
        let to = rename.get(name).map_or(name, String::as_str).parse()?;
        Ok(Taken { id: one.id, from: one.name.clone(), to })
    };
    own.map(taken).collect()
}
