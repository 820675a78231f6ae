//! From what a user asks for to what must be cloned and replayed.

use crate::core::Core;
use crate::core::kind::PositionWriter;
use crate::following::Following;
use crate::following::follower::Follower;
use crate::history::{bookmarks, names};
use jiff::Timestamp;
use offshoot_domain::{
    Bookmark, Dsource, LogRange, Moment, Owner, Position, ProvisionPlan, Snapshot, Target,
    TimeRefusal, Timeflow, TimeflowView, Vdb, check_time, plan,
};
use offshoot_types::{ErrorKind, Failure, LogPosition, SnapshotId, TimeflowId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a request may wait for what the source has; its job waits longer.
const ASK_TIMEOUT: Duration = Duration::from_secs(15);

/// What a job opens: decided once, stored with the job.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Resolved {
    /// The snapshot it comes from.
    pub snapshot: SnapshotId,
    /// The image in the store to clone.
    pub image: SnapshotId,
    /// Where replay of the source's log ends; none: the image opens as it is.
    pub recover_to: Option<LogPosition>,
    /// Where that replay begins.
    #[serde(default)]
    pub replay_from: LogPosition,
    /// The timeflow of a dSource whose log is replayed; none: its present one.
    #[serde(default)]
    pub timeflow: Option<TimeflowId>,
    /// What the user sees as the moment.
    pub position: Position,
}

impl Resolved {
    /// How much log is replayed.
    pub fn log_bytes(&self) -> u64 {
        self.recover_to.map_or(0, |to| to.bytes_since(self.replay_from))
    }
}

/// The snapshots and the log of a dSource or VDB.
pub struct History {
    pub name: String,
    pub snapshots: Vec<Snapshot>,
    log: Vec<LogRange>,
    writer: PositionWriter,
    /// Which one it is of a dSource.
    timeflow: Option<TimeflowId>,
}

impl History {
    /// Reads the present history of an object: for a dSource the current timeflow, as positions of
    /// an ended one may belong to another history of the source.
    pub fn read(core: &Following, owner: Owner) -> Result<History, Failure> {
        match owner {
            Owner::Dsource(id) => {
                let dsource: Dsource = core.catalog.get(id)?;
                History::of_timeflow(core, &dsource, dsource.timeflow)
            }
            Owner::Vdb(id) => {
                let vdb: Vdb = core.catalog.get(id)?;
                let mut snapshots: Vec<Snapshot> = core.catalog.list_of(owner)?;
                snapshots.sort_by_key(|one| (one.position.log, one.id));
                let (name, writer) = (vdb.name.to_string(), PositionWriter::of(core, owner)?);
                Ok(History { name, snapshots, log: Vec::new(), writer, timeflow: None })
            }
        }
    }

    /// Reads one timeflow of a dSource. An ended one has log until retention gives it up.
    pub fn of_timeflow(
        core: &Following,
        dsource: &Dsource,
        timeflow: Option<TimeflowId>,
    ) -> Result<History, Failure> {
        let owner: Owner = dsource.id.into();
        let mut snapshots: Vec<Snapshot> = core.catalog.list_of(owner)?;
        snapshots.retain(|one| Some(one.timeflow) == timeflow);
        snapshots.sort_by_key(|one| (one.position.log, one.id));
        let mut log = match timeflow {
            Some(id) => core.catalog.get::<Timeflow>(id)?.log,
            None => Vec::new(),
        };
        if timeflow == dsource.timeflow {
            let end = match core.follower(dsource.id) {
                Some(follower) => follower.indexed(),
                None => core.catalog.get::<Dsource>(dsource.id)?.synced_to,
            };
            if let (Some(range), Some(end)) = (log.last_mut(), end) {
                range.to = end;
            }
        }
        let (name, writer) = (dsource.name.to_string(), PositionWriter::of(core, owner)?);
        Ok(History { name, snapshots, log, writer, timeflow })
    }

    /// Reads all timeflows of a dSource as one, to say where its gaps are.
    pub fn whole(core: &Following, dsource: &Dsource) -> Result<History, Failure> {
        let mut whole = History::of_timeflow(core, dsource, dsource.timeflow)?;
        for timeflow in ended(core, dsource)? {
            let older = History::of_timeflow(core, dsource, Some(timeflow.id))?;
            whole.snapshots.splice(0..0, older.snapshots);
            whole.log.splice(0..0, older.log);
        }
        Ok(whole)
    }

