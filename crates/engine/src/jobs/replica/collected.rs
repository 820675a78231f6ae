//! What of an object is sent, with the states that hold it.

use crate::core::kind::{Kind, source_of};
use crate::core::peers;
use crate::parts::Parts;
use offshoot_dataset::HeldState;
use offshoot_domain::{
    Bookmark, Dsource, DsourceState, Manifest, Owner, Peer, Position, Replica, SentBookmark,
    SentDsource, SentSnapshot, SentTimeflow, SentVdb, Snapshot, Timeflow, User, Vdb, VdbState,
    is_masked,
};
use offshoot_types::{DatasetId, DsourceId, ErrorKind, Failure, SnapshotId, TimeflowId};
use std::collections::BTreeMap;

/// How often a copy is read again that was renewed meanwhile.
const TIMES: usize = 10;

/// What is sent of an object, as it is now. The states stay in the pool until they are dropped.
///
/// # Errors
/// `WrongState` if there is nothing yet.
pub fn collect(parts: &Parts, owner: Owner) -> Result<(Manifest, Vec<HeldState>), Failure> {
    let as_of = parts.now();
    let (sent, states) = match owner {
        Owner::Dsource(id) => {
            let dsource: Dsource = parts.catalog.get(id)?;
            if dsource.state == DsourceState::Replica {
                return of_replica(parts, id);
            }
            Collected::of_dsource(parts, &dsource, None)?
        }
        Owner::Vdb(id) => Collected::of_vdb(parts, &parts.catalog.get(id)?)?,
    };
    Ok((Manifest::new(peers::own_engine(parts), as_of, sent), states))
}

/// What is sent on of a copy. It may be renewed in the middle of it: then it is read again.
fn of_replica(parts: &Parts, id: DsourceId) -> Result<(Manifest, Vec<HeldState>), Failure> {
    for _ in 0..TIMES {
        let replica: Replica = parts.catalog.get(id)?;
        let came = Came::of(&replica);
        let collected = Collected::of_dsource(parts, &parts.catalog.get(id)?, Some(&came));
        if parts.catalog.find::<Replica>(id)?.as_ref() == Some(&replica) {
            let (mut sent, states) = collected?;
            came.say_as_it_came(&mut sent, &replica);
            return Ok((Manifest::of_copy(peers::own_engine(parts), &replica, sent), states));
        }
    }
    let message = format!("{id} is being renewed all the time");
    Err(Failure::new(ErrorKind::Busy, message, "try again"))
}

/// What of a copy has come, by its id here, and its id on the engine that it comes from. Everything else was added here.
struct Came {
    snapshots: BTreeMap<SnapshotId, SnapshotId>,
    timeflows: BTreeMap<TimeflowId, TimeflowId>,
}

impl Came {
    fn of(replica: &Replica) -> Came {
        Came {
            snapshots: replica.snapshots.iter().map(|(there, here)| (*here, *there)).collect(),
            timeflows: replica.timeflows.iter().map(|(there, here)| (*here, *there)).collect(),
        }
    }

    fn has(&self, snapshot: &Snapshot) -> bool {
        self.snapshots.contains_key(&snapshot.id) && self.timeflows.contains_key(&snapshot.timeflow)
    }

    /// Gives a copy the ids that it has on the engine that it comes from.
    fn say_as_it_came(&self, sent: &mut SentDsource, replica: &Replica) {
        let snapshot = |id: SnapshotId| self.snapshots.get(&id).copied().unwrap_or(id);
        let timeflow = |id: TimeflowId| self.timeflows.get(&id).copied().unwrap_or(id);
        for SentSnapshot { snapshot: one, .. } in &mut sent.snapshots {
            (one.id, one.timeflow) = (snapshot(one.id), timeflow(one.timeflow));
            one.owner = replica.origin;
        }
        for one in &mut sent.timeflows {
            one.id = timeflow(one.id);
        }
        // Those that users have set here are not in its namespace.
        sent.bookmarks.retain(|one| one.name.namespace() == sent.name.namespace());
        for one in &mut sent.bookmarks {
            one.snapshot = snapshot(one.snapshot);
            one.name = one.name.base();
        }
        (sent.id, sent.timeflow) = (replica.origin, timeflow(sent.timeflow));
        (sent.masked, sent.policy) = (replica.masked, replica.policy);
        sent.vdb.clone_from(&replica.vdb);
    }
}

