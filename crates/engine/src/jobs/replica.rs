//! Takes in what another engine has sent: an archive becomes a dSource in a namespace, or renews it.
//!
//! # Invariants
//! 1. Nothing of an archive is visible before all of it is in the store; then one transaction of the catalog shows it.
//! 2. A replica only goes forward: what is older than what is here is refused, what is as old changes nothing.
//! 3. A snapshot keeps its id here when its dSource is renewed: bookmarks and VDBs name it.

pub mod collected;
pub mod pull;

use crate::core::job_kind::JobKind;
use crate::jobs::snapshot::SNAPSHOT;
use crate::parts::{Arrival, Context, Parts};
use crate::space::room;
use offshoot_catalog::Transaction;
use offshoot_dataset::{Becomes, Received};
use offshoot_domain::{
    Bookmark, Dsource, DsourceState, Manifest, ObjectName, Owner, Readiness, Replica, SentBookmark,
    SentDsource, SentSnapshot, Snapshot, Timeflow, Vdb,
};
use offshoot_replication::archive::Tally;
use offshoot_replication::lacking::Estimate;
use offshoot_types::{
    DatasetId, DsourceId, ErrorKind, Failure, JobId, PeerId, SnapshotId, TimeflowId,
};
use offshoot_workflow::{Key, Submission, Workflow};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Blocks between two looks at how far it is.
const TOLD_BLOCKS: u64 = 4096;
/// How long others may still begin to use a replica that is about to be renewed.
const OTHERS_BEGIN: Duration = Duration::from_secs(60);

/// What an archive has become.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Became {
    Snapshot(SnapshotId),
    Dataset(DatasetId),
}

/// Key under which the job stores that, state by state.
const BECAME: Key<Vec<Became>> = Key::new("received");

/// What to take in.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Input {
    /// The replica.
    pub dsource: DsourceId,
    /// Its name here.
    pub name: ObjectName,
    /// Under which number the archive waits.
    pub arrival: u64,
    /// How long it is, if that is known.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// What it says of itself.
    pub manifest: Manifest,
    /// By a connection: who sends it, and what it is sent as.
    #[serde(default)]
    pub sent: Option<SentBy>,
}

/// Who sends something by a connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SentBy {
    /// The peer.
    pub peer: PeerId,
    digest: String,
}

/// The workflow.
pub fn workflow() -> Workflow<Parts> {
    Workflow::new(JobKind::ReplicationImport)
        .step("receive", receive, discard)
        .point_of_no_return()
        .step_without_undo("publish", publish)
}

/// Starts the job, after it was checked what the archive says of itself.
///
/// # Errors
/// `InvalidInput`, `AlreadyExists` if the name is another object's, `WrongState` if what is here is newer, `PoolFull`.
pub fn submit(
    parts: &Arc<Parts>,
    archive: Arrival,
    namespace: &ObjectName,
    bytes: Option<u64>,
) -> Result<JobId, Failure> {
    let manifest = Manifest::read(archive.manifest(), archive.states())?;
    let (name, present) = admit(parts, namespace, &manifest)?;
    if let Some(bytes) = bytes {
        check_fits(parts, &name, &manifest, bytes)?;
    }
    let dsource = match present {
        Some(present) => present.id,
        None => parts.catalog.allocate::<Dsource>()?,
    };
    let arrival = parts.arrivals.put(archive);
    let input = Input { dsource, name, arrival, bytes, manifest, sent: None };
    let submitted = parts.submit(submission(JobKind::ReplicationImport, &input));
    if submitted.is_err() {
        parts.arrivals.take(arrival);
    }
    submitted
}

/// Whether this engine takes something in: the name that it gets here, and the replica that it renews.
fn admit(
    parts: &Parts,
    namespace: &ObjectName,
    manifest: &Manifest,
) -> Result<(ObjectName, Option<Replica>), Failure> {
    room::check_takes_on(parts, "a copy of another engine's dSource")?;
    let name = ObjectName::within(namespace, &manifest.dsource.name)?;
    parts.connectors.find(&manifest.dsource.connector)?;
    let present = present(parts, &name, manifest)?;
    Ok((name, present))
}

/// Refuses an archive that there is no room for. Of a database of which something is here that shows only as it comes: most
/// of it may be here.
fn check_fits(
    parts: &Parts,
    name: &ObjectName,
    manifest: &Manifest,
    bytes: u64,
) -> Result<(), Failure> {
    let identity = &manifest.dsource.identity;
    let known = parts.catalog.all::<Dsource>()?.iter().any(|one| one.identity == *identity)
        || parts.catalog.all::<Vdb>()?.iter().any(|one| one.source_identity == *identity);
    match known {
        true => Ok(()),
        false => {
            let lacking = Estimate { bytes, coming_bytes: bytes, whole: true };
            room::check_fits(name, lacking, room::left(parts))
        }
    }
}

