//! Whether moments open as soon as their policy promises, and if not, why.
//!
//! How long the latest moment would take is known at any time: the log after the nearest image, at the pace learned
//! ([`Pace`]). Recovery points keep it short; where they cannot, a fault says so until they can again.

use crate::core::kind::Kind;
use crate::core::topic::Topic;
use crate::history::snapshots;
use crate::parts::Parts;
use crate::space::room;
use offshoot_domain::{Dsource, DsourceState, Pace, Snapshot, format_duration, format_size};
use offshoot_os::pressure::{Resource, is_short};
use offshoot_types::{DsourceId, ErrorKind, Failure, LogPosition};
use std::collections::HashMap;
use std::time::Duration;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(5);
/// How long a promise may be missed before that is a fault: a point is made meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was seen of each dSource that is followed.
#[derive(Default)]
pub struct Promises {
    look_at: Duration,
    seen: HashMap<DsourceId, Seen>,
}

struct Seen {
    /// Since when its promise is missed.
    late_since: Option<Duration>,
    /// Where its log ended then.
    end: (Duration, LogPosition),
    /// Bytes of log that it writes in a second.
    written: u64,
}

impl Promises {
    /// Raises a fault for each dSource whose moments open later than promised, and clears it when they do again.
    pub fn look_after(&mut self, parts: &Parts) -> Result<(), Failure> {
        let now = parts.clock.elapsed();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + PAUSE;
        let all = parts.catalog.all::<Dsource>()?;
        self.seen.retain(|id, _| all.iter().any(|one| one.id == *id));
        for dsource in all.iter().filter(|one| one.state == DsourceState::Active) {
            self.look_after_one(parts, dsource, now)?;
        }
        Ok(())
    }

    fn look_after_one(
        &mut self,
        parts: &Parts,
        dsource: &Dsource,
        now: Duration,
    ) -> Result<(), Failure> {
        let Some(follower) = parts.follower(dsource.id) else { return Ok(()) };
        let Some(nearest) = snapshots::nearest_to_end(parts, dsource, &[])? else { return Ok(()) };
        let end = follower.log().end();
        let seen = self.seen.entry(dsource.id).or_insert(Seen {
            late_since: None,
            end: (now, end),
            written: 0,
        });
        let passed = now.saturating_sub(seen.end.0);
        if passed >= PAUSE {
            let bytes = u128::from(end.bytes_since(seen.end.1)) * 1000 / passed.as_millis().max(1);
            (seen.written, seen.end) = (u64::try_from(bytes).unwrap_or(u64::MAX), (now, end));
        }
        let bytes = end.bytes_since(nearest.replay_from);
        if dsource.pace.expected_ms(bytes) <= dsource.policy.open_within_ms {
            seen.late_since = None;
            parts.clear(&dsource.name, Topic::Promise);
            return Ok(());
        }
        let since = *seen.late_since.get_or_insert(now);
        if now.saturating_sub(since) >= PATIENCE {
            let late = Late { nearest, bytes, written: seen.written };
            parts.raise(&dsource.name, Topic::Promise, &late.failure(parts, dsource)?);
        }
        Ok(())
    }
}

/// A dSource whose latest moment opens too late.
struct Late {
    /// The image it is opened from.
    nearest: Snapshot,
    /// The log after that.
    bytes: u64,
    /// Bytes of log that the source writes in a second.
    written: u64,
}

impl Late {
    fn failure(&self, parts: &Parts, dsource: &Dsource) -> Result<Failure, Failure> {
        let time = |ms| format_duration(Duration::from_millis(ms));
        let (reason, hint) = self.reason(parts, dsource)?;
        let expected = time(dsource.pace.expected_ms(self.bytes));
        let promised = time(dsource.policy.open_within_ms);
        let name = &dsource.name;
        let message = format!(
            "the latest moment of '{name}' opens in about {expected}, not within {promised}: {reason}"
        );
        Ok(Failure::new(ErrorKind::WrongState, message, hint))
    }

    /// Why, and what to do.
    fn reason(&self, parts: &Parts, dsource: &Dsource) -> Result<(String, String), Failure> {
        let Pace { start_ms, bytes_per_second, .. } = dsource.pace;
        let more_time = format!("offshoot policy set {} --open-within 10s", dsource.name);
        if !room::takes_on(parts) {
            let hint = "make room: offshoot pool status says what helps".to_owned();
            return Ok(("the pool is too full for recovery points".to_owned(), hint));
        }
        let kind = Kind::of_dsource(parts, dsource)?;
        let begins_at_checkpoint =
            self.nearest.position.log.bytes_since(self.nearest.replay_from) > dsource.spacing();
        if kind.connector.point_maker().is_none() || begins_at_checkpoint {
            let reason = "its recovery points begin at the source's last checkpoint, as none can be made elsewhere";
            let hint = "have the source make checkpoints more often (checkpoint_timeout, max_wal_size); the engine's \
                        log says why no point was made";
            return Ok((reason.to_owned(), hint.to_owned()));
        }
        let spacing = dsource.spacing();
        if start_ms >= dsource.policy.open_within_ms || self.bytes <= spacing {
            let start = format_duration(Duration::from_millis(start_ms));
            let spacing = format_size(spacing);
            let reason = format!(
                "on this host {start} pass before any log is replayed, and recovery points lie {spacing} of log apart"
            );
            return Ok((reason, format!("relieve the host, or allow more time: {more_time}")));
        }
        let (why, remedy) = match (is_short(Resource::Processor), is_short(Resource::Disk)) {
            (true, _) => ("its processors are busy", "give the engine more processors"),
            (false, true) => ("its disk is busy", "give the engine a faster disk"),
            (false, false) => ("recovery points fall behind", "relieve the engine's host"),
        };
        let [written, replayed] = [self.written, bytes_per_second].map(format_size);
        let reason = format!(
            "the source writes {written} of log a second, this host replays {replayed} a second, and {why}"
        );
        Ok((reason, format!("{remedy}, or allow more time: {more_time}")))
    }
}
