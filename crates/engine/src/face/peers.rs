//! Other engines: let in by a code, called, answered.

use crate::core::{peers, topology};
use crate::ground::network::PeerKey;
use crate::jobs::replica::pull;
use crate::parts::Parts;
use jiff::Timestamp;
use offshoot_catalog::Error;
use offshoot_domain::{Incoming, Invitation, ObjectName, Peer, Told, Topology};
use offshoot_os::random_bytes;
use offshoot_replication::code::{self, Code};
use offshoot_replication::talk::{Hello, Message, Talk, VERSION, Welcome};
use offshoot_types::{ErrorKind, Failure};
use std::sync::Arc;
use std::time::Duration;

/// How long a code is good unless something else is said.
const CODE_GOOD: Duration = Duration::from_secs(15 * 60);
/// The longest that it may be.
const CODE_GOOD_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Codes that wait to be used.
const CODES_MAX: usize = 100;

/// Who is let in.
#[derive(Debug, Clone, Default)]
pub struct InviteRequest {
    /// The name that it gets here; one of its engine's id where absent.
    pub name: Option<String>,
    /// How long the code is good.
    pub good_for: Option<Duration>,
}

/// Whom to send to.
#[derive(Debug, Clone)]
pub struct AddPeerRequest {
    /// The name that it gets here.
    pub name: String,
    /// Where it is: `HOST:PORT`.
    pub address: String,
    /// The code that it has made.
    pub code: String,
}

/// A peer, and the profiles that send to it.
#[derive(Debug, Clone)]
pub struct PeerView {
    /// The record.
    pub peer: Peer,
    /// The names of profiles.
    pub profiles: Vec<String>,
}

