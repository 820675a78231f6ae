//! What this engine is to others, and which others there are.

use crate::core::certificate;
use crate::core::keys::{OLD_PEER_KEY, PEER_KEY};
use crate::core::{Core, hex, missing};
use crate::ground::network::PeerKey;
use offshoot_catalog::{Error, Transaction};
use offshoot_domain::{Invitation, Peer, Profile, Secret};
use offshoot_replication::talk::{Hello, VERSION};
use offshoot_types::{ErrorKind, Failure, PeerId};

/// The name in certificates. Nobody looks at it: peers pin the certificate.
pub const HOST: &str = "offshoot-peer";

/// The id of this engine's pool.
pub fn own_engine(core: &Core) -> String {
    hex(&core.store.pool().id())
}

/// What this engine proves itself with; made when it is first asked for.
pub fn own_key(core: &Core) -> Result<PeerKey, Failure> {
    if let Some(stored) = core.catalog.secret(PEER_KEY)? {
        return read(&stored);
    }
    let made = make()?;
    let stored = core.catalog.transaction(|tx| -> Result<Secret, Error> {
        // Somebody may have been faster.
        if let Some(stored) = tx.secret(PEER_KEY)? {
            return Ok(stored);
        }
        tx.put_secret(PEER_KEY, &made)?;
        Ok(made)
    })?;
    read(&stored)
}

fn make() -> Result<Secret, Failure> {
    let (certificate, key) = certificate::make(vec![HOST.to_owned()])?;
    Ok(Secret::new(format!("{certificate}{}", key.reveal())))
}

/// The key of before the last rotation, while a peer knows only that.
pub fn old_key(core: &Core) -> Result<Option<PeerKey>, Failure> {
    core.catalog.secret(OLD_PEER_KEY)?.map(|stored| read(&stored)).transpose()
}

/// What this engine proves itself with to a peer.
pub fn key_for(core: &Core, peer: &Peer) -> Result<PeerKey, Failure> {
    let old = if peer.knows_old_key { old_key(core)? } else { None };
    old.map_or_else(|| own_key(core), Ok)
}

/// What this engine shows who asks for a certificate of this fingerprint, or for none: the key that those know who were not
/// told of another one.
pub fn key_to_show(core: &Core, asked: Option<&str>) -> Result<PeerKey, Failure> {
    let own = own_key(core)?;
    let is_asked = asked == Some(&core.network.fingerprint(&own.certificate)?);
    let old = if is_asked { None } else { old_key(core)? };
    Ok(old.unwrap_or(own))
}

/// Of the certificate that this engine goes on with.
pub fn own_fingerprint(core: &Core) -> Result<String, Failure> {
    core.network.fingerprint(&own_key(core)?.certificate)
}

/// Makes another key. Peers are told of it one by one, each by a connection that the key before has proved; until then that
/// is what they are shown. A crash at any time leaves both sides able to talk:
///
/// 1. Here, in one transaction, the new key and the old one are both kept, and every peer is one that knows the old one.
/// 2. Who is told takes both from then on, and has recorded that before it says so, or asks for the new one.
/// 3. Here is recorded that it was told; from then on it is shown the new one. With the last of them the old key goes.
/// 4. Once it was shown the new one, it takes the old one no more.
///
/// # Errors
/// `WrongState` while a peer was not told of the last one.
pub fn rotate(core: &Core) -> Result<(), Failure> {
    own_key(core)?;
    let made = make()?;
    core.catalog.transaction(|tx| -> Result<Result<(), Failure>, Error> {
        let peers = tx.list::<Peer>()?;
        if let Some(peer) = peers.iter().find(|peer| peer.knows_old_key) {
            return Ok(Err(not_told(peer)));
        }
        if let (false, Some(old)) = (peers.is_empty(), tx.secret(PEER_KEY)?) {
            tx.put_secret(OLD_PEER_KEY, &old)?;
        }
        tx.put_secret(PEER_KEY, &made)?;
        for peer in peers {
            tx.put(&Peer { knows_old_key: true, ..peer })?;
        }
        // They name the certificate of before.
        for invitation in tx.list::<Invitation>()? {
            tx.delete::<Invitation>(invitation.id)?;
        }
        Ok(Ok(()))
    })?
}

