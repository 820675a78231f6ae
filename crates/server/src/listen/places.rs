//! A bound on the connections of clients: each takes a descriptor, and the store must not run out of them because
//! somebody connects a thousand times. Nobody gets more than a share, so that nobody takes the last place from others.

use super::peer::{Peer, Share};
use offshoot_os::limits;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Connections by TCP at the same time.
const REMOTE_MAX: u64 = 256;
/// Connections by the Unix socket at the same time.
const LOCAL_MAX: u64 = 128;

/// The places for connections of one kind.
#[derive(Debug)]
pub(crate) struct Places {
    all: usize,
    /// The most that one address or user gets.
    each: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by: HashMap<Share, usize>,
}

impl Places {
    /// By TCP: at most a quarter of what this process may have open.
    pub(crate) fn remote() -> Arc<Places> {
        let all = (limits::descriptors() / 4).clamp(2, REMOTE_MAX) as usize;
        Places::of(all, all / 4)
    }

    /// By the Unix socket: at most an eighth. Others than the engine's user, if the socket is a group's, get half.
    pub(crate) fn local() -> Arc<Places> {
        let all = (limits::descriptors() / 8).clamp(2, LOCAL_MAX) as usize;
        Places::of(all, all / 2)
    }

    fn of(all: usize, each: usize) -> Arc<Places> {
        Arc::new(Places { all, each: each.max(1), taken: Mutex::default() })
    }

    /// A place, if one is free for this peer.
    pub(crate) fn take(self: &Arc<Self>, peer: &Peer) -> Option<Place> {
        let share = peer.share();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.by.get(&share).copied().unwrap_or_default();
        let most = if peer.is_owner() { self.all } else { self.each };
        if taken.all >= self.all || own >= most {
            return None;
        }
        taken.all += 1;
        *taken.by.entry(share).or_default() += 1;
        Some(Place { of: self.clone(), share })
    }

    fn give_back(&self, share: Share) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(own) = taken.by.get_mut(&share) {
            *own -= 1;
            if *own == 0 {
                taken.by.remove(&share);
            }
        }
    }
}

/// One connection's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    of: Arc<Places>,
    share: Share,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.give_back(self.share);
    }
}

#[cfg(test)]
mod tests;
