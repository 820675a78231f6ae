//! Taking over what another engine has sent.

use crate::core::peers;
use crate::face::replication::Replication;
use crate::jobs::failover::{self, Copies, Input};
use offshoot_domain::{ObjectName, Peer, format_duration};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whoever called so recently may still be there.
const RECENT: Duration = Duration::from_secs(5 * 60);

/// What to take over.
#[derive(Debug, Clone, Default)]
pub struct FailoverRequest {
    /// The namespace: the peer's name; or `PEER/NAME`, of what a peer sends on.
    pub namespace: String,
    /// Whether the other engine is to stop first, and to send the last of what it has.
    pub planned: bool,
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
        let namespace: ObjectName = request.namespace.clone().try_into()?;
        let peer = self.parts.catalog.find_named::<Peer>(&namespace)?;
        if let Some(at) = peer.as_ref().and_then(|peer| peer.taken_over_at) {
            return Err(Failure::new(
                ErrorKind::WrongState,
                format!("'{namespace}' was taken over already, at {at:.0}"),
                "see how its dSources are: offshoot dsource list",
            ));
        }
        let copies = Copies::of(self.parts, &namespace, &request.rename)?;
        if copies.all().next().is_none() {
            return Err(Failure::new(
                ErrorKind::NotFound,
                format!("there is no copy of another engine's in '{namespace}'"),
                "those that are here are PEER/NAME: offshoot dsource list",
            ));
        }
        check_renamed(&namespace, &copies, &request.rename)?;
        if copies.dsources.is_empty() && peer.is_none() {
            return Err(Failure::new(
                ErrorKind::NotFound,
                format!("only copies of VDBs are in '{namespace}'"),
                "make VDBs of them: offshoot vdb provision NAME --from PEER/NAME",
            ));
        }
        let sender = match &peer {
            // It comes by another engine.
            None => self.parts.catalog.find_named::<Peer>(&namespace.outermost())?,
            peer => peer.clone(),
        };
        let sender = sender.filter(Peer::sends_here);
        match (&peer, request.planned, sender, request.force) {
            (None, true, ..) => return Err(no_peer(&namespace)),
            (_, false, Some(sender), false) => self.check_gone(&sender)?,
            _ => {}
        }
        let (peer, planned) = (peer.map(|peer| peer.id), request.planned);
        let rename = request.rename.clone();
        failover::submit(self.parts, &Input { namespace, peer, rename, planned, copies })
    }

    /// Refuses to take over from an engine that seems to live: two would go on with the same databases.
    fn check_gone(&self, peer: &Peer) -> Result<(), Failure> {
        let alive = |how: String| {
            Failure::new(
                ErrorKind::WrongState,
                format!("'{}' {how}: it may still be at work", peer.name),
                "have it stop and send the last of what it has: --planned; if it is lost, or must not be waited for: --force",
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
        let own = peers::key_for(self.parts, peer)?;
        match self.parts.network.call(address, &peer.fingerprints(), &own) {
            Ok(_) => Err(alive(format!("answers at {address}"))),
            Err(_) => Ok(()),
        }
    }
}

fn no_peer(namespace: &ObjectName) -> Failure {
    Failure::new(
        ErrorKind::WrongState,
        format!("'{namespace}' is no engine that sends here: nobody can be asked to stop"),
        "stop it yourself, import its last archive, and leave --planned out",
    )
}

/// Refuses a new name for what is not there.
fn check_renamed(
    namespace: &ObjectName,
    copies: &Copies,
    rename: &BTreeMap<String, String>,
) -> Result<(), Failure> {
    let names: Vec<ObjectName> = copies.all().map(|one| one.from.base()).collect();
    let is_there = |renamed: &&String| names.iter().any(|name| name.as_str() == renamed.as_str());
    let Some(unknown) = rename.keys().find(|renamed| !is_there(renamed)) else { return Ok(()) };
    Err(Failure::new(
        ErrorKind::NotFound,
        format!("there is no '{unknown}' in '{namespace}' to be given another name"),
        format!(
            "name one of these: {}",
            names.iter().map(ObjectName::as_str).collect::<Vec<_>>().join(", ")
        ),
    ))
}
