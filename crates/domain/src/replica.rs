//! Copies of other engines' objects, and what is told of an object that is sent to another engine.

use crate::{ConnectorState, LogRange, ObjectName, Owner, Policy, Position, SentVdb, Snapshot};
use jiff::Timestamp;
use offshoot_types::{DsourceId, ErrorKind, Failure, SnapshotId, TimeflowId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of [`Manifest`].
const VERSION: u32 = 1;
/// The most engines that a copy has passed.
const VIA_MAX: usize = 8;

/// Where a replica comes from. Ids are those of the engine that it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replica {
    /// The replica.
    pub id: DsourceId,
    /// The engine, by the id of its pool.
    pub engine: String,
    /// What it is there.
    pub origin: Owner,
    /// As of when it is.
    pub as_of: Timestamp,
    /// Whether it was masked there.
    pub masked: bool,
    /// What it was sent as, if it came by a connection: [`Manifest::digest_of`].
    #[serde(default)]
    pub digest: Option<String>,
    /// Its snapshots: there, and here.
    pub snapshots: BTreeMap<SnapshotId, SnapshotId>,
    /// Its timeflows: there, and here.
    pub timeflows: BTreeMap<TimeflowId, TimeflowId>,
    /// Its policy there, which it gets here when it is taken over.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// Of a copy of a VDB: what the one gets that is made of it when it is taken over.
    #[serde(default)]
    pub vdb: Option<SentVdb>,
    /// The engines that it has passed on its way, from the one that it comes from to the one that has sent it here.
    #[serde(default)]
    pub via: Vec<Hop>,
}

/// An engine that a replica has passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The engine, by the id of its pool.
    pub engine: String,
    /// What the next one calls it.
    pub name: ObjectName,
}

impl Replica {
    /// Whether it comes from an engine, or has passed it: sent there, it would go round.
    pub fn has_passed(&self, engine: &str) -> bool {
        self.engine == engine || self.via.iter().any(|hop| hop.engine == engine)
    }
}

/// What is told of an object that is sent, in the words of the engine that it comes from, whoever sends it on: ids are
/// those of that one. What is local to its engine, and every secret, stays there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this record.
    pub version: u32,
    /// The engine it comes from, by the id of its pool.
    pub engine: String,
    /// When it was read.
    pub as_of: Timestamp,
    /// The object.
    pub dsource: SentDsource,
    /// Of a copy that is sent on, the engines that it had passed before it came to the one that sends it.
    #[serde(default)]
    pub via: Vec<Hop>,
    /// Of a copy, who sends it on, by the id of its pool.
    #[serde(default)]
    pub sender: Option<String>,
}

/// A dSource that is sent; or a VDB, of which what is ready is sent, as a dSource without log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentDsource {
    /// Its id there.
    pub id: Owner,
    /// Its name there.
    pub name: ObjectName,
    /// The kind of database.
    pub connector: String,
    /// The URI of its source, without a password.
    pub source: String,
    /// The source's version.
    pub server_version: String,
    /// The source's identity.
    pub identity: String,
    /// What the connector remembers about the source.
    pub connector_state: ConnectorState,
    /// When it was linked.
    pub created_at: Timestamp,
    /// Whether it is masked.
    pub masked: bool,
    /// Up to where its log opens.
    pub synced_to: Option<Position>,
    /// The current timeflow.
    pub timeflow: TimeflowId,
    /// All that can be opened.
    pub timeflows: Vec<SentTimeflow>,
    /// Its snapshots.
    pub snapshots: Vec<SentSnapshot>,
    /// Its bookmarks, as far as their snapshots are sent.
    #[serde(default)]
    pub bookmarks: Vec<SentBookmark>,
    /// How it is kept there, of a dSource.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// What its users chose, of a VDB.
    #[serde(default)]
    pub vdb: Option<SentVdb>,
}

/// A bookmark that is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentBookmark {
    /// Its name there.
    pub name: ObjectName,
    /// The snapshot that it names, by its id there.
    pub snapshot: SnapshotId,
    /// The point.
    pub position: Position,
    /// When it was set.
    pub created_at: Timestamp,
}

