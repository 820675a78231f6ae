//! Turns: what many sessions do at the same moment, without a client that waits for it, is done a few at a time.
//!
//! When a server is about to leave, all its sessions are read; when one comes, all that listen are opened anew. Done at
//! once, each would be slowed by all others up to its time limit, and what their processes take in memory adds up to more
//! than the VDB may have.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// How many have their turn at a time.
const TURNS_MAX: usize = 8;
/// Longest turn. What takes longer goes on, and the next begins beside it: a server process that hangs holds up nobody.
const TURN_TIMEOUT: Duration = Duration::from_secs(2);

/// Turns are given in the order in which they were asked for.
#[derive(Debug)]
pub(crate) struct Turns(Semaphore);

/// One of them. It is given back when dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    _permit: SemaphorePermit<'a>,
}

impl Default for Turns {
    fn default() -> Self {
        Turns(Semaphore::new(TURNS_MAX))
    }
}

impl Turns {
    /// The next one. May be dropped, and has lost its place then.
    pub(crate) async fn next(&self) -> Turn<'_> {
        Turn { _permit: self.0.acquire().await.expect("the semaphore is never closed") }
    }
}

impl Turn<'_> {
    /// Does this in the turn, and to its end when that is over.
    pub(crate) async fn spend<T>(self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let done = timeout(TURN_TIMEOUT, work.as_mut()).await;
        drop(self);
        match done {
            Ok(done) => done,
            Err(_) => work.await,
        }
    }
}

#[cfg(test)]
mod tests;
