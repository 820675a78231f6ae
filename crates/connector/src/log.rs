//! The log of a source: received, indexed, fed to staging, put into clones.

use crate::DataDir;
use jiff::Timestamp;
use offshoot_domain::{FoundCommit, Position};
use offshoot_types::{Failure, LogPosition};
use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A commit of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Where its record ends: replay up to here includes it, and nothing after it.
    pub end: LogPosition,
    /// When it was committed, by the source's clock.
    pub time: Timestamp,
}

/// A data directory that takes log: staging's, or a clone's.
pub trait LogTarget: Send + Sync {
    /// The data directory.
    fn files(&self) -> &Arc<dyn DataDir>;

    /// Puts a file of received log into the data directory without copying a byte, with the server's owner;
    /// replaces a file of that name.
    ///
    /// # Errors
    /// File system errors.
    fn share(&self, log_file: &str, to: &str) -> io::Result<()>;
}

/// What was received of a source's log, with its index of commits. All methods may be called from several threads.
pub trait ReceivedLog: Any + Send + Sync {
    /// Indexes what was received since, up to a position or a little further (if log arrives as fast as it is
    /// read, there is no end). Cheap if nothing was received. Returns [`ReceivedLog::end`].
    ///
    /// # Errors
    /// `DataDamaged` when the log is damaged before its end.
    fn update_until(&self, enough: LogPosition) -> Result<LogPosition, Failure>;

    /// The end of the last whole record indexed; [`LogPosition::START`] before the first.
    fn end(&self) -> LogPosition;

    /// Where the log that is kept begins; none if there is none. Earlier commits are forgotten.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be read.
    fn begin(&self) -> Result<Option<LogPosition>, Failure>;

    /// The last commit, in log order, whose time is not after the given one.
    ///
    /// # Errors
    /// `DataDamaged` when the index cannot be read. The same for the others below.
    fn last_not_after(&self, time: Timestamp) -> Result<Option<Commit>, Failure>;

    /// The last commit whose record begins at or before a position.
    ///
    /// # Errors
    /// As above.
    fn last_at(&self, position: LogPosition) -> Result<Option<Commit>, Failure>;

    /// The first commit whose record begins at or after a position.
    ///
    /// # Errors
    /// As above.
    fn next_after(&self, position: LogPosition) -> Result<Option<Commit>, Failure>;

    /// The last commit of all.
    ///
    /// # Errors
    /// As above.
    fn last(&self) -> Result<Option<Commit>, Failure>;

    /// How many commits each of so many equal parts of the time from `from` to `to` has; `to` is not in it. What it costs
    /// grows with the parts, not with the log.
    ///
    /// # Errors
    /// As above.
    fn count_by_time(
        &self,
        from: Timestamp,
        to: Timestamp,
        parts: usize,
    ) -> Result<Vec<u64>, Failure>;

    /// The commit of a transaction, by the label that the database gave it; the newest where labels wrapped around.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is not a label; as above.
    fn by_transaction(&self, label: &str) -> Result<Option<Commit>, Failure>;

    /// How many commits begin at or after one position and end at or before another.
    ///
    /// # Errors
    /// As above.
    fn count_between(&self, from: LogPosition, to: LogPosition) -> Result<u64, Failure>;

    /// The commit that so many others come before, of those that begin at or after a position, with its label.
    ///
    /// # Errors
    /// As above.
    fn skip_after(&self, from: LogPosition, others: u64) -> Result<Option<FoundCommit>, Failure>;

    /// The first position that [`ReceivedLog::forget_before`] would keep: log is given up in whole files.
    fn kept_from(&self, position: LogPosition) -> LogPosition;

    /// Whether there is something to forget before a position.
    ///
    /// # Errors
    /// `DataDamaged` when the directory cannot be read.
    fn holds_before(&self, position: LogPosition) -> Result<bool, Failure>;

    /// Removes whole files of log, and of the index, that end at or before a position; returns how many
    /// of log.
    ///
    /// # Errors
    /// When a file cannot be removed.
    fn forget_before(&self, position: LogPosition) -> Result<usize, Failure>;

    /// Log for a staging server whose replay begins at a position.
    fn feed(&self, staging: Arc<dyn LogTarget>, from: LogPosition) -> Box<dyn LogFeed>;

    /// Puts exactly the log from one position to another into a clone.
    ///
    /// # Errors
    /// `MomentUnavailable` that names the first log that is missing.
    fn place(
        &self,
        target: &dyn LogTarget,
        from: LogPosition,
        to: LogPosition,
    ) -> Result<(), Failure>;
}

/// Feeds one staging server.
pub trait LogFeed: Send {
    /// How far it was fed.
    fn fed(&self) -> LogPosition;

    /// Gives it the log up to a position; does nothing if it has that.
    ///
    /// # Errors
    /// `MomentUnavailable` if log is missing; file system errors.
    fn advance(&mut self, to: LogPosition) -> Result<(), Failure>;
}

/// What a stream is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamState {
    /// It receives nothing: it has not begun yet, or was stopped.
    Idle,
    /// Log is received.
    Streaming,
    /// The source gives none now; retrying.
    Retrying(Failure),
    /// The log cannot continue: only a new copy of the source helps.
    Gap(Failure),
}

/// How far a stream is behind its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamStatus {
    /// What it is doing.
    pub state: StreamState,
    /// For how long.
    pub state_for: Duration,
    /// Up to where log is durable in the pool.
    pub received: Option<LogPosition>,
    /// Up to where all that the source had is received, and the source's clock then.
    pub synced_to: Option<Position>,
    /// Log that the source has and we do not, in bytes.
    pub lag_bytes: Option<u64>,
    /// Age of what was received.
    pub lag: Option<Duration>,
    /// How long ago the source last answered anything; none if it never did.
    pub silent_for: Option<Duration>,
    /// How far the source's clock is ahead of this host's, in milliseconds; less than 0 where it is behind. None before
    /// it was compared, and where commits get their times by another clock than the source's own.
    pub clock_skew_ms: Option<i64>,
}

/// The one stream of log from a source. Rule: log is durable before the source is told so.
pub trait LogStream: Send + Sync {
    /// How it stands.
    fn status(&self) -> StreamStatus;

    /// Waits until log is received.
    ///
    /// # Errors
    /// The reason if it is not, after `timeout`.
    fn wait_streaming(&self, timeout: Duration) -> Result<(), Failure>;

    /// Receives all that the source has flushed by now.
    ///
    /// # Errors
    /// When the source does not answer, or not all arrives within `timeout`.
    fn ask_now(&self, timeout: Duration) -> Result<Position, Failure>;

    /// The same, however long it takes, as long as something arrives within each `silence`.
    ///
    /// # Errors
    /// As above, and whatever `tick` returns.
    fn receive_all(
        &self,
        silence: Duration,
        tick: &mut dyn FnMut(&StreamStatus) -> Result<(), Failure>,
    ) -> Result<Position, Failure>;

    /// Ends it. What was received stays.
    fn stop(&self);
}