fn submission(kind: JobKind, input: &Input) -> Submission {
    let submission = Submission::new(kind, &input.name, input);
    // What is there is used meanwhile.
    let submission = submission.exclusive(format!("name:{}", input.name)).shared(input.dsource);
    // Nobody takes over in the middle of it.
    match &input.sent {
        Some(sent) => submission.shared(sent.peer),
        None => submission,
    }
}

/// Whether a job that speaks with the store or with another engine is to go on.
pub fn go_on(context: &Context) -> Result<(), offshoot_replication::Error> {
    match context.is_cancelled() {
        true => Err(offshoot_replication::Error::Cancelled),
        false => Ok(()),
    }
}

/// The replica of the same object, if it is here already.
fn present(
    parts: &Parts,
    name: &ObjectName,
    manifest: &Manifest,
) -> Result<Option<Replica>, Failure> {
    let Some(owner) = parts.catalog.find_owner(name)? else { return Ok(None) };
    let dsource: Option<Dsource> = parts.catalog.find_named(name)?;
    let replica = match dsource {
        Some(dsource) => parts.catalog.find::<Replica>(dsource.id)?,
        None => None,
    };
    let same = |one: &Replica| one.engine == manifest.engine && one.origin == manifest.dsource.id;
    let Some(replica) = replica.filter(same) else {
        return Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!("the name '{name}' is taken by {owner}, which is a copy of something else"),
            format!(
                "import it into another namespace: --as PREFIX; or remove it: offshoot dsource unlink {name}"
            ),
        ));
    };
    if replica.as_of > manifest.as_of {
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!(
                "'{name}' is as of {}, and the archive as of {}: it is older",
                replica.as_of, manifest.as_of
            ),
            "import a newer archive; or this one into another namespace: --as PREFIX",
        ));
    }
    Ok(Some(replica))
}

/// Whether all of it is here: an archive that is taken in twice.
fn is_here(parts: &Parts, input: &Input) -> Result<bool, Failure> {
    let replica = parts.catalog.find::<Replica>(input.dsource)?;
    Ok(replica.is_some_and(|replica| replica.as_of == input.manifest.as_of))
}

fn receive(context: &Context) -> Result<(), Failure> {
    // What an attempt before this one has received belongs to nobody.
    discard(context)?;
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    let archive = parts.arrivals.take(input.arrival).ok_or_else(|| {
        let message = "the engine ended while it read the archive";
        Failure::new(ErrorKind::Cancelled, message, "nothing of it was kept; import it again")
    })?;
    if is_here(parts, &input)? {
        return context.note(format!("'{}' is as the archive already", input.name));
    }
    let becomes = becomes(&input.manifest, archive.states());
    let mut tick = |tally: &Tally| {
        if tally.blocks.is_multiple_of(TOLD_BLOCKS) {
            context.progress(tally.bytes, input.bytes.unwrap_or(0), "bytes");
            go_on(context)?;
        }
        Ok(())
    };
    let received = archive.receive(&parts.store, &becomes, &mut tick);
    let (received, tally) = received.map_err(|error| error.failure())?;
    context.progress(tally.bytes, tally.bytes, "bytes");
    context.note(format!(
        "{} blocks came, {} of them were here already",
        tally.blocks, tally.present
    ))?;
    remember(context, &received)
}

/// What each state is to become.
fn becomes(manifest: &Manifest, states: usize) -> Vec<Becomes> {
    let mut becomes = vec![Becomes::Snapshot; states];
    for log in manifest.dsource.timeflows.iter().filter_map(|one| one.state) {
        becomes[log] = Becomes::Dataset;
    }
    becomes
}

fn remember(context: &Context, received: &[Received]) -> Result<(), Failure> {
    let became = |one: &Received| match *one {
        Received::Snapshot(id) => Became::Snapshot(id),
        Received::Dataset(id) => Became::Dataset(id),
    };
    context.set(BECAME, &received.iter().map(became).collect())
}

fn discard(context: &Context) -> Result<(), Failure> {
    let parts = context.app();
    for one in context.get(BECAME)?.unwrap_or_default() {
        match one {
            Became::Snapshot(id) => parts.delete_image(id)?,
            Became::Dataset(id) => parts.delete_dataset(id)?,
        }
    }
    context.set(BECAME, &Vec::new())
}

