//! What is passed between engines.

use crate::core::kind::Kind;
use crate::jobs::replica;
use crate::parts::Parts;
use offshoot_dataset::HeldState;
use offshoot_domain::{
    Dsource, DsourceState, Manifest, ObjectName, Position, SentDsource, SentSnapshot, SentTimeflow,
    Snapshot, SnapshotKind, Timeflow,
};
use offshoot_replication::archive::{self, Archive, Tally};
use offshoot_types::{DatasetId, ErrorKind, Failure, JobId};
use std::io::{Read, Write};
use std::sync::Arc;

/// What to export.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// The name of the dSource.
    pub name: String,
    /// Whether the archive of an encrypted pool may be readable by whoever gets it.
    pub plain: bool,
}

/// A dSource as it was when it was asked for. Until it is dropped, all of it stays in the pool, whatever is deleted.
pub struct Export {
    manifest: Vec<u8>,
    states: Vec<HeldState>,
}

/// Replication, as a user works with it.
pub struct Replication<'a> {
    pub(super) parts: &'a Arc<Parts>,
}

impl Replication<'_> {
    /// Gets a dSource ready to be written as an archive.
    ///
    /// # Errors
    /// `NotFound`, `WrongState`; `Forbidden` if the pool is encrypted and the archive would not be.
    pub fn export(&self, request: &ExportRequest) -> Result<Export, Failure> {
        let dsource = self.parts.dsource(&request.name)?;
        check_state(&dsource)?;
        if self.parts.store.pool().seals().are_on() && !request.plain {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                "the pool is encrypted, and an archive of it would not be",
                "export it with --plain, and keep the archive where only those can read it who may",
            ));
        }
        let (sent, states) = Collected::of(self.parts, &dsource)?;
        let id = self.parts.store.pool().id();
        let engine: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let manifest = Manifest::new(engine, self.parts.now(), sent);
        let manifest = serde_json::to_vec(&manifest)
            .map_err(|error| Failure::internal(format!("a manifest cannot be written: {error}")))?;
        Ok(Export { manifest, states })
    }

    /// Takes an archive in; `namespace` is what its name gets before it. The job reads it to its end.
    ///
    /// # Errors
    /// As `Archive::open`, and those of the name.
    pub fn import(&self, archive: Box<dyn Read + Send>, namespace: &str) -> Result<JobId, Failure> {
        let namespace: ObjectName = namespace.parse()?;
        let archive = Archive::open(archive).map_err(|error| error.failure())?;
        replica::submit(self.parts, archive, &namespace)
    }
}

impl Export {
    /// Writes the archive. `out` is told of each block.
    ///
    /// # Errors
    /// Those of the pool and of `out`.
    pub fn write(self, out: &mut dyn Write) -> Result<Tally, Failure> {
        let written = archive::write(out, &self.manifest, &self.states, &mut |_| Ok(()));
        written.map_err(|error| error.failure())
    }
}

fn check_state(dsource: &Dsource) -> Result<(), Failure> {
    let hint = match dsource.state {
        DsourceState::Linking | DsourceState::Unlinking => "wait: offshoot job list",
        DsourceState::Replica => "export it on the engine that it comes from",
        _ => return Ok(()),
    };
    let message = format!("'{}' is {}", dsource.name, dsource.state.as_str());
    Err(Failure::new(ErrorKind::WrongState, message, hint))
}

/// What of a dSource is sent, with the states that hold it.
struct Collected<'a> {
    parts: &'a Parts,
    states: Vec<HeldState>,
}

impl Collected<'_> {
    fn of(parts: &Parts, dsource: &Dsource) -> Result<(SentDsource, Vec<HeldState>), Failure> {
        let timeflow = dsource.timeflow.ok_or_else(|| {
            let message = format!("'{}' has no snapshot yet", dsource.name);
            Failure::new(ErrorKind::WrongState, message, "wait: offshoot job list")
        })?;
        let kind = Kind::of_dsource(parts, dsource)?;
        // Asked before the log is looked at: the log reaches at least this far.
        let follower = parts.follower(dsource.id);
        let synced_to = follower.map_or(dsource.synced_to, |follower| follower.indexed());
        let mut collected = Collected { parts, states: Vec::new() };
        let snapshots = collected.snapshots(dsource)?;
        let timeflows = collected.timeflows(dsource, synced_to)?;
        let sent = SentDsource {
            id: dsource.id,
            name: dsource.name.clone(),
            connector: kind.connector.kind().to_owned(),
            source: dsource.source.clone(),
            server_version: dsource.server_version.clone(),
            identity: dsource.identity.clone(),
            connector_state: dsource.connector_state.clone(),
            created_at: dsource.created_at,
            masked: dsource.state == DsourceState::Masked,
            synced_to,
            timeflow,
            timeflows,
            snapshots,
        };
        Ok((sent, collected.states))
    }

    fn snapshots(&mut self, dsource: &Dsource) -> Result<Vec<SentSnapshot>, Failure> {
        let mut all: Vec<Snapshot> = self.parts.catalog.list_of(dsource.id)?;
        all.sort_by_key(|one| (one.position.log, one.id));
        // Those of bookmarks go with them, and bookmarks stay.
        all.retain(|one| one.kind != SnapshotKind::Bookmark && !one.is_failed());
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
        synced_to: Option<Position>,
    ) -> Result<Vec<SentTimeflow>, Failure> {
        let mut all: Vec<Timeflow> = self.parts.catalog.list_of(dsource.id)?;
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
