//! What can be asked of dSources.

use crate::core::kind::{PositionWriters, ShownPosition};
use crate::face::snapshots::{self, SnapshotView};
use crate::jobs::dsource;
use crate::jobs::link;
use crate::jobs::way;
use crate::parts::Parts;
use crate::space::inventory::{LedgerKey, logical_bytes};
use crate::space::ledger::{self, LedgerFigures};
use crate::space::room;
use offshoot_connector::StreamState;
use offshoot_domain::{
    Dsource, DsourceState, ObjectName, Policy, PolicyChange, Secret, Snapshot, format_duration,
};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::sync::Arc;
use std::time::Duration;

/// The largest difference between two clocks that nobody needs to know, in milliseconds.
const CLOCK_SKEW_MAX_MS: u64 = 1_000;

/// What is linked.
#[derive(Debug, Clone, Default)]
pub struct LinkRequest {
    /// The dSource's name.
    pub name: String,
    /// The kind of database.
    pub connector: String,
    /// Where the source is, as its connector reads it.
    pub source: String,
    /// The password, if `source` does not hold it.
    pub password: Option<Secret>,
    /// How often a snapshot is taken; by default as in the default policy.
    pub snapshot_every_ms: Option<u64>,
}

/// How far a dSource follows its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowState {
    /// The first copy is being made.
    Linking,
    /// Its log is received.
    Syncing,
    /// It cannot be reached; the engine keeps trying.
    Disconnected(Failure),
    /// Paused by the user, or by what this says.
    Paused(Option<Failure>),
    /// Only a user can fix it.
    Failed(Failure),
    /// Made by masking another dSource; it follows nothing.
    Masked,
    /// It is a copy of another engine's, and follows nothing.
    Replica,
    /// Being removed.
    Unlinking,
}

/// A dSource and its present state.
#[derive(Debug, Clone)]
pub struct DsourceView {
    /// Its record.
    pub dsource: Dsource,
    /// How it stands to its source.
    pub state: FollowState,
    /// The position up to which moments can be opened.
    pub synced_to: Option<ShownPosition>,
    /// Log the engine does not have yet, in bytes.
    pub lag_bytes: Option<u64>,
    /// Age of what the engine has, in milliseconds.
    pub lag_ms: Option<u64>,
    /// How far the source's clock is ahead of the engine's, in milliseconds; none where they cannot be compared.
    pub clock_skew_ms: Option<i64>,
    /// What its files would take outside the pool, in bytes.
    pub logical_bytes: u64,
    /// What it takes in the pool, in bytes.
    pub stored_bytes: u64,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotView>,
}

impl DsourceView {
    /// What users of its times should know.
    pub fn clock_warning(&self) -> Option<Failure> {
        clock_warning(&self.dsource.name, self.clock_skew_ms?)
    }
}

fn clock_warning(name: &str, skew_ms: i64) -> Option<Failure> {
    if skew_ms.unsigned_abs() <= CLOCK_SKEW_MAX_MS {
        return None;
    }
    let by = format_duration(Duration::from_millis(skew_ms.unsigned_abs()));
    let way = if skew_ms > 0 { "ahead of" } else { "behind" };
    Some(Failure::new(
        ErrorKind::HostUnprepared,
        format!("the clock of the source of '{name}' is {by} {way} the engine's"),
        "have both hosts set their clocks by the same time servers: times of moments are the source's",
    ))
}

