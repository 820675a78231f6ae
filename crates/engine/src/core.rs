//! What every part of the engine works on.

use crate::damage::Damage;
use crate::exports::Exports;
use crate::follower::Follower;
use crate::host::Host;
use crate::ledger::Ledger;
use crate::paths::Paths;
use crate::servers::Servers;
use jiff::Timestamp;
use offshoot_catalog::{Catalog, Fault};
use offshoot_dataset::Store;
use offshoot_domain::{Dsource, Owner, Vdb};
use offshoot_os::Clock;
use offshoot_types::{DsourceId, ErrorKind, Failure, JobId, VdbId};
use offshoot_workflow::{Runner, StepContext, Submission};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a job of a user waits for one that the engine began by itself.
const OWN_JOBS_WAIT: Duration = Duration::from_secs(30);

/// What a step of a job sees.
pub type Context = StepContext<Core>;

/// The parts of the engine.
pub struct Core {
    pub paths: Paths,
    pub store: Arc<Store>,
    pub exports: Exports,
    pub catalog: Arc<Catalog>,
    pub host: Host,
    pub clock: Arc<dyn Clock>,
    pub servers: Servers,
    pub followers: Mutex<HashMap<DsourceId, Arc<Follower>>>,
    /// Objects whose retention is to be looked at soon, not only with the next regular look.
    pub retention_wanted: Mutex<HashSet<Owner>>,
    pub ledger: Ledger,
    pub damage: Damage,
    pub runner: OnceLock<Runner<Core>>,
    pub room: crate::room::Seen,
}

impl Core {
    /// The time of day.
    pub fn now(&self) -> Timestamp {
        Timestamp::try_from(self.clock.now()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Milliseconds of the engine's clock, for durations.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The runner of jobs.
    pub fn runner(&self) -> Result<&Runner<Core>, Failure> {
        self.runner.get().ok_or_else(|| Failure::internal("jobs before the engine is open"))
    }

    /// Starts a job. What the engine does by itself on the object is waited for: users need not know
    /// of it.
    pub fn submit(self: &Arc<Self>, submission: Submission) -> Result<JobId, Failure> {
        let deadline = self.clock.elapsed() + OWN_JOBS_WAIT;
        crate::room::make_way(&self.store);
        loop {
            match self.runner()?.submit(self, submission.clone()) {
                Err(busy) if busy.code == ErrorKind::Busy => {
                    let waiting = self.clock.elapsed() < deadline;
                    if !waiting || !crate::snapshots::any_by_itself(self)? {
                        return Err(busy);
                    }
                    self.clock.sleep(Duration::from_millis(20));
                }
                other => return other,
            }
        }
    }

    /// The follower of a dSource.
    pub fn follower(&self, id: DsourceId) -> Option<Arc<Follower>> {
        self.followers.lock().get(&id).cloned()
    }

    /// The follower of a dSource that must have one.
    pub fn need_follower(&self, dsource: &Dsource) -> Result<Arc<Follower>, Failure> {
        self.follower(dsource.id).ok_or_else(|| {
            Failure::new(
                ErrorKind::WrongState,
                format!("'{}' is not being followed", dsource.name),
                format!("see why: offshoot dsource show {}", dsource.name),
            )
        })
    }

    /// A dSource by name.
    pub fn dsource(&self, name: &str) -> Result<Dsource, Failure> {
        self.catalog
            .find_named(name)?
            .ok_or_else(|| missing("dSource", name, "list them: offshoot dsource list"))
    }

    /// A VDB by name.
    pub fn vdb(&self, name: &str) -> Result<Vdb, Failure> {
        self.catalog
            .find_named(name)?
            .ok_or_else(|| missing("VDB", name, "list them: offshoot vdb list"))
    }

    /// Records that something is wrong; logged when it is new.
    pub fn raise(&self, object: &str, topic: &str, failure: &Failure) {
        let fault = Fault {
            object: object.to_owned(),
            topic: topic.to_owned(),
            time: self.now(),
            message: failure.message.clone(),
            hint: failure.hint.clone(),
        };
        match self.catalog.raise_fault(&fault) {
            Ok(true) => tracing::error!(object, topic, message = fault.message, "fault"),
            Ok(false) => {}
            Err(error) => tracing::error!(object, topic, %error, "a fault could not be recorded"),
        }
    }

    /// Records that something is well again.
    pub fn clear(&self, object: &str, topic: &str) {
        if let Err(error) = self.catalog.clear_fault(object, topic) {
            tracing::error!(object, topic, %error, "a fault could not be cleared");
        }
    }
}

/// There is no object of that name.
pub fn missing(kind: &str, name: &str, hint: &str) -> Failure {
    let shown: String = name.chars().take(80).collect();
    Failure::new(ErrorKind::NotFound, format!("there is no {kind} named '{shown}'"), hint)
}

/// Key of a VDB's server.
pub fn vdb_key(id: VdbId) -> String {
    id.to_string()
}

/// Key of a dSource's staging server.
pub fn staging_key(id: DsourceId) -> String {
    format!("staging-{}", id.0)
}

/// Key of the server that a job runs for itself.
pub fn job_key(id: JobId) -> String {
    id.to_string()
}
