//! From what a user asks for to what must be cloned and replayed.

use crate::bookmarks;
use crate::core::{Core, missing};
use crate::follower::Follower;
use jiff::Timestamp;
use offshoot_domain::{
    Bookmark, Dsource, LogRange, Moment, Owner, Position, ProvisionPlan, Snapshot, Target,
    TimeRefusal, Timeflow, TimeflowView, Vdb, check_time, plan,
};
use offshoot_postgres::commit_index::Commit;
use offshoot_types::{ErrorKind, Failure, Lsn, SnapshotId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long the source may take to say what it has.
const ASK_TIMEOUT: Duration = Duration::from_secs(15);

/// What a job opens: decided once, stored with the job.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Resolved {
    /// The snapshot it comes from.
    pub snapshot: SnapshotId,
    /// The image in the store to clone.
    pub image: SnapshotId,
    /// Where replay of the source's log ends; none: the image opens as it stands.
    pub recover_to: Option<Lsn>,
    /// What the user sees as the moment.
    pub position: Position,
}

/// The snapshots and the log of a dSource or VDB.
pub struct History {
    pub name: String,
    pub snapshots: Vec<Snapshot>,
    log: Vec<LogRange>,
}

impl History {
    /// Reads the present history of an object: of a dSource the timeflow that goes on, as positions
    /// of one that ended may lie on another course of the source.
    pub fn read(core: &Core, owner: Owner) -> Result<History, Failure> {
        let (name, timeflow) = match owner {
            Owner::Dsource(id) => {
                let dsource: Dsource = core.catalog.get(id)?;
                (dsource.name.to_string(), dsource.timeflow)
            }
            Owner::Vdb(id) => {
                let vdb: Vdb = core.catalog.get(id)?;
                (vdb.name.to_string(), None)
            }
        };
        let mut snapshots: Vec<Snapshot> = core.catalog.list_of(owner)?;
        if let Owner::Dsource(_) = owner {
            snapshots.retain(|one| Some(one.timeflow) == timeflow);
        }
        snapshots.sort_by_key(|one| (one.position.lsn, one.id));
        let mut log = match timeflow {
            Some(id) => core.catalog.get::<Timeflow>(id)?.log,
            None => Vec::new(),
        };
        if let Owner::Dsource(id) = owner {
            let end = match core.follower(id) {
                Some(follower) => follower.indexed(),
                None => core.catalog.get::<Dsource>(id)?.synced_to,
            };
            if let (Some(range), Some(end)) = (log.last_mut(), end) {
                range.to = end;
            }
        }
        Ok(History { name, snapshots, log })
    }

    /// Reads the history that a snapshot of an object lies on. That of an ended timeflow of a dSource
    /// has no log.
    fn around(core: &Core, owner: Owner, id: SnapshotId) -> Result<History, Failure> {
        let present = History::read(core, owner)?;
        if present.snapshots.iter().any(|one| one.id == id) {
            return Ok(present);
        }
        let mut ended: Vec<Snapshot> = core.catalog.list_of(owner)?;
        let timeflow = ended.iter().find(|one| one.id == id).map(|one| one.timeflow);
        ended.retain(|one| Some(one.timeflow) == timeflow);
        Ok(History { name: present.name, snapshots: ended, log: Vec::new() })
    }

    /// For the planner.
    pub fn view(&self) -> TimeflowView<'_> {
        TimeflowView { name: &self.name, snapshots: &self.snapshots, log: &self.log }
    }

    fn snapshot(&self, id: SnapshotId) -> Result<&Snapshot, Failure> {
        self.snapshots.iter().find(|one| one.id == id).ok_or_else(|| {
            let hint = format!("list them: offshoot snapshot list {}", self.name);
            Failure::new(ErrorKind::NotFound, format!("'{}' has no {id}", self.name), hint)
        })
    }
}

/// A dSource or VDB by name.
pub fn find_parent(core: &Core, name: &str) -> Result<Owner, Failure> {
    core.catalog.find_owner(name)?.ok_or_else(|| {
        missing("dSource or VDB", name, "list them: offshoot dsource list; offshoot vdb list")
    })
}

