//! The receiver: the one log stream from a source, by `pg_receivewal` into the archive.

use jiff::Timestamp;
use offshoot_os::Clock;
use offshoot_types::{ErrorKind, Failure, Lsn};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::installation::Tools;
use crate::source::Source;

/// A proof of completeness: every commit of the source that was flushed up to `lsn` is in the
/// archive, and no commit with a time up to `time` will still come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncedTo {
    /// All log up to here is durable in the archive.
    pub lsn: Lsn,
    /// The source's clock when its log ended there.
    pub time: Timestamp,
}

/// What the receiver is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverState {
    /// Starting.
    Connecting,
    /// Receiving.
    Streaming,
    /// The connection failed; it is tried again soon.
    Retrying(Failure),
    /// The source no longer has the log that is needed next; only a new SnapSync mends that. The
    /// receiver has stopped.
    Gap(Failure),
    /// Stopped on request.
    Stopped,
}

/// What is known of the stream at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverStatus {
    /// What it is doing.
    pub state: ReceiverState,
    /// Since when it is streaming or not, in seconds of the receiver's clock.
    pub state_for: Duration,
    /// How far the log is durable in the archive, as confirmed to the source.
    pub received: Option<Lsn>,
    /// How far the source's log was durable when last asked.
    pub source_flushed: Option<Lsn>,
    /// The newest proof of completeness.
    pub synced_to: Option<SyncedTo>,
    /// What is missing, in bytes; `None` before the source was asked.
    pub lag_bytes: Option<u64>,
    /// How long ago (at the receiver's clock) `synced_to` was taken; `None` before the first.
    pub lag: Option<Duration>,
    /// How many more bytes the source keeps for us before the slot may be lost; `None`: no limit.
    pub slot_safe_bytes: Option<u64>,
}

/// What to receive and where to.
#[derive(Debug, Clone)]
pub struct ReceiverSpec {
    /// The programs of the source's major version.
    pub tools: Tools,
    /// The source.
    pub source: Source,
    /// The slot, which must exist.
    pub slot: String,
    /// The directory of the archive; given to the user of the tools.
    pub archive: PathBuf,
}

/// A running receiver. Dropping it stops it.
pub struct Receiver {
}

impl Receiver {
    /// Starts receiving, in threads and a child process of its own. Connection failures are not
    /// errors here: they show in the status and are retried for ever.
    ///
    /// # Errors
    /// `HostUnprepared` when the directory cannot be prepared.
    pub fn start(spec: ReceiverSpec, clock: Arc<dyn Clock>) -> Result<Self, Failure> {
        todo!()
    }

    /// What is known now.
    pub fn status(&self) -> ReceiverStatus {
        todo!()
    }

    /// Waits until it streams.
    ///
    /// # Errors
    /// The reason why it does not stream, after `timeout` or at once for a gap.
    pub fn wait_streaming(&self, timeout: Duration) -> Result<(), Failure> {
        todo!()
    }

    /// Asks the source for its clock and the end of its log *now* and waits until all of that is
    /// received.
    ///
    /// # Errors
    /// `SourceUnreachable` when that does not succeed within `timeout`.
    pub fn ask_now(&self, timeout: Duration) -> Result<SyncedTo, Failure> {
        todo!()
    }

    /// Stops the child and the threads; what was received stays.
    pub fn stop(&self) {
        todo!()
    }
}
