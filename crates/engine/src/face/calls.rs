//! Answers other engines that call.

use crate::core::keys::sent_password_key;
use crate::core::peers::{self, Learned};
use crate::core::topology;
use crate::face::peers::{Peers, admit, check_clock, no_peer, sender};
use crate::jobs::replica::pull;
use crate::parts::{Call, Parts};
use jiff::Timestamp;
use offshoot_domain::{Awaited, Dsource, Manifest, ObjectName, Owner, Peer, Replica, Secret};
use offshoot_replication::Error;
use offshoot_replication::talk::{Hello, Message, Offer, Password, Talk, VERSION, Welcome, Wire};
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How long a peer waits for others who use what it renews.
const BUSY_WAIT: Duration = Duration::from_secs(60);
/// Between two tries.
const BUSY_PAUSE: Duration = Duration::from_millis(200);

impl Peers<'_> {
    /// Speaks with an engine that called and has proved to have the key of the certificate of this fingerprint; until it has
    /// said all, or `alive` says no. `own` is that of the certificate that it was shown.
    pub fn answer(
        &self,
        wire: Box<dyn Wire>,
        fingerprint: &str,
        own: &str,
        alive: &dyn Fn() -> bool,
    ) {
        let talk = Arc::new(Mutex::new(Talk::new(wire)));
        let answering = Answering { parts: self.parts, talk: &talk, own, alive };
        if let Err(failure) = answering.all(fingerprint) {
            tracing::warn!(fingerprint, %failure, "another engine called");
            talk.lock().refuse(&failure);
        }
    }
}

struct Answering<'a> {
    parts: &'a Arc<Parts>,
    talk: &'a Arc<Mutex<Talk>>,
    own: &'a str,
    alive: &'a dyn Fn() -> bool,
}

