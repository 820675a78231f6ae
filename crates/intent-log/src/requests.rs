//! Requests that change something and must be done exactly once, though they may come twice.
//!
//! A client whose answer is lost with the engine sends its request again. So the volatile log records the outcome of
//! a request in a slot, from before its operation counts until its answer has been given: a slot is taken when a
//! request begins, and given back when the [`Request`] is dropped. The thread that serves a request holds it until
//! the answer has left; then the slot may be reused and its record lost.
//!
//! Requests and slots are values passed from call to call, so a thread may work for many datasets and
//! clients.

use parking_lot::{Condvar, Mutex};
use std::num::NonZeroU64;

/// Requests of one dataset that may be in flight at the same time; more wait.
pub(crate) const SLOTS: usize = u64::BITS as usize;

/// A client's identifier of a request, the same when it sends it again; different from all others of the dataset
/// in flight. The protocol decides what it is made of.
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
    /// Begins a request; waits while all slots are taken. A caller that has begun one must not begin
    /// another before it is dropped: all could wait for each other.
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

/// A request in flight. Drop it when its answer has been given.
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

    /// Where the volatile log records it: below [`SLOTS`], and used by nobody else until then.
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