fn publish(context: &Context) -> Result<(), Failure> {
    let (parts, input): (_, Input) = (context.app(), context.input()?);
    context.have_alone(input.dsource, OTHERS_BEGIN)?;
    let became = context.need(BECAME)?;
    let mut superseded = Vec::new();
    if !is_here(parts, &input)? {
        close_logs(parts, input.dsource)?;
        let before = kept(parts, input.dsource)?;
        let now = parts.now();
        let show = |tx: &Transaction<'_>| Showing { tx, input: &input, became: &became }.show(now);
        parts.catalog.transaction(show)?;
        let after = kept(parts, input.dsource)?;
        // What was renewed, and what came twice. A crash here leaves it to the next start.
        superseded.extend(before.into_iter().chain(became));
        superseded.retain(|one| !after.iter().any(|kept| kept.is(one)));
    }
    // Users wait for it.
    open_log(parts, input.dsource)?;
    for one in superseded {
        match one {
            Became::Snapshot(id) => parts.delete_image(id)?,
            Became::Dataset(id) => parts.delete_dataset(id)?,
        }
    }
    let snapshots: Vec<Snapshot> = parts.catalog.list_of(input.dsource)?;
    match snapshots.iter().max_by_key(|one| (one.taken_at, one.id)) {
        Some(newest) => context.set(SNAPSHOT, &newest.id),
        None => Ok(()),
    }
}

impl Became {
    fn is(&self, other: &Became) -> bool {
        match (self, other) {
            (Became::Snapshot(one), Became::Snapshot(other)) => one == other,
            (Became::Dataset(one), Became::Dataset(other)) => one == other,
            _ => false,
        }
    }
}

/// Closes the logs of a replica, which are about to be replaced, or go on under another name.
pub fn close_logs(parts: &Parts, id: DsourceId) -> Result<(), Failure> {
    parts.stop(id)?;
    for timeflow in parts.catalog.list_of::<Timeflow>(id)? {
        parts.close_log(timeflow.id);
    }
    Ok(())
}

/// Opens its log, if it has one and nobody has opened it yet.
pub fn open_log(parts: &Arc<Parts>, id: DsourceId) -> Result<(), Failure> {
    let dsource: Dsource = parts.catalog.get(id)?;
    match dsource.log_dataset.is_some() && parts.follower(id).is_none() {
        true => parts.start(&dsource, false),
        false => Ok(()),
    }
}

/// What the catalog names of a replica in the store.
fn kept(parts: &Parts, id: DsourceId) -> Result<Vec<Became>, Failure> {
    let mut kept = Vec::new();
    let dsource = parts.catalog.find::<Dsource>(id)?;
    kept.extend(dsource.and_then(|dsource| dsource.log_dataset).map(Became::Dataset));
    for timeflow in parts.catalog.list_of::<Timeflow>(id)? {
        kept.extend(timeflow.log_dataset.map(Became::Dataset));
    }
    for snapshot in parts.catalog.list_of::<Snapshot>(id)? {
        kept.push(Became::Snapshot(snapshot.id));
        kept.extend(snapshot.ready_image().map(Became::Snapshot));
    }
    Ok(kept)
}

/// The transaction that shows a replica.
struct Showing<'a, 'tx> {
    tx: &'a Transaction<'tx>,
    input: &'a Input,
    became: &'a [Became],
}

impl Showing<'_, '_> {
    fn snapshot(&self, state: usize) -> Option<SnapshotId> {
        match self.became.get(state) {
            Some(Became::Snapshot(id)) => Some(*id),
            _ => None,
        }
    }

    fn dataset(&self, state: usize) -> Option<DatasetId> {
        match self.became.get(state) {
            Some(Became::Dataset(id)) => Some(*id),
            _ => None,
        }
    }

    fn show(&self, now: jiff::Timestamp) -> Result<(), offshoot_catalog::Error> {
        let (id, sent) = (self.input.dsource, &self.input.manifest.dsource);
        let before = self.tx.find::<Replica>(id)?;
        let timeflows = self.show_timeflows(before.as_ref())?;
        let snapshots = self.show_snapshots(before.as_ref(), &timeflows)?;
        self.show_bookmarks(&snapshots)?;
        let present = self.tx.find::<Dsource>(id)?;
        let created_at = present.as_ref().map_or(now, |one| one.created_at);
        let (policy, pace) = present.map(|one| (one.policy, one.pace)).unwrap_or_default();
        let current = sent.timeflows.iter().find(|one| one.id == sent.timeflow);
        self.tx.put(&Dsource {
            id,
            name: self.input.name.clone(),
            state: DsourceState::Replica,
            problem: None,
            connector: sent.connector.clone(),
            source: sent.source.clone(),
            server_version: sent.server_version.clone(),
            identity: sent.identity.clone(),
            connector_state: sent.connector_state.clone(),
            reservation: None,
            created_at,
            policy,
            log_dataset: current.and_then(|one| one.state).and_then(|at| self.dataset(at)),
            staging_dataset: None,
            timeflow: timeflows.get(&sent.timeflow).copied(),
            synced_to: sent.synced_to,
            warnings: Vec::new(),
            pace,
        })?;
        self.tx.put(&Replica {
            id,
            engine: self.input.manifest.engine.clone(),
            origin: sent.id,
            as_of: self.input.manifest.as_of,
            masked: sent.masked,
            digest: self.input.sent.as_ref().map(|sent| sent.digest.clone()),
            snapshots,
            timeflows,
            policy: sent.policy,
            vdb: sent.vdb.clone(),
            via: self.input.manifest.way(&self.input.name.outermost()),
        })
    }