impl Answering<'_> {
    fn hear(&self) -> Result<Message, Error> {
        self.talk.lock().hear(&mut || if (self.alive)() { Ok(()) } else { Err(Error::Cancelled) })
    }

    fn say(&self, message: &Message) -> Result<(), Failure> {
        self.talk.lock().say(message).map_err(|error| error.failure())
    }

    fn all(&self, fingerprint: &str) -> Result<(), Failure> {
        let hello = match self.hear() {
            Ok(Message::Hello(hello)) => hello,
            // Somebody looked whether anything is here.
            Err(Error::HungUp) => return Ok(()),
            Ok(other) => return Err(confused(&other)),
            Err(error) => return Err(error.failure()),
        };
        if hello.version != VERSION {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                format!(
                    "the engines speak versions {} and {VERSION} (releases {} and {})",
                    hello.version,
                    hello.release,
                    env!("CARGO_PKG_VERSION")
                ),
                "upgrade the older one",
            ));
        }
        check_clock(self.parts.now(), &hello)?;
        if let Some(secret) = &hello.join {
            let peer = admit(self.parts, secret, &hello.engine, fingerprint)?;
            tracing::info!(peer = %peer.name, fingerprint, "another engine was let in");
            return self.welcome(&peer, None);
        }
        let peer = sender(self.parts, &hello, fingerprint)?;
        if peer.taken_over_at.is_some() {
            return self.say(&Message::TakenOver);
        }
        let learned = Learned {
            shown: fingerprint,
            next: hello.next_key.as_deref(),
            knows_key: self.own == peers::own_fingerprint(self.parts)?,
        };
        // Durable before it is told: it goes on with that key then.
        let peer = peers::met(self.parts, peer.id, &learned)?;
        topology::heard(self.parts, peer.id, &hello.known)?;
        self.welcome(&peer, hello.next_key.clone())?;
        // It may have been removed or taken over meanwhile; another key is no reason to send it away.
        let still = || {
            let found = self.parts.catalog.find::<Peer>(peer.id)?.filter(|peer| peer.may_send);
            let peer = found.ok_or_else(no_peer)?;
            peers::check_not_taken_over(&peer).map(|()| peer)
        };
        loop {
            match self.hear() {
                // This engine has another key since: the peer is told when it calls again.
                Ok(Message::Offer(_)) if still()?.knows_old_key && !peer.knows_old_key => {
                    return Ok(());
                }
                Ok(Message::Offer(offer)) => self.take(&hello, &still()?, &offer)?,
                Ok(Message::HandOver) => return self.take_over(&still()?),
                Ok(other) => return Err(confused(&other)),
                Err(Error::HungUp | Error::Cancelled) => return Ok(()),
                Err(error) => return Err(error.failure()),
            }
        }
    }

    fn welcome(&self, peer: &Peer, knows_key: Option<String>) -> Result<(), Failure> {
        let not_told = peer.knows_old_key;
        let next_key = not_told.then(|| peers::own_fingerprint(self.parts)).transpose()?;
        self.say(&Message::Welcome(Welcome {
            version: VERSION,
            engine: peers::own_engine(self.parts),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            name: peer.name.to_string(),
            next_key,
            knows_key,
            known: topology::said(self.parts)?,
            hand_over: peer.awaited.is_some(),
        }))
    }

    /// Whether a failover waits for the peer, now.
    fn hand_over(&self, peer: &Peer) -> Result<bool, Failure> {
        let peer = self.parts.catalog.find::<Peer>(peer.id)?;
        Ok(peer.is_some_and(|peer| peer.awaited.is_some()))
    }

    /// The peer has stopped, and all of it is here: the failover that waits for that goes on.
    fn take_over(&self, peer: &Peer) -> Result<(), Failure> {
        let ready = |peer: &mut Peer| {
            peer.awaited = peer.awaited.map(|awaited| Awaited { ready: true, ..awaited });
        };
        let peer = self.parts.catalog.update(peer.id, ready)?;
        let awaited = peer.awaited.ok_or_else(|| {
            let message = "no failover waits for it any more";
            Failure::new(ErrorKind::WrongState, message, "what was stopped may start again")
        })?;
        self.parts.see_through(awaited.job, &mut || Ok(()))?;
        self.say(&Message::TakenOver)
    }

    /// Takes an object in, unless it is here as it is offered.
    fn take(&self, hello: &Hello, peer: &Peer, offer: &Offer) -> Result<(), Failure> {
        // A copy that is sent on has a namespace there.
        let name: ObjectName = offer.name.clone().try_into()?;
        let name = ObjectName::within(&peer.name, &name)?;
        let (origin, as_of) = understood(offer)?;
        let engine = offer.engine.as_ref().unwrap_or(&hello.engine);
        if let Some(same) = self.same(&name, engine, origin, &offer.digest)? {
            self.parts.catalog.update(same, |replica: &mut Replica| {
                replica.as_of = replica.as_of.max(as_of);
            })?;
            self.keep_password(same, offer)?;
            return self.say(&Message::Same { hand_over: self.hand_over(peer)? });
        }
        let resumed = pull::is_begun(self.parts, &name)?;
        self.say(&Message::Send { resumed })?;
        let offered = self.talk.lock().offered(&mut || Ok(()));
        let (manifest, states) = offered.map_err(|error| error.failure())?;
        let manifest = Manifest::read(&manifest, states.len())?;
        let sent = &manifest.dsource;
        let offered = (engine, &hello.engine[..], origin, &offer.name[..]);
        if (&manifest.engine, manifest.sender(), sent.id, sent.name.as_str()) != offered {
            let message = "what is sent is not what was offered";
            let hint = "upgrade the older one of the two engines";
            return Err(Failure::new(ErrorKind::Forbidden, message, hint));
        }
        let job = self.begin(peer, &manifest, &states, &offer.digest)?;
        self.parts.see_through(job, &mut || Ok(()))?;
        if let Some(taken) = self.parts.catalog.find_named::<Dsource>(&name)? {
            self.keep_password(taken.id, offer)?;
        }
        self.say(&Message::Taken { hand_over: self.hand_over(peer)? })
    }

    /// Keeps the password that came with a copy, sealed, until a failover needs it; none where none came. One that was not kept
    /// for a crash comes with the next offer.
    fn keep_password(&self, copy: DsourceId, offer: &Offer) -> Result<(), Failure> {
        let (catalog, key) = (&self.parts.catalog, sent_password_key(copy));
        let came = offer.password.as_ref().map(|Password(text)| Secret::new(text.clone()));
        if catalog.secret(&key)? == came {
            return Ok(());
        }
        Ok(catalog.transaction(|tx| match &came {
            // A failover may have just taken it over.
            Some(came) if tx.find::<Replica>(copy)?.is_some() => tx.put_secret(&key, came),
            Some(_) => Ok(()),
            None => tx.delete_secret(&key),
        })?)
    }

    /// The replica, if it is what is offered.
    fn same(
        &self,
        name: &ObjectName,
        engine: &str,
        origin: Owner,
        digest: &str,
    ) -> Result<Option<DsourceId>, Failure> {
        let catalog = &self.parts.catalog;
        let Some(dsource) = catalog.find_named::<Dsource>(name)? else { return Ok(None) };
        let replica = catalog.find::<Replica>(dsource.id)?.filter(|replica| {
            replica.engine == engine
                && replica.origin == origin
                && replica.digest.as_deref() == Some(digest)
        });
        Ok(replica.map(|replica| replica.id))
    }

    fn begin(
        &self,
        peer: &Peer,
        manifest: &Manifest,
        states: &[offshoot_replication::talk::TreeState],
        digest: &str,
    ) -> Result<JobId, Failure> {
        let deadline = self.parts.clock.elapsed() + BUSY_WAIT;
        loop {
            let call = Call { talk: Arc::clone(self.talk), states: states.to_vec() };
            let begun = pull::submit(self.parts, peer, call, manifest.clone(), digest.to_owned());
            match begun {
                Err(busy)
                    if busy.code == ErrorKind::Busy
                        && self.parts.clock.elapsed() < deadline
                        && (self.alive)() =>
                {
                    self.parts.clock.sleep(BUSY_PAUSE);
                }
                other => return other,
            }
        }
    }
}

fn understood(offer: &Offer) -> Result<(Owner, Timestamp), Failure> {
    let wrong = || {
        let message = "what is offered is not understood";
        Failure::new(ErrorKind::InvalidInput, message, "upgrade the older one of the two engines")
    };
    let origin = offer.origin.parse().map_err(|_| wrong())?;
    Ok((origin, offer.as_of.parse().map_err(|_| wrong())?))
}

fn confused(message: &Message) -> Failure {
    Error::Confused(format!("{message:?}")).failure()
}