/// Decides what opens a moment of a dSource or of a VDB's snapshots.
///
/// # Errors
/// `MomentUnavailable` that names the first or last moment there is.
pub fn resolve(core: &Arc<Core>, owner: Owner, moment: &Moment) -> Result<Resolved, Failure> {
    match (owner, moment) {
        (Owner::Dsource(id), Moment::At(_) | Moment::Lsn(_) | Moment::Xid(_) | Moment::Latest) => {
            let dsource: Dsource = core.catalog.get(id)?;
            let follower = core.need_follower(&dsource)?;
            resolve_in_log(core, owner, &follower, moment)
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
        (Owner::Vdb(_), Moment::Latest) => {
            let history = History::read(core, owner)?;
            let newest = history.snapshots.iter().max_by_key(|one| (one.taken_at, one.id));
            let Some(newest) = newest else {
                return plan(&history.view(), Target::LatestSnapshot)
                    .and_then(|_| Err(Failure::internal("a plan without a snapshot")));
            };
            finish(&history, Target::Snapshot(newest.id), newest.position)
        }
        (Owner::Vdb(_), _) => Err(Failure::new(
            ErrorKind::MomentUnavailable,
            "a VDB keeps no log of its own: only its snapshots and its present state can be opened",
            "use --snapshot ID, --bookmark NAME or --latest",
        )),
    }
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

fn resolve_in_log(
    core: &Arc<Core>,
    owner: Owner,
    follower: &Arc<Follower>,
    moment: &Moment,
) -> Result<Resolved, Failure> {
    let mut history = History::read(core, owner)?;
    let (lsn, next, time) = match moment {
        Moment::At(at) => {
            match check_time(&history.view(), *at) {
                Ok(()) => {}
                Err(TimeRefusal::Never(failure)) => return Err(failure),
                Err(TimeRefusal::NotYet(failure)) => {
                    // The source is asked once; it may be idle, or we a little behind.
                    follower.ask_now(ASK_TIMEOUT).map_err(|_| failure)?;
                    history = History::read(core, owner)?;
                    check_time(&history.view(), *at)?;
                }
            }
            match follower.index.last_not_after(*at)? {
                Some(commit) => after(follower, commit.end, Some(*at))?,
                // Nothing was committed since the first moment kept.
                None => before_first(&history, follower, *at)?,
            }
        }
        Moment::Lsn(lsn) => {
            if follower.indexed().is_none_or(|end| end.lsn < *lsn) {
                let _ = follower.ask_now(ASK_TIMEOUT);
                history = History::read(core, owner)?;
            }
            after(follower, *lsn, None)?
        }
        Moment::Xid(xid) => {
            let mut found = follower.index.by_xid(*xid)?;
            if found.is_none() {
                let _ = follower.ask_now(ASK_TIMEOUT);
                history = History::read(core, owner)?;
                found = follower.index.by_xid(*xid)?;
            }
            let commit = found.ok_or_else(|| unknown_xid(&history.name, *xid))?;
            after(follower, commit.end, Some(commit.time))?
        }
        _ => {
            // Whatever was received opens, also when the source cannot be asked now.
            let _ = follower.ask_now(ASK_TIMEOUT);
            history = History::read(core, owner)?;
            let Some(end) = follower.indexed() else {
                return finish_plan(&history, plan(&history.view(), Target::LatestSnapshot)?, None);
            };
            // A snapshot behind the last commit shows the same as the end of the log.
            let last = follower.index.last_at_lsn(end.lsn)?;
            // Commits arrive before it is proved that none of their time is missing.
            let time = last.map_or(end.time, |commit| commit.time.max(end.time));
            (last.map_or(end.lsn, |commit| commit.end), Some(Lsn(end.lsn.0 + 1)), time)
        }
    };
    let next = if is_indexed(follower, lsn)? { next } else { None };
    finish(&history, Target::Position { lsn, next }, Position { lsn, time })
}

/// Whether all commits from a position on are indexed. Before the first log file that is kept they are
/// forgotten: what is found as the next commit may not be the next.
fn is_indexed(follower: &Follower, lsn: Lsn) -> Result<bool, Failure> {
    let archive = &follower.log.archive;
    let first = archive.files()?.iter().map(|file| file.number).min();
    Ok(first.is_some_and(|first| first <= archive.number_at(lsn)))
}

/// The position, the end of the next commit behind it, and its time.
fn after(
    follower: &Follower,
    lsn: Lsn,
    time: Option<Timestamp>,
) -> Result<(Lsn, Option<Lsn>, Timestamp), Failure> {
    let next = follower.index.first_from(lsn)?;
    let time = match time {
        Some(time) => time,
        None => follower.index.last_at_lsn(lsn)?.map_or_else(Timestamp::default, |one| one.time),
    };
    Ok((lsn, next.map(|commit| commit.end), time))
}

fn before_first(
    history: &History,
    follower: &Follower,
    at: Timestamp,
) -> Result<(Lsn, Option<Lsn>, Timestamp), Failure> {
    let held = history.snapshots.iter().filter(|one| one.position.time <= at);
    match held.max_by_key(|one| one.position.lsn) {
        Some(base) => after(follower, base.position.lsn, Some(at)),
        None => Err(Failure::internal(format!("no snapshot of '{}' is before {at}", history.name))),
    }
}

fn unknown_xid(name: &str, xid: u32) -> Failure {
    Failure::new(
        ErrorKind::MomentUnavailable,
        format!("no commit of transaction {xid} is in the log of '{name}'"),
        "the transaction was rolled back, is not finished, or is older than the log kept",
    )
}

fn finish(history: &History, target: Target, position: Position) -> Result<Resolved, Failure> {
    finish_plan(history, plan(&history.view(), target)?, Some(position))
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
        position: position.unwrap_or(base.position),
    })
}

/// The position a snapshot taken now would have, by the last commit at or before it.
pub fn position_at(
    follower: &Follower,
    lsn: Lsn,
    fallback: Timestamp,
) -> Result<Position, Failure> {
    let commit: Option<Commit> = follower.index.last_at_lsn(lsn)?;
    let proved = follower.indexed().filter(|indexed| indexed.lsn == lsn);
    let time = proved.map(|one| one.time).or(commit.map(|one| one.time)).unwrap_or(fallback);
    Ok(Position { lsn, time })
}
