//! When something is changed, and for whom.

use offshoot_format::inode::Timestamp;
use offshoot_intent_log::Request;

/// When something is changed, and the request that asks for it if it must be done once.
#[derive(Clone, Copy)]
pub(super) struct Occasion<'a> {
    pub(super) time: Timestamp,
    pub(super) request: Option<&'a Request<'a>>,
}

impl Occasion<'_> {
    /// As it was logged: the request was noted then.
    pub(super) fn replayed(time: Timestamp) -> Occasion<'static> {
        Occasion { time, request: None }
    }
}