/// Peers, as an administrator works with them.
pub struct Peers<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Peers<'_> {
    /// Of the certificate that this engine shows to peers.
    ///
    /// # Errors
    /// The catalog's.
    pub fn own_fingerprint(&self) -> Result<String, Failure> {
        peers::own_fingerprint(self.parts)
    }

    /// What this engine proves itself with to a caller who asks for the certificate of a fingerprint, or for none.
    ///
    /// # Errors
    /// The catalog's.
    pub fn key_to_show(&self, asked: Option<&str>) -> Result<PeerKey, Failure> {
        peers::key_to_show(self.parts, asked)
    }

    /// Makes another key for peers. Each is told of it by the next connection, and knows the one before until then. Codes
    /// that were given out are no good any more.
    ///
    /// # Errors
    /// `WrongState` while a peer does not know the last one.
    pub fn rotate_key(&self) -> Result<(), Failure> {
        peers::rotate(self.parts)
    }

    /// Whether an engine that shows a certificate of this fingerprint is a peer that may send.
    ///
    /// # Errors
    /// The catalog's.
    pub fn knows(&self, fingerprint: &str) -> Result<bool, Failure> {
        let all = self.parts.catalog.all::<Peer>()?;
        Ok(all.iter().any(|peer| peer.may_send && peer.is_known_by(fingerprint)))
    }

    /// Makes a code that lets one engine in, once: it may send into its namespace here.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that a peer has which may send already; `InvalidInput`.
    pub fn invite(&self, request: &InviteRequest) -> Result<(Invitation, String), Failure> {
        let name: Option<ObjectName> = request.name.as_deref().map(str::parse).transpose()?;
        if let Some(name) = &name
            && let Some(peer) = self.parts.catalog.find_named::<Peer>(name)?
            && peer.sends_here()
        {
            return Err(taken(name));
        }
        let good_for = request.good_for.unwrap_or(CODE_GOOD);
        if good_for.is_zero() || good_for > CODE_GOOD_MAX {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                "a code is good for up to a day",
                "give it a shorter time: --expires 15min",
            ));
        }
        let code = Code::new(&self.own_fingerprint()?, random_bytes());
        let created_at = self.parts.now();
        let expires_at = created_at
            .checked_add(good_for)
            .map_err(|error| Failure::internal(format!("the end of a code: {error}")))?;
        let id = self.parts.catalog.allocate::<Peer>()?;
        let hash = code::hash(&code.secret);
        let invitation = Invitation { id, name, hash, created_at, expires_at };
        let added = self.parts.catalog.transaction(|tx| -> Result<bool, Error> {
            let all = tx.list::<Invitation>()?;
            for old in all.iter().filter(|one| one.is_expired(created_at)) {
                tx.delete::<Invitation>(old.id)?;
            }
            let few = all.iter().filter(|one| !one.is_expired(created_at)).count() < CODES_MAX;
            if few {
                tx.put(&invitation)?;
            }
            Ok(few)
        })?;
        let full = || {
            let message = format!("{CODES_MAX} codes wait to be used");
            Failure::new(ErrorKind::WrongState, message, "use them, or wait until they end")
        };
        added.then_some((invitation, code.text())).ok_or_else(full)
    }

    /// Adds an engine to send to, by a code that it has made.
    ///
    /// # Errors
    /// `InvalidInput` for the code, `AlreadyExists` for the name; what the network and the other engine say.
    pub fn add(&self, request: &AddPeerRequest) -> Result<PeerView, Failure> {
        let name: ObjectName = request.name.parse()?;
        let code = Code::parse(&request.code)?;
        let known = self.parts.catalog.find_named::<Peer>(&name)?;
        let is_other = |peer: &Peer| peer.is_sent_to() || !peer.is_known_by(&code.fingerprint);
        let own = match &known {
            Some(peer) if is_other(peer) => return Err(taken(&name)),
            Some(peer) => peers::key_for(self.parts, peer)?,
            None => peers::own_key(self.parts)?,
        };
        let reached = self.parts.network.call(&request.address, &[&code.fingerprint], &own)?;
        let mut talk = Talk::new(reached.wire);
        let welcome = join(&mut talk, peers::hello(self.parts, None, Some(code.secret))?)?;
        if welcome.engine == peers::own_engine(self.parts) {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                "this is the engine itself",
                "make the code on the other engine: offshoot peer invite",
            ));
        }
        let now = self.parts.now();
        let fresh = Peer {
            id: self.parts.catalog.allocate::<Peer>()?,
            name,
            engine: welcome.engine,
            fingerprint: code.fingerprint,
            next_fingerprint: None,
            knows_old_key: false,
            address: Some(request.address.clone()),
            may_send: false,
            created_at: now,
            seen_at: Some(now),
            taken_over_at: None,
            awaited: None,
            handed_over: None,
            relieved_at: None,
        };
        let peer = self.parts.catalog.transaction(|tx| merged(tx, fresh))?;
        self.view(peer)
    }

    /// All peers, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<PeerView>, Failure> {
        let mut all: Vec<Peer> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.into_iter().map(|peer| self.view(peer)).collect()
    }

    /// One peer.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<PeerView, Failure> {
        self.view(peers::find(self.parts, name)?)
    }

    /// All engines that are known, and which sends to which: of this one's own knowledge, and as peers have said when they
    /// spoke last.
    ///
    /// # Errors
    /// The catalog's.
    pub fn topology(&self) -> Result<Topology, Failure> {
        Ok(Topology::of(&topology::known(self.parts)?))
    }

    /// Forgets a peer. What it has sent stays; what of it is not whole goes.
    ///
    /// # Errors
    /// `NotFound`; `WrongState` while profiles send to it.
    pub fn remove(&self, name: &str) -> Result<PeerView, Failure> {
        let view = self.show(name)?;
        if let Some(profile) = view.profiles.first() {
            return Err(Failure::new(
                ErrorKind::WrongState,
                format!("the profile '{profile}' sends to '{name}'"),
                format!("delete it first: offshoot replication delete {profile}"),
            ));
        }
        self.parts.catalog.transaction(|tx| {
            tx.delete::<Peer>(view.peer.id)?;
            tx.delete::<Told>(view.peer.id)?;
            peers::drop_old_key(tx)
        })?;
        for incoming in self.parts.catalog.list::<Incoming>()? {
            let busy = self.parts.runner()?.is_busy(incoming.id);
            if incoming.peer == view.peer.id && !busy {
                pull::give_up(self.parts, incoming.id)?;
            }
        }
        Ok(view)
    }

    fn view(&self, peer: Peer) -> Result<PeerView, Failure> {
        let to_it = peers::profiles_to(self.parts, peer.id)?;
        let profiles = to_it.iter().map(|profile| profile.name.to_string()).collect();
        Ok(PeerView { peer, profiles })
    }
}

fn taken(name: &ObjectName) -> Failure {
    Failure::new(
        ErrorKind::AlreadyExists,
        format!("there is a peer '{name}' already"),
        "choose another name, or remove that peer: offshoot peer remove",
    )
}

