//! Recovery points that the engine makes itself.

use crate::{LogFeed, LogTarget, ReceivedLog, Replay, ServerSpec};
use offshoot_types::{Failure, LogPosition};
use std::sync::Arc;

/// A copy at exactly one position of the log. Replay goes on from an image of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryPoint {
    /// What it holds: everything that ends at or before it, and nothing of what begins at or after it.
    pub position: LogPosition,
    /// Where replay from it begins to read log: shortly before `position`, whatever the source does.
    pub replay_from: LogPosition,
    /// The epoch of the log there.
    pub epoch: u32,
}

/// Makes recovery points where the source's log has none of its own near.
pub trait PointMaker: Send + Sync {
    /// Puts log into a clone of an image as taken, or of a recovery point, recovers it up to the last possible
    /// position at or before `replay.to`, and stops it there: an image of the clone is a recovery point. `from` is
    /// the position of the image: nothing in its files is newer. None if there is no possible position between.
    /// After an error, or none, the clone must be thrown away.
    ///
    /// # Errors
    /// `WrongState` where no point can be made of this image or of this log: do without. Otherwise as
    /// [`Connector::replay`](crate::Connector::replay).
    fn make_point(
        &self,
        spec: ServerSpec,
        from: LogPosition,
        replay: Replay<'_>,
    ) -> Result<Option<RecoveryPoint>, Failure>;

    /// Whether a data directory is a recovery point, as it was made: only [`PointMaker::go_on`] has a server follow log
    /// from it.
    ///
    /// # Errors
    /// `DataDamaged` when the directory does not say.
    fn is_point(&self, spec: &ServerSpec) -> Result<bool, Failure>;

    /// Prepares a data directory that begins at a recovery point to be started as staging: puts the log from there up to
    /// `to`, or further if it needs more, into it; the feed goes on from there. Needed before each start; none if it
    /// does not begin at one, or no longer: it is fed from where its replay begins.
    ///
    /// # Errors
    /// `MomentUnavailable` if log is missing; `DataDamaged`.
    fn go_on(
        &self,
        spec: ServerSpec,
        log: &dyn ReceivedLog,
        target: Arc<dyn LogTarget>,
        to: LogPosition,
    ) -> Result<Option<Box<dyn LogFeed>>, Failure>;
}
