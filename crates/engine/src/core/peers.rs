//! What this engine is to others, and which others there are.

use crate::core::certificate;
use crate::core::keys::PEER_KEY;
use crate::core::{Core, missing};
use crate::ground::network::PeerKey;
use offshoot_catalog::Error;
use offshoot_domain::{Peer, Profile, Secret};
use offshoot_replication::talk::{Hello, VERSION};
use offshoot_types::{ErrorKind, Failure, PeerId};

/// The name in certificates. Nobody looks at it: peers pin the certificate.
pub const HOST: &str = "offshoot-peer";

/// The id of this engine's pool.
pub fn own_engine(core: &Core) -> String {
    core.store.pool().id().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What this engine proves itself with; made when it is first asked for.
pub fn own_key(core: &Core) -> Result<PeerKey, Failure> {
    if let Some(stored) = core.catalog.secret(PEER_KEY)? {
        return read(&stored);
    }
    let (certificate, key) = certificate::make(vec![HOST.to_owned()])?;
    let made = Secret::new(format!("{certificate}{}", key.reveal()));
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

fn read(stored: &Secret) -> Result<PeerKey, Failure> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = stored.reveal();
    let end = text.find(END).map(|at| at + END.len());
    let end = end.ok_or_else(|| Failure::internal("the certificate for peers is none"))?;
    let (certificate, key) = text.split_at(end);
    let (certificate, key) = (format!("{certificate}\n"), Secret::new(key.trim_start()));
    Ok(PeerKey { certificate, key })
}

/// How this engine introduces itself.
pub fn hello(core: &Core, join: Option<String>) -> Hello {
    Hello {
        version: VERSION,
        engine: own_engine(core),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        clock_ms: core.now().as_millisecond(),
        join,
    }
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

/// Remembers that there was a connection just now.
pub fn seen(core: &Core, id: PeerId) -> Result<(), Failure> {
    let now = core.now();
    core.catalog.update(id, |peer: &mut Peer| peer.seen_at = Some(now))?;
    Ok(())
}