/// Whether it is stopped, and not just until a peer has taken over, or somebody connects.
fn is_stopped_by_user(parts: &Parts, vdb: &Vdb) -> Result<bool, Failure> {
    let waits = |peer: &Peer| {
        peer.handed_over.as_ref().is_some_and(|begun| begun.stopped.contains(&vdb.id.into()))
    };
    let is_stopped = vdb.state == VdbState::Stopped && !vdb.is_asleep();
    Ok(is_stopped && !parts.catalog.all::<Peer>()?.iter().any(waits))
}

fn check_state(dsource: &Dsource) -> Result<(), Failure> {
    if !matches!(dsource.state, DsourceState::Linking | DsourceState::Unlinking) {
        return Ok(());
    }
    let message = format!("'{}' is {}", dsource.name, dsource.state.as_str());
    Err(Failure::new(ErrorKind::WrongState, message, "wait: offshoot job list"))
}

/// The bookmarks whose snapshots are sent.
fn bookmarks(
    parts: &Parts,
    owner: Owner,
    snapshots: &[SentSnapshot],
) -> Result<Vec<SentBookmark>, Failure> {
    let mut all: Vec<Bookmark> = parts.catalog.list_of(owner)?;
    all.retain(|one| snapshots.iter().any(|sent| sent.snapshot.id == one.snapshot));
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let sent = |Bookmark { name, snapshot, position, created_at, .. }| SentBookmark {
        name,
        snapshot,
        position,
        created_at,
    };
    Ok(all.into_iter().map(sent).collect())
}

/// What of a dSource is sent, with the states that hold it.
struct Collected<'a> {
    parts: &'a Parts,
    states: Vec<HeldState>,
}