    /// Reads the history that a snapshot of an object is on.
    fn around(core: &Following, owner: Owner, id: SnapshotId) -> Result<History, Failure> {
        let present = History::read(core, owner)?;
        let snapshot = core.catalog.find::<Snapshot>(id)?.filter(|one| one.owner == owner);
        match (owner, snapshot) {
            (Owner::Dsource(dsource), Some(one)) if Some(one.timeflow) != present.timeflow => {
                History::of_timeflow(core, &core.catalog.get(dsource)?, Some(one.timeflow))
            }
            _ => Ok(present),
        }
    }

    /// For the planner.
    pub fn planned<T>(&self, plan: impl FnOnce(&TimeflowView<'_>) -> T) -> T {
        let write = |position| self.writer.write(position);
        let History { name, snapshots, log, .. } = self;
        plan(&TimeflowView { name, snapshots, log, write: &write })
    }

    /// How its positions are written.
    pub fn writer(&self) -> &PositionWriter {
        &self.writer
    }

    fn snapshot(&self, id: SnapshotId) -> Result<&Snapshot, Failure> {
        self.snapshots.iter().find(|one| one.id == id).ok_or_else(|| {
            let hint = format!("list them: offshoot snapshot list {}", self.name);
            Failure::new(ErrorKind::NotFound, format!("'{}' has no {id}", self.name), hint)
        })
    }
}

/// Receives what a source has now, when a moment may be in there.
pub type Ask<'a> = &'a mut dyn FnMut(&Follower) -> Result<(), Failure>;

/// Refuses a moment that is known not to open. That of a job is [resolved](resolve) by the job.
///
/// # Errors
/// As [`resolve`].
pub fn check(core: &Following, owner: Owner, moment: &Moment) -> Result<(), Failure> {
    let deadline = core.clock.elapsed() + ASK_TIMEOUT;
    let in_time = |late: Failure| if core.clock.elapsed() < deadline { Ok(()) } else { Err(late) };
    let late = || Failure::new(ErrorKind::SourceUnreachable, "the source's log is late", "");
    let ask: Ask<'_> = &mut |follower| match moment {
        // Something opens in any case.
        Moment::Latest => Ok(()),
        _ => follower.catch_up(moment, &mut |_| in_time(late())).map(drop),
    };
    resolve(core, owner, moment, ask).map(drop)
}

/// The one that was taken last.
pub fn newest(all: &[Snapshot]) -> Option<&Snapshot> {
    all.iter().max_by_key(|one| (one.taken_at, one.id))
}

/// Decides what opens a moment of a dSource or of a VDB's snapshots.
///
/// # Errors
/// `MomentUnavailable` that names the first or last available moment.
pub fn resolve(
    core: &Following,
    owner: Owner,
    moment: &Moment,
    ask: Ask<'_>,
) -> Result<Resolved, Failure> {
    names::check_linked(core, owner)?;
    match (owner, moment) {
        (
            Owner::Dsource(id),
            Moment::At(_) | Moment::Log(_) | Moment::Transaction(_) | Moment::Latest,
        ) if core.catalog.get::<Dsource>(id)?.keeps_log() => {
            let dsource: Dsource = core.catalog.get(id)?;
            let present = dsource.timeflow;
            let resolved = resolve_in_log(core, (&dsource, present), moment, ask);
            match resolved {
                Err(failure)
                    if failure.code == ErrorKind::MomentUnavailable
                        && *moment != Moment::Latest =>
                {
                    resolve_in_ended(core, &dsource, moment, failure)
                }
                resolved => resolved,
            }
        }
        (_, Moment::Snapshot(id)) => {
            let history = History::around(core, owner, *id)?;
            let position = history.snapshot(*id)?.position;
            finish(&history, Target::Snapshot(*id), position)
        }
        (_, Moment::Bookmark(name)) => {
            let bookmark = bookmark_of(core, owner, name)?;
            let history = History::around(core, owner, bookmark.snapshot)?;
            finish(&history, Target::Snapshot(bookmark.snapshot), bookmark.position)
        }
        (_, Moment::Latest) => {
            let history = History::read(core, owner)?;
            let newest = newest(&history.snapshots);
            let Some(newest) = newest else {
                return history
                    .planned(|view| plan(view, Target::LatestSnapshot))
                    .and_then(|_| Err(Failure::internal("a plan without a snapshot")));
            };
            finish(&history, Target::Snapshot(newest.id), newest.position)
        }
        (Owner::Vdb(_), _) => Err(Failure::new(
            ErrorKind::MomentUnavailable,
            "a VDB keeps no log of its own: only its snapshots and its present state can be opened",
            "use --snapshot ID, --bookmark NAME or --latest",
        )),
        (Owner::Dsource(_), _) => Err(Failure::new(
            ErrorKind::MomentUnavailable,
            "it keeps no log, as a masked dSource or the copy of a VDB: only its images can be opened",
            "use --snapshot ID, --bookmark NAME or --latest",
        )),
    }
}