/// A timeflow that is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentTimeflow {
    /// Its id there.
    pub id: TimeflowId,
    /// The log.
    pub log: Vec<LogRange>,
    /// The state that holds it.
    pub state: Option<usize>,
    /// When it began.
    pub started_at: Timestamp,
    /// When another replaced it.
    pub ended_at: Option<Timestamp>,
}

/// A snapshot that is sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentSnapshot {
    /// Its record there.
    pub snapshot: Snapshot,
    /// The state as it was taken.
    pub taken: usize,
    /// The state that opens at once.
    pub ready: Option<usize>,
}

impl Manifest {
    /// What is told of a dSource.
    pub fn new(engine: String, as_of: Timestamp, dsource: SentDsource) -> Manifest {
        Manifest { version: VERSION, engine, as_of, dsource, via: Vec::new(), sender: None }
    }

    /// What is told of a copy by an engine that sends it on.
    pub fn of_copy(sender: String, replica: &Replica, dsource: SentDsource) -> Manifest {
        let Replica { engine, as_of, via, .. } = replica;
        let told = Manifest::new(engine.clone(), *as_of, dsource);
        Manifest { via: via.clone(), sender: Some(sender), ..told }
    }

    /// Who sends it.
    pub fn sender(&self) -> &str {
        self.sender.as_ref().unwrap_or(&self.engine)
    }

    /// The way that it has taken when it has come from its sender, which is called that here.
    pub fn way(&self, sender: &ObjectName) -> Vec<Hop> {
        let last = Hop { engine: self.sender().to_owned(), name: sender.clone() };
        self.via.iter().cloned().chain([last]).collect()
    }

    /// Reads what another engine has told, and believes nothing of it: each of `states` is claimed once, and nothing refers
    /// to what is not told.
    ///
    /// # Errors
    /// `InvalidInput`.
    pub fn read(bytes: &[u8], states: usize) -> Result<Manifest, Failure> {
        let manifest: Manifest =
            serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
        if manifest.version != VERSION {
            return Err(wrong(format!("it has version {}", manifest.version)));
        }
        let is_engine = |id: &str| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let passed = manifest.via.iter().map(|hop| &hop.engine).chain(&manifest.sender);
        if !passed.chain([&manifest.engine]).all(|id| is_engine(id)) {
            return Err(wrong("it names no engine"));
        }
        let is_copy = manifest.sender.is_some();
        if manifest.dsource.name.namespace().is_some() != is_copy
            || manifest.via.is_empty() == is_copy
        {
            return Err(wrong("it is a copy that does not say where it has been, or the opposite"));
        }
        if manifest.via.len() > VIA_MAX {
            return Err(wrong("it has passed too many engines"));
        }
        manifest.dsource.check(states)?;
        Ok(manifest)
    }
}

impl SentDsource {
    fn check(&self, states: usize) -> Result<(), Failure> {
        let logs = self.timeflows.iter().filter_map(|one| one.state);
        let images = self.snapshots.iter().flat_map(|one| [Some(one.taken), one.ready]);
        let claimed: Vec<usize> = logs.chain(images.flatten()).collect();
        let different: BTreeSet<usize> = claimed.iter().copied().collect();
        let all = different.len() == states && different.last().is_none_or(|last| *last < states);
        if !all || claimed.len() != states {
            return Err(wrong("its states are not claimed once each"));
        }
        let flows: BTreeSet<TimeflowId> = self.timeflows.iter().map(|one| one.id).collect();
        let ids: BTreeSet<SnapshotId> = self.snapshots.iter().map(|one| one.snapshot.id).collect();
        let lost = self.snapshots.iter().any(|one| !flows.contains(&one.snapshot.timeflow))
            || self.bookmarks.iter().any(|one| !ids.contains(&one.snapshot));
        if flows.len() != self.timeflows.len()
            || ids.len() != self.snapshots.len()
            || !flows.contains(&self.timeflow)
            || lost
        {
            return Err(wrong("its history does not fit together"));
        }
        self.policy.iter().try_for_each(|one| one.check(self.id))?;
        self.vdb.iter().try_for_each(|one| one.check(self.id))
    }
}

fn wrong(problem: impl std::fmt::Display) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("what the archive says of itself is not understood: {problem}"),
        "export it with the version of this engine, or upgrade this engine",
    )
}

#[cfg(test)]
mod tests;
