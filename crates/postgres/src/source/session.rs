//! A blocking SQL session with a source.

use std::time::Duration;
use offshoot_types::Failure;
use super::Source;

/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A blocking SQL session; every statement has a deadline.
pub struct Session {}

impl Session {
    pub(super) fn open(source: &Source) -> Result<Self, Failure> {
        todo!()
    }
}