/// dSources, as a user works with them.
pub struct Dsources<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Dsources<'_> {
    /// What of the engine's own host an address of a source would have it use to get in.
    ///
    /// # Errors
    /// `InvalidInput` for the connector or the URI.
    pub fn local_ways(&self, connector: &str, source: &str) -> Result<Vec<String>, Failure> {
        self.parts.connectors.find(connector)?.local_ways(source)
    }

    /// Links a source.
    ///
    /// # Errors
    /// `InvalidInput` for the name or the URI, `AlreadyExists` for the name.
    pub fn link(&self, request: LinkRequest) -> Result<JobId, Failure> {
        let LinkRequest { name, connector, source, password, snapshot_every_ms } = request;
        let name: ObjectName = name.parse()?;
        let connector = self.parts.connectors.find(&connector)?;
        let source = connector.parse_source(&source, password)?;
        let change =
            PolicyChange { snapshot_every_ms: snapshot_every_ms.map(Some), ..Default::default() };
        room::check_takes_on(self.parts, "a new link")?;
        let dsource = self.parts.catalog.allocate::<Dsource>()?;
        let policy = Policy::default().changed(&change, dsource.into())?;
        let connector = connector.kind().to_owned();
        let input = link::Input { dsource, name, connector, source: source.uri, policy };
        link::submit(self.parts, input, source.secret)
    }

    /// All dSources, by name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn list(&self) -> Result<Vec<DsourceView>, Failure> {
        let mut all: Vec<Dsource> = self.parts.catalog.list()?;
        all.sort_by(|a, b| a.name.cmp(&b.name));
        views(self.parts, all)
    }

    /// One dSource.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn show(&self, name: &str) -> Result<DsourceView, Failure> {
        let mut one = views(self.parts, vec![self.parts.dsource(name)?])?;
        one.pop().ok_or_else(|| Failure::internal("a dSource without a view"))
    }

    /// Receives what the source has now and takes a snapshot.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn sync(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_sync(self.parts, name)
    }

    /// Changes how a source is reached: its URI, its password, or both. It must be the same database.
    ///
    /// # Errors
    /// `InvalidInput`, `NotFound`, `Busy`.
    pub fn set(
        &self,
        name: &str,
        source: Option<String>,
        password: Option<Secret>,
    ) -> Result<JobId, Failure> {
        let dsource = self.parts.dsource(name)?;
        dsource::check_has_source(&dsource)?;
        if source.is_none() && password.is_none() {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                "there is nothing to change",
                "give another --source, a --password-file, or both",
            ));
        }
        let connector = self.parts.connectors.find(&dsource.connector)?;
        let uri = source.unwrap_or_else(|| dsource.source.clone());
        let to = connector.parse_source(&uri, password)?;
        way::submit_set(self.parts, &dsource, to)
    }

    /// Stops following a source.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn pause(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_pause(self.parts, name)
    }

    /// Follows a source again.
    ///
    /// # Errors
    /// `NotFound`, `Busy`, `WrongState`.
    pub fn resume(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_resume(self.parts, name)
    }

    /// Removes a dSource.
    ///
    /// # Errors
    /// `NotFound`, `Busy`.
    pub fn unlink(&self, name: &str) -> Result<JobId, Failure> {
        dsource::submit_unlink(self.parts, name)
    }
}

/// dSources as they are now.
pub fn views(parts: &Parts, all: Vec<Dsource>) -> Result<Vec<DsourceView>, Failure> {
    let key = |one: &Dsource| LedgerKey::Dsource(one.id);
    let held = ledger::figures(parts, &all.iter().map(key).collect())?;
    let mut writers = PositionWriters::new(parts);
    let shown = |one: Dsource| {
        let held = held.get(&key(&one)).copied();
        view(parts, one, held.unwrap_or_default(), &mut writers)
    };
    all.into_iter().map(shown).collect()
}

fn view(
    parts: &Parts,
    dsource: Dsource,
    held: LedgerFigures,
    writers: &mut PositionWriters<'_>,
) -> Result<DsourceView, Failure> {
    let follower = parts.follower(dsource.id);
    let status = follower.as_ref().and_then(|follower| follower.status());
    let state = match (dsource.state, &dsource.problem, status.as_ref().map(|s| &s.state)) {
        (DsourceState::Linking, _, _) => FollowState::Linking,
        (DsourceState::Masked, _, _) => FollowState::Masked,
        (DsourceState::Replica, _, _) => FollowState::Replica,
        (DsourceState::Unlinking, _, _) => FollowState::Unlinking,
        (DsourceState::Paused, why, _) => FollowState::Paused(why.clone()),
        (DsourceState::Failed, Some(problem), _) => FollowState::Failed(problem.clone()),
        (_, _, Some(StreamState::Gap(failure))) => FollowState::Failed(failure.clone()),
        (_, _, Some(StreamState::Retrying(failure))) => FollowState::Disconnected(failure.clone()),
        (_, _, Some(_)) => FollowState::Syncing,
        (_, _, None) => FollowState::Failed(Failure::new(
            ErrorKind::WrongState,
            "it is not being followed",
            format!("resume it: offshoot dsource resume {}", dsource.name),
        )),
    };
    let synced_to = match &follower {
        Some(follower) => follower.indexed(),
        None => dsource.synced_to,
    };
    let writer = writers.of(dsource.id.into())?;
    let mut snapshots: Vec<Snapshot> = parts.catalog.list_of(dsource.id)?;
    snapshots.sort_by_key(|one| (one.position.log, one.id));
    let owner = dsource.id.into();
    let snapshots = snapshots::views(parts, owner, &dsource.name, snapshots, &writer)?;
    Ok(DsourceView {
        state,
        synced_to: synced_to.map(|position| writer.show(position)),
        lag_bytes: status.as_ref().and_then(|status| status.lag_bytes),
        clock_skew_ms: status.as_ref().and_then(|status| status.clock_skew_ms),
        lag_ms: status.and_then(|status| status.lag).map(|lag| lag.as_millis() as u64),
        logical_bytes: logical_bytes(&parts.store, dsource.staging_dataset)
            + logical_bytes(&parts.store, dsource.log_dataset),
        stored_bytes: held.stored_bytes(),
        snapshots,
        dsource,
    })
}

#[cfg(test)]
mod tests;