/// Decides what opens a position of one timeflow of a dSource.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_at(
    core: &Following,
    dsource: &Dsource,
    timeflow: Option<TimeflowId>,
    position: LogPosition,
) -> Result<Resolved, Failure> {
    let text = PositionWriter::of(core, dsource.id.into())?.write(position);
    resolve_in_log(core, (dsource, timeflow), &Moment::Log(text), &mut |_| Ok(()))
}

/// A bookmark that must be on an object.
fn bookmark_of(core: &Core, owner: Owner, name: &str) -> Result<Bookmark, Failure> {
    let shown = bookmarks::show(core, name)?;
    if shown.bookmark.owner == owner {
        return Ok(shown.bookmark);
    }
    Err(Failure::new(
        ErrorKind::InvalidInput,
        format!("the bookmark '{name}' is on '{}', whose history this is not", shown.object),
        format!(
            "provision a VDB from there: offshoot vdb provision NAME --from {} --bookmark {name}",
            shown.object
        ),
    ))
}

/// The timeflows of a dSource that have ended and still have their log, newest first.
fn ended(core: &Core, dsource: &Dsource) -> Result<Vec<Timeflow>, Failure> {
    let mut all: Vec<Timeflow> = core.catalog.list_of(dsource.id)?;
    all.retain(|one| one.log_dataset.is_some() && Some(one.id) != dsource.timeflow);
    all.sort_by_key(|one| std::cmp::Reverse(one.id));
    Ok(all)
}

/// Looks for a moment that the present timeflow lacks in those before it.
fn resolve_in_ended(
    core: &Following,
    dsource: &Dsource,
    moment: &Moment,
    lacking: Failure,
) -> Result<Resolved, Failure> {
    let ended = ended(core, dsource)?;
    for timeflow in &ended {
        let missing = lacking.clone();
        let nothing_more: Ask<'_> = &mut |_| Err(missing.clone());
        match resolve_in_log(core, (dsource, Some(timeflow.id)), moment, nothing_more) {
            Err(failure) if failure.code == ErrorKind::MomentUnavailable => {}
            resolved => return resolved,
        }
    }
    match moment {
        Moment::At(at) if !ended.is_empty() => {
            let refused = History::whole(core, dsource)?.planned(|view| check_time(view, *at));
            Err(match refused {
                Err(TimeRefusal::Never(failure) | TimeRefusal::NotYet(failure)) => failure,
                Ok(()) => lacking,
            })
        }
        _ => Err(lacking),
    }
}

fn resolve_in_log(
    core: &Following,
    (dsource, timeflow): (&Dsource, Option<TimeflowId>),
    moment: &Moment,
    ask: Ask<'_>,
) -> Result<Resolved, Failure> {
    let follower = &match timeflow {
        Some(id) => core.log_of(dsource, id)?,
        None => core.need_follower(dsource)?,
    };
    let read = || History::of_timeflow(core, dsource, timeflow);
    let mut history = read()?;
    let (end, next, time) = match moment {
        Moment::At(at) => {
            match history.planned(|view| check_time(view, *at)) {
                Ok(()) => {}
                Err(TimeRefusal::Never(failure)) => return Err(failure),
                Err(TimeRefusal::NotYet(failure)) => {
                    // Ask the source once; it may be idle, or we may be a little behind.
                    ask(follower).map_err(|error| cancelled_or(error, failure))?;
                    history = read()?;
                    history.planned(|view| check_time(view, *at))?;
                }
            }
            match follower.log().last_not_after(*at)? {
                Some(commit) => after(follower, commit.end, Some(*at))?,
                // Nothing was committed since the first moment kept.
                None => before_first(&history, follower, *at)?,
            }
        }
        Moment::Log(text) => {
            let position = history.writer().read(text)?;
            if follower.indexed().is_none_or(|end| end.log < position) {
                or_received(ask(follower))?;
                history = read()?;
            }
            after(follower, position, None)?
        }
        Moment::Transaction(label) => {
            let mut found = follower.log().by_transaction(label)?;
            if found.is_none() {
                or_received(ask(follower))?;
                history = read()?;
                found = follower.log().by_transaction(label)?;
            }
            let commit = found.ok_or_else(|| unknown_transaction(&history.name, label))?;
            after(follower, commit.end, Some(commit.time))?
        }
        _ => {
            // Everything that was received opens, even if the source cannot be asked now.
            or_received(ask(follower))?;
            // Read first: meanwhile more may arrive, and the history must reach at least this far.
            let indexed = follower.indexed();
            history = read()?;
            let Some(end) = indexed else {
                let latest = history.planned(|view| plan(view, Target::LatestSnapshot))?;
                return finish_plan(&history, latest, None);
            };
            // A snapshot after the last commit shows the same as the end of the log.
            // One that begins there, or before, may end behind what is proved to be complete.
            let last = follower.log().last_at(end.log)?.filter(|last| last.end <= end.log);
            // Commits arrive before there is proof that none with their time is missing.
            let (last, time) =
                last.map_or((end.log, end.time), |last| (last.end, last.time.max(end.time)));
            (last, Some(LogPosition(end.log.0 + 1)), time)
        }
    };
    let next = if is_indexed(follower, end)? { next } else { None };
    finish(&history, Target::Position { end, next }, Position { log: end, time })
}

