//! What every part of the engine stands on: the store, the catalog, the clock, the kinds of databases. No
//! state of a part is here.

pub mod keys;
pub mod kind;

use crate::ground::paths::Paths;
use jiff::Timestamp;
use offshoot_catalog::{Catalog, Fault};
use offshoot_connector::Registry;
use offshoot_dataset::Store;
use offshoot_domain::{Dsource, Vdb};
use offshoot_os::Clock;
use offshoot_types::{ErrorKind, Failure, SnapshotId};
use std::sync::Arc;

/// What every part of the engine stands on.
pub struct Core {
    pub paths: Paths,
    pub store: Arc<Store>,
    pub catalog: Arc<Catalog>,
    pub clock: Arc<dyn Clock>,
    /// The kinds of databases there are.
    pub connectors: Registry,
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

    /// Deletes a snapshot of the store; one that is gone is no error.
    pub fn delete_image(&self, image: SnapshotId) -> Result<(), Failure> {
        match self.store.delete_snapshot(image) {
            Ok(()) | Err(offshoot_dataset::Error::NoSnapshot(_)) => Ok(()),
            Err(error) => Err(error.failure()),
        }
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
