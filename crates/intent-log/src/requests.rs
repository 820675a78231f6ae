//! Requests that change something and must be done exactly once, though they may come twice.
//!
//! A client whose answer is lost with the engine sends its request again. So what became of a request is noted in the
//! volatile log, in a slot, from before its operation counts until its answer was given: a slot is taken when a
//! request begins, and given back when the [`Request`] is dropped. Whoever serves requests holds it until the
//! answer has left; then the slot may be another's, and the note in it be lost.
//!
//! Requests and slots are values handed from call to call: a thread may work for many datasets and clients.

use parking_lot::{Condvar, Mutex};
use std::num::NonZeroU64;

/// Requests of one dataset that are under way at the same time; more wait.
pub(crate) const SLOTS: usize = u64::BITS as usize;

/// What a client calls a request, also when it sends it again; different from all others of the dataset that are
/// under way. What it is made of is the protocol's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(NonZeroU64);

impl RequestId {
    /// `None` for 0, which names no request.
    pub fn new(number: u64) -> Option<RequestId> {
        NonZeroU64::new(number).map(RequestId)
    }

    /// The number it was made of.
    pub fn number(self) -> u64 {
        self.0.get()
    }
}

/// The slots of one dataset's requests.
#[derive(Debug, Default)]
pub struct Slots {
    /// One bit for each slot.
    taken: Mutex<u64>,
    given_back: Condvar,
}

impl Slots {
    /// Begins a request; waits while all slots are taken. Who has begun one must not begin another before
    /// it is dropped: all could wait for each other.
    pub fn begin(&self, id: RequestId) -> Request<'_> {
        let mut taken = self.taken.lock();
        while *taken == u64::MAX {
            self.given_back.wait(&mut taken);
        }
        let slot = taken.trailing_ones() as usize;
        *taken |= 1 << slot;
        Request { id, slot, slots: self }
    }
}

/// A request under way. Drop it when its answer was given.
#[derive(Debug)]
pub struct Request<'a> {
    id: RequestId,
    slot: usize,
    slots: &'a Slots,
}

impl Request<'_> {
    /// What its client calls it.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// Where the volatile log notes it: below [`SLOTS`], nobody else's meanwhile.
    pub(crate) fn slot(&self) -> usize {
        self.slot
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        *self.slots.taken.lock() &= !(1 << self.slot);
        self.slots.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests;
