//! Who asks.

use super::accounts::Account;
use super::table::Right;
use crate::listen::Peer;
use offshoot_domain::Role;

/// Who asks, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    peer: Peer,
    who: Who,
}

#[derive(Debug, Clone)]
enum Who {
    /// The engine's own user or root, or whoever has the token of the pool.
    Owner(Proof),
    /// A user, by its token.
    User(Account),
    /// Nobody we know.
    Unknown,
}

/// What an owner is known by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Proof {
    /// The kernel says who is at the other end of the Unix socket.
    Socket,
    /// The token of the pool.
    PoolToken,
    /// The token of a console's session that one of these opened.
    Session,
}

impl Caller {
    pub(crate) fn owner(peer: Peer, proof: Proof) -> Caller {
        Caller { peer, who: Who::Owner(proof) }
    }

    pub(crate) fn user(peer: Peer, account: Account) -> Caller {
        Caller { peer, who: Who::User(account) }
    }

    pub(crate) fn unknown(peer: Peer) -> Caller {
        Caller { peer, who: Who::Unknown }
    }

    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.who, Who::Unknown)
    }

    /// The user, if it is one.
    pub(crate) fn account(&self) -> Option<&Account> {
        match &self.who {
            Who::User(account) => Some(account),
            Who::Owner(_) | Who::Unknown => None,
        }
    }

    /// What it may do. Nobody unknown gets so far as to be asked; if so, he may do least.
    /// Whether it looks at what is everybody's at once.
    pub(crate) fn surveys(&self) -> bool {
        Right::Survey.is_of(self.role())
    }

    pub(crate) fn role(&self) -> Role {
        match &self.who {
            Who::Owner(_) => Role::Admin,
            Who::User(account) => account.role,
            Who::Unknown => Role::Developer,
        }
    }

    /// As the audit names it. No user's name has parentheses.
    pub(crate) fn name(&self) -> String {
        match (&self.who, &self.peer) {
            (Who::User(account), _) => account.name.clone(),
            (Who::Unknown, _) => "(unknown)".to_owned(),
            (Who::Owner(Proof::PoolToken), _) => "(pool token)".to_owned(),
            (Who::Owner(Proof::Session), _) => "(console)".to_owned(),
            (Who::Owner(Proof::Socket), Peer::Local { uid, .. }) => format!("(uid {uid})"),
            (Who::Owner(Proof::Socket), Peer::Remote(_)) => "(owner)".to_owned(),
        }
    }

    /// From where it asks, as the audit says it.
    pub(crate) fn origin(&self) -> String {
        self.peer.to_string()
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }
}