fn not_told(peer: &Peer) -> Failure {
    let name = &peer.name;
    Failure::new(
        ErrorKind::WrongState,
        format!(
            "'{name}' does not know the last key yet: it was not called since, and has not called twice"
        ),
        format!("send it something, or have it send; if it is lost: offshoot peer remove {name}"),
    )
}

/// Forgets the old key once nobody knows only that.
pub fn drop_old_key(tx: &Transaction<'_>) -> Result<(), Error> {
    match tx.list::<Peer>()?.iter().any(|peer| peer.knows_old_key) {
        true => Ok(()),
        false => tx.delete_secret(OLD_PEER_KEY),
    }
}

fn read(stored: &Secret) -> Result<PeerKey, Failure> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = stored.reveal();
    let end = text.find(END).map(|at| at + END.len());
    let end = end.ok_or_else(|| Failure::internal("the certificate for peers is none"))?;
    let (certificate, key) = text.split_at(end);
    let (certificate, key) = (format!("{certificate}\n"), Secret::new(key.trim_start()));
    Ok(PeerKey { certificate, key })
}

/// How this engine introduces itself to a peer, or to who is none yet.
///
/// # Errors
/// The catalog's.
pub fn hello(core: &Core, peer: Option<&Peer>, join: Option<String>) -> Result<Hello, Failure> {
    let not_told = peer.is_some_and(|peer| peer.knows_old_key);
    let next_key = not_told.then(|| own_fingerprint(core)).transpose()?;
    Ok(Hello {
        version: VERSION,
        engine: own_engine(core),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        clock_ms: core.now().as_millisecond(),
        join,
        next_key,
        known: Vec::new(),
    })
}

/// A peer by name.
pub fn find(core: &Core, name: &str) -> Result<Peer, Failure> {
    let found = core.catalog.find_named(name)?;
    found.ok_or_else(|| missing("peer", name, "list them: offshoot peer list"))
}

/// The profiles that send to a peer.
pub fn profiles_to(core: &Core, id: PeerId) -> Result<Vec<Profile>, Failure> {
    let mut all = core.catalog.list::<Profile>()?;
    all.retain(|profile| profile.peer == id);
    Ok(all)
}

/// Refuses what a peer sends whose objects have become this engine's own.
///
/// # Errors
/// `Forbidden`.
pub fn check_not_taken_over(peer: &Peer) -> Result<(), Failure> {
    let Some(at) = peer.taken_over_at else { return Ok(()) };
    let name = &peer.name;
    Err(Failure::new(
        ErrorKind::Forbidden,
        format!(
            "what '{name}' had sent was taken over there at {at:.0}, and goes on there without it"
        ),
        format!(
            "use the other engine; to send to it again all the same: offshoot peer remove {name} there, then a new code"
        ),
    ))
}

/// What was learned of keys from a peer, by a connection that one of its keys has proved.
pub struct Learned<'a> {
    /// Of the certificate that it has shown.
    pub shown: &'a str,
    /// Of the one that it goes on with.
    pub next: Option<&'a str>,
    /// Whether it knows this engine's newest key.
    pub knows_key: bool,
}

/// Remembers that there was a connection just now, and what it said of keys.
///
/// # Errors
/// `Forbidden` for a certificate that another peer has.
pub fn met(core: &Core, id: PeerId, learned: &Learned<'_>) -> Result<Peer, Failure> {
    let now = core.now();
    core.catalog.transaction(|tx| -> Result<Result<Peer, Failure>, Error> {
        let all = tx.list::<Peer>()?;
        let Some(peer) = all.iter().find(|peer| peer.id == id) else {
            return Ok(Err(missing("peer", &id.to_string(), "list them: offshoot peer list")));
        };
        let mut peer = Peer { seen_at: Some(now), ..peer.clone() };
        peer.has_shown(learned.shown);
        if let Some(next) = learned.next {
            if all.iter().any(|other| other.id != id && other.is_known_by(next)) {
                return Ok(Err(not_its_own(&peer)));
            }
            peer.goes_on_with(next);
        }
        let was_told = learned.knows_key && peer.knows_old_key;
        peer.knows_old_key &= !learned.knows_key;
        tx.put(&peer)?;
        if was_told {
            drop_old_key(tx)?;
        }
        Ok(Ok(peer))
    })?
}

fn not_its_own(peer: &Peer) -> Failure {
    Failure::new(
        ErrorKind::Forbidden,
        format!("'{}' names a key that another peer has", peer.name),
        "remove the peer, and add it again with a new code",
    )
}
