//! Who asks.

use super::accounts::Account;
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
    /// The engine's own user or root, by the Unix socket; or whoever has the token of the pool.
    Owner { by_token: bool },
    /// A user, by its token.
    User(Account),
    /// Nobody we know.
    Unknown,
}

impl Caller {
    pub(crate) fn owner(peer: Peer, by_token: bool) -> Caller {
        Caller { peer, who: Who::Owner { by_token } }
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
            Who::Owner { .. } | Who::Unknown => None,
        }
    }

    /// What it may do. Nobody unknown gets so far as to be asked; if so, he may do least.
    pub(crate) fn role(&self) -> Role {
        match &self.who {
            Who::Owner { .. } => Role::Admin,
            Who::User(account) => account.role,
            Who::Unknown => Role::Developer,
        }
    }

    /// As the audit names it. No user's name has parentheses.
    pub(crate) fn name(&self) -> String {
        match (&self.who, &self.peer) {
            (Who::User(account), _) => account.name.clone(),
            (Who::Unknown, _) => "(unknown)".to_owned(),
            (Who::Owner { by_token: true }, _) => "(pool token)".to_owned(),
            (Who::Owner { .. }, Peer::Local { uid, .. }) => format!("(uid {uid})"),
            (Who::Owner { .. }, Peer::Remote(_)) => "(owner)".to_owned(),
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
