//! Recovery points, by rounds.

use super::host::Postgres;
use super::log::WalLog;
use super::{as_taken, read_control};
use crate::config;
use crate::rounds::{self, End};
use crate::server::vacate;
use offshoot_connector::{PointMaker, RecoveryPoint, Replay, ServerSpec};
use offshoot_types::{Failure, LogPosition};
use std::any::Any;

impl PointMaker for Postgres {
    fn make_point(
        &self,
        spec: ServerSpec,
        from: LogPosition,
        replay: Replay<'_>,
    ) -> Result<Option<RecoveryPoint>, Failure> {
        let log = (replay.log as &dyn Any)
            .downcast_ref::<WalLog>()
            .ok_or_else(|| Failure::internal("the log of another connector"))?;
        let (files, name) = (spec.files.clone(), spec.name.clone());
        let launch = self.launch(spec)?;
        vacate(&launch)?;
        config::check_files(&*files)?;
        let control = read_control(&launch)?;
        let segment_bytes = control.wal_segment_bytes;
        let point = as_taken(&*files, &control, &name)?;
        let (begin, log_from) = match &point {
            Some(point) => (point.end().position(), point.end().replay_from()),
            None => (control.min_recovery_lsn.max(from.into()), control.redo_lsn),
        };
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
}
