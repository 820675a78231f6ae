//! The physical replication slot that makes the source keep the log we have not received yet.

use offshoot_types::{ErrorKind, Failure, Lsn};

use crate::source::Session;

/// What the source says of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotState {
    /// There is no such slot.
    Missing,
    /// The source keeps the log from `restart_lsn` on.
    Reserved {
        /// The oldest position that is kept; what the receiver has confirmed as durable.
        restart_lsn: Lsn,
        /// Whether a receiver is connected.
        active: bool,
        /// How many more bytes may be written before the slot can be lost; `None`: unlimited.
        safe_bytes: Option<u64>,
    },
    /// The source has removed log that was not received yet.
    Lost,
}

/// The name of the slot of one dSource: `offshoot_` and what is given, in the letters that slots
/// may have.
pub fn slot_name(unique: &str) -> String {
    todo!()
}

/// Creates the slot and reserves log at once. A usable slot of that name is taken over.
///
/// # Errors
/// `SourceRefused` with the mend (privilege missing, no free slot, name taken by a logical slot,
/// slot lost), `SourceUnreachable`.
pub fn create_slot(session: &Session, name: &str) -> Result<SlotState, Failure> {
    todo!()
}

/// Looks at a slot.
///
/// # Errors
/// `SourceUnreachable` or `SourceRefused`.
pub fn slot_state(session: &Session, name: &str) -> Result<SlotState, Failure> {
    todo!()
}

/// Drops the slot; one that does not exist is not an error. A receiver that was just stopped may
/// still hold it: waits up to 10 s for that.
///
/// # Errors
/// `SourceUnreachable`, `SourceRefused`, `Busy` when a receiver still uses it.
pub fn drop_slot(session: &Session, name: &str) -> Result<(), Failure> {
    todo!()
}
