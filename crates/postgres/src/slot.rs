//! The physical replication slot that makes the source keep the log we have not received yet.

use crate::lsn::Lsn;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use std::time::Duration;

use crate::source::session::literal;
use crate::source::{Session, TextRow};

/// How long [`drop_slot`] waits for a receiver that was just stopped.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest name that PostgreSQL allows, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// What the source reports about a slot.
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

/// The name of the slot of one dSource: `offshoot_` and the given text, with characters that slots
/// may not have replaced by `_`, cut to the longest name allowed.
pub fn slot_name(unique: &str) -> String {
    let mut name = String::from("offshoot_");
    for char in unique.chars() {
        let char = char.to_ascii_lowercase();
        let allowed = char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
        name.push(if allowed { char } else { '_' });
    }
    name.truncate(NAME_BYTES_MAX);
    name
}

/// Creates the slot and reserves log immediately. A usable slot of that name is taken over; a lost
/// one is replaced.
///
/// # Errors
/// `SourceRefused` with the fix (privilege missing, no free slot, name taken by a logical slot),
/// `SourceUnreachable`.
pub fn create_slot(session: &Session, name: &str) -> Result<SlotState, Failure> {
    match slot_state(session, name)? {
        state @ SlotState::Reserved { .. } => return Ok(state),
        SlotState::Lost => drop_slot(session, name)?,
        SlotState::Missing => {}
    }
    session
        .rows(&format!(
            "SELECT pg_catalog.pg_create_physical_replication_slot({}, true)",
            literal(name)
        ))
        .map_err(|failure| mend_creation(session, failure))?;
    slot_state(session, name)
}

fn mend_creation(session: &Session, mut failure: Failure) -> Failure {
    if failure.code == ErrorKind::SourceRefused {
        if failure.message.contains("replication slots are in use") {
            failure.hint = "drop slots that are no longer used, or: ALTER SYSTEM SET \
                            max_replication_slots = 20; then restart the source"
                .to_owned();
        } else if failure.message.contains("permission denied")
            || failure.message.contains("replication role")
        {
            let user = crate::source::refusal::identifier(&session.source().address.user);
            failure.hint = format!("ALTER ROLE {user} REPLICATION;");
        }
    }
    failure
}

/// Looks at a slot.
///
/// # Errors
/// `SourceUnreachable`, or `SourceRefused` when the name is taken by a logical slot.
pub fn slot_state(session: &Session, name: &str) -> Result<SlotState, Failure> {
    let rows = session.rows(&format!(
        "SELECT slot_type, restart_lsn, active, wal_status, safe_wal_size \
         FROM pg_catalog.pg_replication_slots WHERE slot_name = {}",
        literal(name)
    ))?;
    match rows.first() {
        None => Ok(SlotState::Missing),
        Some(row) => read_state(row, name),
    }
}

fn read_state(row: &TextRow, name: &str) -> Result<SlotState, Failure> {
    let text = |column: usize| row.get(column).and_then(|value| value.as_deref());
    if text(0) != Some("physical") {
        return Err(Failure::new(
            ErrorKind::SourceRefused,
            format!("the slot {name} of the source is not a physical one"),
            format!("SELECT pg_drop_replication_slot('{name}'); if nothing uses it"),
        ));
    }
    let restart_lsn = text(1).and_then(|text| text.parse::<Lsn>().ok());
    match restart_lsn {
        Some(restart_lsn) if text(3) != Some("lost") => Ok(SlotState::Reserved {
            restart_lsn,
            active: text(2) == Some("t"),
            // Negative once the limit has been passed.
            safe_bytes: text(4)
                .and_then(|text| text.parse::<i64>().ok())
                .map(|bytes| bytes.max(0).cast_unsigned()),
        }),
        _ => Ok(SlotState::Lost),
    }
}

/// Drops the slot; one that does not exist is not an error. A receiver that was just stopped may
/// still hold it: waits up to 10 s for that.
///
/// # Errors
/// `SourceUnreachable`, `SourceRefused`, `Busy` when a receiver still uses it.
pub fn drop_slot(session: &Session, name: &str) -> Result<(), Failure> {
    let clock = SystemClock;
    let deadline = clock.elapsed() + RELEASE_TIMEOUT;
    let drop = format!(
        "SELECT pg_catalog.pg_drop_replication_slot(slot_name) FROM pg_catalog.pg_replication_slots \
         WHERE slot_name = {} AND slot_type = 'physical'",
        literal(name)
    );
    loop {
        let Err(failure) = session.rows(&drop) else { return Ok(()) };
        let active = match slot_state(session, name)? {
            SlotState::Missing => return Ok(()),
            SlotState::Reserved { active, .. } => active,
            SlotState::Lost => false,
        };
        if clock.elapsed() >= deadline {
            return Err(if active {
                Failure::new(
                    ErrorKind::Busy,
                    format!("the slot {name} of the source is still in use"),
                    format!(
                        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots \
                         WHERE slot_name = '{name}'; then try again"
                    ),
                )
            } else {
                failure
            });
        }
        // "In use" may have been true only when the statement ran; any other failure is final.
        if !active && !failure.message.contains(name) {
            return Err(failure);
        }
        clock.sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests;
