//! Recovery points, by rounds.

use super::host::Postgres;
use super::log::WalLog;
use super::wal_target::RECORD_ALIGNMENT;
use super::{as_taken, read_control, replayed_span};
use crate::config;
use crate::lsn::Lsn;
use crate::rounds::{self, End, Point};
use crate::server::vacate;
use offshoot_connector::{
    LogFeed, LogTarget, PointMaker, ReceivedLog, RecoveryPoint, Replay, ServerSpec,
};
use offshoot_types::{Failure, LogPosition};
use std::any::Any;
use std::sync::Arc;

impl PointMaker for Postgres {
    fn make_point(
        &self,
        spec: ServerSpec,
        from: LogPosition,
        replay: Replay<'_>,
    ) -> Result<Option<RecoveryPoint>, Failure> {
        let log = wal_log(replay.log)?;
        let (files, name) = (spec.files.clone(), spec.name.clone());
        let launch = self.launch(spec)?;
        vacate(&launch)?;
        config::check_files(&*files)?;
        let control = read_control(&launch)?;
        let segment_bytes = control.wal_segment_bytes;
        let point = as_taken(&*files, &control, &name)?;
        let (log_from, least) = replayed_span(point.as_ref(), &control);
        // Nothing in the files of a point is newer than its end.
        let begin = if point.is_some() { least } else { least.max(from.into()) };
        let Some(end) = End::before(log.archive(), begin, replay.to.into())? else {
            return Ok(None);
        };
        replay.log.place(replay.target, log_from.into(), end.position().into())?;
        if let Some(point) = &point {
            rounds::resume(&*files, segment_bytes, point)?;
        }
        let Replay { deadline, flush, tick, .. } = replay;
        let made = rounds::run(&files, launch, &end, deadline, flush, &mut || tick(None))?;
        Ok(Some(RecoveryPoint {
            position: made.end().position().into(),
            replay_from: made.end().replay_from().into(),
            epoch: made.end().timeline(),
        }))
    }

    fn is_point(&self, spec: &ServerSpec) -> Result<bool, Failure> {
        Ok(Point::read_stopped(&*spec.files)?.is_some())
    }

    fn go_on(
        &self,
        spec: ServerSpec,
        log: &dyn ReceivedLog,
        target: Arc<dyn LogTarget>,
        to: LogPosition,
    ) -> Result<Option<Box<dyn LogFeed>>, Failure> {
        let files = spec.files.clone();
        let launch = self.launch(spec)?;
        vacate(&launch)?;
        let control = read_control(&launch)?;
        let Some(point) = Point::read(&*files, control.wal_segment_bytes)? else { return Ok(None) };
        let (from, least) = replayed_span(Some(&point), &control);
        let to = Lsn::from(to).max(least);
        // Nothing is placed of a record's padding.
        let to = Lsn(to.0 - to.0 % RECORD_ALIGNMENT);
        log.place(&*target, from.into(), to.into())?;
        rounds::resume(&*files, control.wal_segment_bytes, &point)?;
        wal_log(log)?.feed_after(target, to).map(Some)
    }
}

fn wal_log(log: &dyn ReceivedLog) -> Result<&WalLog, Failure> {
    let log = (log as &dyn Any).downcast_ref();
    log.ok_or_else(|| Failure::internal("the log of another connector"))
}
