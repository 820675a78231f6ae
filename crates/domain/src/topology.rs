//! Which engines there are, as they tell each other whenever they speak.

use crate::ObjectName;
use jiff::{SignedDuration, Timestamp};
use offshoot_types::PeerId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is older is not told, and not shown.
const OLD: SignedDuration = SignedDuration::from_hours(24 * 30);
/// How far ahead another engine's clock may be.
const AHEAD: SignedDuration = SignedDuration::from_hours(1);

/// Whom an engine sends to, and who sends to it, as it has said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbourhood {
    /// The engine, by the id of its pool.
    pub engine: String,
    /// When it said so, by its clock.
    pub as_of: Timestamp,
    /// Its peers.
    pub peers: Vec<Neighbour>,
}

/// A peer of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// Its engine, by the id of its pool.
    pub engine: String,
    /// What it is called by the one that says so.
    pub name: ObjectName,
    /// Whether it is sent something.
    pub is_sent_to: bool,
    /// Whether it sends.
    pub sends: bool,
}

/// What a peer has said last: of itself, and of those it has heard of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The peer.
    pub id: PeerId,
    /// One of each engine.
    pub all: Vec<Neighbourhood>,
}

/// An engine that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownEngine {
    /// The id of its pool.
    pub id: String,
    /// What it is called, on the shortest way to it from the one that asks: `far`, or `middle/far`. None: that one itself.
    pub name: Option<String>,
    /// When it has said itself whom it speaks with; none: only others have.
    pub as_of: Option<Timestamp>,
}

/// The engines that are known, and which sends to which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    /// The one that asks first, then by distance and name.
    pub engines: Vec<KnownEngine>,
    /// From, and to, by ids.
    pub links: BTreeSet<(String, String)>,
}

/// What is known of each engine: `own` first, then of each of those that were heard of the newest. What others say of `own`
/// is not believed, nor what is old, or of a time to come.
pub fn newest(
    own: Neighbourhood,
    heard: impl IntoIterator<Item = Neighbourhood>,
) -> Vec<Neighbourhood> {
    let now = own.as_of;
    let fresh = |at: Timestamp| now.duration_since(at) <= OLD && at.duration_since(now) <= AHEAD;
    let mut of: BTreeMap<String, Neighbourhood> = BTreeMap::new();
    for one in heard.into_iter().filter(|one| one.engine != own.engine && fresh(one.as_of)) {
        match of.get(&one.engine) {
            Some(known) if known.as_of >= one.as_of => {}
            _ => drop(of.insert(one.engine.clone(), one)),
        }
    }
    [own].into_iter().chain(of.into_values()).collect()
}

impl Topology {
    /// Of what is known of each engine, as [`newest`] gives it. Those that no way leads to are left out.
    pub fn of(known: &[Neighbourhood]) -> Topology {
        let of: BTreeMap<&str, &Neighbourhood> =
            known.iter().map(|one| (one.engine.as_str(), one)).collect();
        let mut topology = Topology { engines: Vec::new(), links: BTreeSet::new() };
        let mut ways: VecDeque<(&str, Option<String>)> = VecDeque::new();
        ways.extend(known.first().map(|own| (own.engine.as_str(), None)));
        while let Some((id, name)) = ways.pop_front() {
            if topology.engines.iter().any(|one| one.id == id) {
                continue;
            }
            let says = of.get(id);
            let mut peers: Vec<&Neighbour> = says.iter().flat_map(|one| &one.peers).collect();
            peers.sort_by(|one, other| one.name.cmp(&other.name));
            for peer in peers {
                let (here, there) = (id.to_owned(), peer.engine.clone());
                topology.links.extend(peer.is_sent_to.then(|| (here.clone(), there.clone())));
                topology.links.extend(peer.sends.then_some((there, here)));
                let called = name.as_ref().map(|name| format!("{name}/{}", peer.name));
                ways.push_back((
                    &peer.engine,
                    Some(called.unwrap_or_else(|| peer.name.to_string())),
                ));
            }
            let as_of = says.map(|one| one.as_of);
            topology.engines.push(KnownEngine { id: id.to_owned(), name, as_of });
        }
        topology
    }
}

#[cfg(test)]
mod tests;
