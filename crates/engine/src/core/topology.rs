//! What engines tell each other of whom they know. Names and ids of engines, nothing else.

use crate::core::Core;
use crate::core::peers::{own_engine, profiles_to};
use offshoot_domain::{Neighbour, Neighbourhood, Peer, Told, newest};
use offshoot_types::{Failure, PeerId};
use serde_json::Value;

/// The most peers of one engine that are told.
const PEERS_MAX: usize = 64;
/// The most that is told of all.
const SAID_BYTES_MAX: usize = 16 << 10;

/// What is known of each engine, of this one first.
///
/// # Errors
/// The catalog's.
pub fn known(core: &Core) -> Result<Vec<Neighbourhood>, Failure> {
    let told = core.catalog.list::<Told>()?;
    Ok(newest(own(core)?, told.into_iter().flat_map(|told| told.all)))
}

fn own(core: &Core) -> Result<Neighbourhood, Failure> {
    let mut peers = Vec::new();
    for peer in core.catalog.list::<Peer>()? {
        let is_sent_to = peer.is_sent_to() && !profiles_to(core, peer.id)?.is_empty();
        let sends = peer.sends_here();
        peers.push(Neighbour { engine: peer.engine, name: peer.name, is_sent_to, sends });
    }
    Ok(Neighbourhood { engine: own_engine(core), as_of: core.now(), peers })
}

/// The same, as it is told: as much as goes into a message that nobody notices, and this engine's own peers before others.
///
/// # Errors
/// The catalog's.
pub fn said(core: &Core) -> Result<Vec<Value>, Failure> {
    let mut known = known(core)?;
    known.iter_mut().for_each(|one| one.peers.truncate(PEERS_MAX));
    let (mut said, mut bytes) = (Vec::new(), 0);
    for one in known {
        let one = serde_json::to_value(one);
        let one = one.map_err(|error| Failure::internal(format!("what is known: {error}")))?;
        bytes += one.to_string().len();
        if bytes > SAID_BYTES_MAX {
            break;
        }
        said.push(one);
    }
    Ok(said)
}

/// Remembers what a peer has told. What is not understood is left out: a newer engine may say more.
///
/// # Errors
/// The catalog's.
pub fn heard(core: &Core, id: PeerId, said: &[Value]) -> Result<(), Failure> {
    let read = |one: &Value| serde_json::from_value::<Neighbourhood>(one.clone()).ok();
    let all = newest(own(core)?, said.iter().filter_map(read)).split_off(1);
    Ok(core.catalog.put(&Told { id, all })?)
}