    /// They are in the namespace too. Those that users have set here are not.
    fn show_bookmarks(
        &self,
        snapshots: &BTreeMap<SnapshotId, SnapshotId>,
    ) -> Result<(), offshoot_catalog::Error> {
        let owner = Owner::Dsource(self.input.dsource);
        let namespace = self.input.name.namespace();
        let within = |name: &ObjectName| ObjectName::within(namespace.as_ref()?, name).ok();
        let mut shown = BTreeSet::new();
        for sent in &self.input.manifest.dsource.bookmarks {
            let (Some(name), Some(snapshot)) =
                (within(&sent.name), snapshots.get(&sent.snapshot).copied())
            else {
                tracing::warn!(bookmark = %sent.name, of = %self.input.name, "a bookmark has no place here");
                continue;
            };
            let id = match self.tx.find_named::<Bookmark>(&name)? {
                Some(present) => present.id,
                None => self.tx.allocate::<Bookmark>()?,
            };
            let SentBookmark { position, created_at, .. } = *sent;
            shown.insert(id);
            self.tx.put(&Bookmark { id, name, owner, snapshot, position, created_at })?;
        }
        let gone = |one: &Bookmark| one.name.namespace() == namespace && !shown.contains(&one.id);
        for bookmark in self.tx.list_of::<Bookmark>(owner)?.iter().filter(|one| gone(one)) {
            self.tx.delete::<Bookmark>(bookmark.id)?;
        }
        Ok(())
    }

    fn show_timeflows(
        &self,
        before: Option<&Replica>,
    ) -> Result<BTreeMap<TimeflowId, TimeflowId>, offshoot_catalog::Error> {
        let SentDsource { timeflow: current, timeflows, .. } = &self.input.manifest.dsource;
        let mut ids = BTreeMap::new();
        for sent in timeflows {
            let known = before.and_then(|before| before.timeflows.get(&sent.id)).copied();
            let id = match known {
                Some(id) => id,
                None => self.tx.allocate::<Timeflow>()?,
            };
            ids.insert(sent.id, id);
            let log = sent.state.and_then(|at| self.dataset(at));
            self.tx.put(&Timeflow {
                id,
                owner: self.input.dsource.into(),
                parent: None,
                origin: None,
                dataset: None,
                log: sent.log.clone(),
                // The current one's is the dSource's.
                log_dataset: log.filter(|_| sent.id != *current),
                started_at: sent.started_at,
                ended_at: sent.ended_at,
            })?;
        }
        let gone = before.iter().flat_map(|before| &before.timeflows);
        for (_, id) in gone.filter(|(there, _)| !ids.contains_key(there)) {
            self.tx.delete::<Timeflow>(*id)?;
        }
        Ok(ids)
    }

    fn show_snapshots(
        &self,
        before: Option<&Replica>,
        timeflows: &BTreeMap<TimeflowId, TimeflowId>,
    ) -> Result<BTreeMap<SnapshotId, SnapshotId>, offshoot_catalog::Error> {
        let mut ids = BTreeMap::new();
        for SentSnapshot { snapshot: sent, taken, ready } in &self.input.manifest.dsource.snapshots
        {
            let Some(came) = self.snapshot(*taken) else { continue };
            let known = before.and_then(|before| before.snapshots.get(&sent.id)).copied();
            let present = match known {
                Some(id) => self.tx.find::<Snapshot>(id)?,
                None => None,
            };
            let came_ready = ready.and_then(|at| self.snapshot(at));
            let readiness = match (&present, &sent.readiness) {
                (Some(present), _) if present.ready_image().is_some() => present.readiness.clone(),
                (_, Readiness::Ready { proven, .. }) => {
                    Readiness::Ready { image: came_ready.unwrap_or(came), proven: *proven }
                }
                (_, other) => other.clone(),
            };
            let id = present.map_or(came, |present| present.id);
            ids.insert(sent.id, id);
            let Some(timeflow) = timeflows.get(&sent.timeflow).copied() else { continue };
            let owner = self.input.dsource.into();
            self.tx.put(&Snapshot { id, owner, timeflow, readiness, ..sent.clone() })?;
        }
        let gone = before.iter().flat_map(|before| &before.snapshots);
        for (_, id) in gone.filter(|(there, _)| !ids.contains_key(there)) {
            self.tx.delete::<Snapshot>(*id)?;
        }
        Ok(ids)
    }
}