fn join(talk: &mut Talk, hello: Hello) -> Result<Welcome, Failure> {
    let said = talk.say(&Message::Hello(hello));
    let heard = said.and_then(|()| talk.hear(&mut || Ok(()))).map_err(|error| error.failure())?;
    match heard {
        Message::Welcome(welcome) if welcome.version == VERSION => Ok(welcome),
        other => Err(Failure::internal(format!("the other engine answered {other:?}"))),
    }
}

/// Lets an engine in that shows the secret of a code. The code is used up then.
///
/// # Errors
/// `Forbidden` for a wrong, used or expired code.
pub(super) fn admit(
    parts: &Parts,
    secret: &str,
    engine: &str,
    fingerprint: &str,
) -> Result<Peer, Failure> {
    let (hash, now) = (code::hash(secret), parts.now());
    let refuse = |message: &str| {
        let hint = "make a new one on the other engine: offshoot peer invite";
        Failure::new(ErrorKind::Forbidden, message, hint)
    };
    if engine == peers::own_engine(parts) {
        let hint = "use it on the engine that is to send: offshoot peer add";
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            "this engine made the code itself",
            hint,
        ));
    }
    parts.catalog.transaction(|tx| -> Result<Result<Peer, Failure>, Error> {
        let all = tx.list::<Invitation>()?;
        let Some(invitation) = all.into_iter().find(|one| one.hash == hash) else {
            return Ok(Err(refuse("the code is wrong, or was used already")));
        };
        if invitation.is_expired(now) {
            return Ok(Err(refuse("the code has expired")));
        }
        let by_engine = || format!("engine-{}", engine.get(..8).unwrap_or("other")).parse();
        let name = match invitation.name.clone().map_or_else(by_engine, Ok) {
            Ok(name) => name,
            Err(failure) => return Ok(Err(failure)),
        };
        if let Some(present) = tx.find_named::<Peer>(&name)?
            && (!present.is_known_by(fingerprint) || present.sends_here())
        {
            return Ok(Err(taken(&name)));
        }
        tx.delete::<Invitation>(invitation.id)?;
        let fresh = Peer {
            id: invitation.id,
            name,
            engine: engine.to_owned(),
            fingerprint: fingerprint.to_owned(),
            next_fingerprint: None,
            knows_old_key: false,
            address: None,
            may_send: true,
            created_at: now,
            seen_at: Some(now),
            taken_over_at: None,
            awaited: None,
            handed_over: None,
            relieved_at: None,
        };
        Ok(Ok(merged(tx, fresh)?))
    })?
}

/// Adds what is known of a peer; one of the same name and certificate is the same one, and sends in both directions.
fn merged(tx: &offshoot_catalog::Transaction<'_>, fresh: Peer) -> Result<Peer, Error> {
    let peer = match tx.find_named::<Peer>(&fresh.name)? {
        Some(present) if present.is_known_by(&fresh.fingerprint) => Peer {
            address: fresh.address.or(present.address),
            may_send: fresh.may_send || present.may_send,
            seen_at: fresh.seen_at,
            taken_over_at: present.taken_over_at.filter(|_| !fresh.may_send),
            relieved_at: present.relieved_at.filter(|_| fresh.may_send),
            ..present
        },
        _ => fresh,
    };
    tx.put(&peer)?;
    Ok(peer)
}

/// Who may send and has this certificate.
pub(super) fn sender(parts: &Parts, hello: &Hello, fingerprint: &str) -> Result<Peer, Failure> {
    let all = parts.catalog.all::<Peer>()?;
    let found = all.iter().find(|peer| peer.may_send && peer.is_known_by(fingerprint));
    let found = found.filter(|peer| peer.engine == hello.engine).cloned();
    found.ok_or_else(no_peer)
}

/// Who calls is nobody who may send.
pub(super) fn no_peer() -> Failure {
    Failure::new(
        ErrorKind::Forbidden,
        "this engine is no peer there, or not any more",
        "let it in again: offshoot peer invite there, offshoot peer add here",
    )
}

/// Whether the clocks of two engines are too far apart.
pub(super) fn check_clock(now: Timestamp, hello: &Hello) -> Result<(), Failure> {
    const FAR_MS: u64 = 10 * 60 * 1000;
    let apart = now.as_millisecond().abs_diff(hello.clock_ms);
    if apart <= FAR_MS {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::HostUnprepared,
        format!("the clocks of the two engines are {} s apart", apart / 1000),
        "set both clocks right: moments are named by time",
    ))
}