impl Collected<'_> {
    /// `came`: of a copy.
    fn of_dsource(
        parts: &Parts,
        dsource: &Dsource,
        came: Option<&Came>,
    ) -> Result<(SentDsource, Vec<HeldState>), Failure> {
        check_state(dsource)?;
        let timeflow = dsource.timeflow.ok_or_else(|| {
            let message = format!("'{}' has no snapshot yet", dsource.name);
            Failure::new(ErrorKind::WrongState, message, "wait: offshoot job list")
        })?;
        let kind = Kind::of_dsource(parts, dsource)?;
        // Asked before the log is looked at: the log reaches at least this far.
        let follower = parts.follower(dsource.id);
        let synced_to = follower.map_or(dsource.synced_to, |follower| follower.indexed());
        let mut collected = Collected { parts, states: Vec::new() };
        let sendable = |one: &Snapshot| !one.is_failed() && came.is_none_or(|came| came.has(one));
        let snapshots = collected.snapshots(dsource.id.into(), &sendable)?;
        let timeflows = collected.timeflows(dsource, came, synced_to)?;
        let bookmarks = bookmarks(parts, dsource.id.into(), &snapshots)?;
        let sent = SentDsource {
            id: dsource.id.into(),
            name: dsource.name.clone(),
            connector: kind.connector.kind().to_owned(),
            source: dsource.source.clone(),
            server_version: dsource.server_version.clone(),
            identity: dsource.identity.clone(),
            connector_state: dsource.connector_state.clone(),
            created_at: dsource.created_at,
            masked: is_masked(&dsource.identity),
            synced_to,
            timeflow,
            timeflows,
            snapshots,
            bookmarks,
            policy: Some(dsource.policy),
            vdb: None,
        };
        Ok((sent, collected.states))
    }

    /// The ready snapshots of a VDB: what is not ready opens only with its own log inside, as a VDB's.
    fn of_vdb(parts: &Parts, vdb: &Vdb) -> Result<(SentDsource, Vec<HeldState>), Failure> {
        let kind = Kind::of_vdb(parts, vdb)?;
        let source = source_of(parts, vdb.id.into())?;
        let owner = vdb.owner.map(|id| parts.catalog.find::<User>(id)).transpose()?.flatten();
        let owner = owner.map(|user| user.name.to_string());
        let mut collected = Collected { parts, states: Vec::new() };
        let sendable = |one: &Snapshot| one.ready_image().is_some();
        let snapshots = collected.snapshots(vdb.id.into(), &sendable)?;
        let newest = snapshots.iter().max_by_key(|one| (one.snapshot.taken_at, one.snapshot.id));
        let timeflow = newest.map(|one| one.snapshot.timeflow).ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("no snapshot of '{}' is ready", vdb.name),
                format!(
                    "take one, and wait until it is ready: offshoot snapshot take {}",
                    vdb.name
                ),
            )
        })?;
        let mut timeflows: Vec<Timeflow> = parts.catalog.list_of(vdb.id)?;
        timeflows.retain(|flow| snapshots.iter().any(|one| one.snapshot.timeflow == flow.id));
        let flow = |flow: Timeflow| SentTimeflow {
            id: flow.id,
            log: Vec::new(),
            state: None,
            started_at: flow.started_at,
            ended_at: flow.ended_at,
        };
        let sent = SentDsource {
            id: vdb.id.into(),
            name: vdb.name.clone(),
            connector: kind.connector.kind().to_owned(),
            source: format!("vdb:{}", vdb.name),
            server_version: vdb.server_version.clone(),
            identity: vdb.source_identity.clone(),
            connector_state: source.map(|source| source.connector_state).unwrap_or_default(),
            created_at: vdb.created_at,
            masked: is_masked(&vdb.source_identity),
            synced_to: None,
            timeflow,
            timeflows: timeflows.into_iter().map(flow).collect(),
            bookmarks: bookmarks(parts, vdb.id.into(), &snapshots)?,
            snapshots,
            policy: None,
            vdb: Some(SentVdb::of(vdb, is_stopped_by_user(parts, vdb)?, owner)),
        };
        Ok((sent, collected.states))
    }

    fn snapshots(
        &mut self,
        owner: Owner,
        sendable: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<Vec<SentSnapshot>, Failure> {
        let mut all: Vec<Snapshot> = self.parts.catalog.list_of(owner)?;
        all.sort_by_key(|one| (one.position.log, one.id));
        all.retain(sendable);
        let mut sent = Vec::with_capacity(all.len());
        for snapshot in all {
            // Deleted meanwhile.
            let Ok(taken) = self.parts.store.hold_snapshot(snapshot.id) else { continue };
            let image = snapshot.ready_image().filter(|image| *image != snapshot.id);
            let ready = image.map(|image| self.parts.store.hold_snapshot(image)).transpose();
            let Ok(ready) = ready else { continue };
            let taken = self.hold(taken);
            let ready = ready.map(|ready| self.hold(ready));
            sent.push(SentSnapshot { snapshot, taken, ready });
        }
        Ok(sent)
    }

    fn timeflows(
        &mut self,
        dsource: &Dsource,
        came: Option<&Came>,
        synced_to: Option<Position>,
    ) -> Result<Vec<SentTimeflow>, Failure> {
        let mut all: Vec<Timeflow> = self.parts.catalog.list_of(dsource.id)?;
        all.retain(|one| came.is_none_or(|came| came.timeflows.contains_key(&one.id)));
        all.sort_by_key(|one| one.id);
        let mut sent = Vec::with_capacity(all.len());
        for timeflow in all {
            let current = Some(timeflow.id) == dsource.timeflow;
            let mut log = timeflow.log;
            if let (true, Some(range), Some(to)) = (current, log.last_mut(), synced_to) {
                range.to = to;
            }
            let dataset = if current { dsource.log_dataset } else { timeflow.log_dataset };
            let state = dataset.map(|dataset| self.hold_present(dataset)).transpose()?;
            let (started_at, ended_at) = (timeflow.started_at, timeflow.ended_at);
            sent.push(SentTimeflow { id: timeflow.id, log, state, started_at, ended_at });
        }
        Ok(sent)
    }

    fn hold(&mut self, state: HeldState) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    /// Holds a dataset as it is now.
    fn hold_present(&mut self, dataset: DatasetId) -> Result<usize, Failure> {
        let store = &self.parts.store;
        let snapshot = store.snapshot(dataset).map_err(|e| e.failure())?;
        let held = store.hold_snapshot(snapshot).map_err(|e| e.failure());
        // What is held stays without it.
        self.parts.delete_image(snapshot)?;
        held.map(|held| self.hold(held))
    }
}