/// A job that is cancelled says so; other reasons matter less than what is missing.
fn cancelled_or(error: Failure, other: Failure) -> Failure {
    if error.code == ErrorKind::Cancelled { error } else { other }
}

/// What was received has to do where the source cannot be asked.
fn or_received(asked: Result<(), Failure>) -> Result<(), Failure> {
    asked.or_else(|error| if error.code == ErrorKind::Cancelled { Err(error) } else { Ok(()) })
}

/// Whether all commits from a position on are indexed. Commits before the first log file that is kept
/// are forgotten, so the next one found may not be the next.
fn is_indexed(follower: &Follower, position: LogPosition) -> Result<bool, Failure> {
    Ok(follower.log().begin()?.is_some_and(|begin| begin <= position))
}

/// A position, the end of the next commit after it, and its time.
type Found = (LogPosition, Option<LogPosition>, Timestamp);

fn after(
    follower: &Follower,
    position: LogPosition,
    time: Option<Timestamp>,
) -> Result<Found, Failure> {
    let next = follower.log().next_after(position)?.map(|commit| commit.end);
    // Nothing was committed up to the end of what is indexed.
    let next = next.or_else(|| Some(LogPosition(follower.indexed()?.log.0 + 1)));
    let time = match time {
        Some(time) => time,
        None => follower.log().last_at(position)?.map_or_else(Timestamp::default, |one| one.time),
    };
    Ok((position, next, time))
}

fn before_first(history: &History, follower: &Follower, at: Timestamp) -> Result<Found, Failure> {
    let held = history.snapshots.iter().filter(|one| one.position.time <= at);
    match held.max_by_key(|one| one.position.log) {
        Some(base) => after(follower, base.position.log, Some(at)),
        None => Err(Failure::internal(format!("no snapshot of '{}' is before {at}", history.name))),
    }
}

fn unknown_transaction(name: &str, label: &str) -> Failure {
    Failure::new(
        ErrorKind::MomentUnavailable,
        format!("no commit of transaction {label} is in the log of '{name}'"),
        "the transaction was rolled back, is not finished, or is older than the log kept",
    )
}

fn finish(history: &History, target: Target, position: Position) -> Result<Resolved, Failure> {
    finish_plan(history, history.planned(|view| plan(view, target))?, Some(position))
}

fn finish_plan(
    history: &History,
    plan: ProvisionPlan,
    position: Option<Position>,
) -> Result<Resolved, Failure> {
    let base = history.snapshot(plan.snapshot)?;
    Ok(Resolved {
        snapshot: plan.snapshot,
        image: plan.image,
        recover_to: plan.recover_to,
        timeflow: history.timeflow,
        replay_from: base.replay_from,
        position: position.unwrap_or(base.position),
    })
}

/// The position a snapshot taken now would have, by the last commit at or before it.
pub fn position_at(
    follower: &Follower,
    log: LogPosition,
    fallback: Timestamp,
) -> Result<Position, Failure> {
    let commit = follower.log().last_at(log)?;
    let proved = follower.indexed().filter(|indexed| indexed.log == log);
    let time = proved.map(|one| one.time).or(commit.map(|one| one.time)).unwrap_or(fallback);
    Ok(Position { log, time })
}
