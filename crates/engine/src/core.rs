//! What every part of the engine stands on: the store, the catalog, the clock, the kinds of databases. It
//! holds no part's own state.

pub mod certificate;
pub mod encryption;
pub mod hooks;
pub mod job_kind;
pub mod keys;
pub mod kind;
pub mod peers;
pub mod secret_keys;
pub mod topic;
pub mod topology;
pub mod traces;
pub mod webhooks;

use crate::ground::network::Network;
use crate::ground::paths::Paths;
use crate::ground::poster::Poster;
use jiff::Timestamp;
use offshoot_catalog::{Catalog, Fault, Subject};
use offshoot_connector::Registry;
use offshoot_dataset::Store;
use offshoot_domain::{Dsource, ObjectName, Vdb};
use offshoot_os::Clock;
use offshoot_types::{ErrorKind, Failure, SnapshotId};
use secret_keys::KeyPlaces;
use std::sync::Arc;
use topic::Topic;

/// What every part of the engine stands on.
pub struct Core {
    pub paths: Paths,
    pub store: Arc<Store>,
    pub catalog: Arc<Catalog>,
    /// Where the keys of its secrets are kept.
    pub key_places: KeyPlaces,
    pub clock: Arc<dyn Clock>,
    /// The kinds of databases there are.
    pub connectors: Registry,
    /// The way to other engines.
    pub network: Arc<dyn Network>,
    /// The way to those who are told of events.
    pub poster: Arc<dyn Poster>,
    /// Where traces of jobs are sent; none: nowhere.
    pub collector: Option<String>,
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

    /// A VDB by name or id. No name looks like an id, and no id is given twice: whoever has checked whose VDB it is goes
    /// on by its id, as another one may get the name.
    pub fn vdb(&self, name: &str) -> Result<Vdb, Failure> {
        let found = match name.parse() {
            Ok(id) => self.catalog.find::<Vdb>(id)?,
            Err(_) => self.catalog.find_named(name)?,
        };
        found.ok_or_else(|| missing("VDB", name, "list them: offshoot vdb list"))
    }

    /// Deletes a snapshot of the store; one that is gone is no error.
    pub fn delete_image(&self, image: SnapshotId) -> Result<(), Failure> {
        match self.store.delete_snapshot(image) {
            Ok(()) | Err(offshoot_dataset::Error::NoSnapshot(_)) => Ok(()),
            Err(error) => Err(error.failure()),
        }
    }

    /// Records that something is wrong; logs it if it is new.
    pub fn raise(&self, subject: impl Into<Subject>, topic: Topic<'_>, failure: &Failure) {
        let (subject, topic) = (subject.into(), topic.to_string());
        let (time, message, hint) = (self.now(), failure.message.clone(), failure.hint.clone());
        let fault = Fault { subject, topic, time, message, hint };
        let Fault { subject, topic, message, .. } = &fault;
        match self.catalog.raise_fault(&fault) {
            Ok(true) => tracing::error!(%subject, topic, message, "fault"),
            Ok(false) => {}
            Err(error) => tracing::error!(%subject, topic, %error, "a fault could not be recorded"),
        }
    }

    /// Records that something is well again.
    pub fn clear(&self, subject: impl Into<Subject>, topic: Topic<'_>) {
        self.clear_stored(&subject.into(), &topic.to_string());
    }

    /// The same of a fault that the catalog has shown.
    pub fn clear_stored(&self, subject: &Subject, topic: &str) {
        if let Err(error) = self.catalog.clear_fault(subject, topic, self.now()) {
            tracing::error!(%subject, topic, %error, "a fault could not be cleared");
        }
    }

    /// What is wrong with an object is wrong with it under its new name.
    ///
    /// # Errors
    /// The catalog's.
    pub fn move_faults(&self, from: &Subject, to: &ObjectName) -> Result<(), Failure> {
        let to = Subject::from(to);
        for fault in self.catalog.faults()?.into_iter().filter(|fault| fault.subject == *from) {
            self.catalog.raise_fault(&Fault { subject: to.clone(), ..fault })?;
        }
        self.clear_all(from.clone())
    }

    /// Forgets everything that was wrong with an object.
    ///
    /// # Errors
    /// The catalog's.
    pub fn clear_all(&self, subject: impl Into<Subject>) -> Result<(), Failure> {
        Ok(self.catalog.clear_faults(&subject.into(), self.now())?)
    }
}

/// As hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// There is no object of that name.
pub fn missing(kind: &str, name: &str, hint: &str) -> Failure {
    let shown: String = name.chars().take(80).collect();
    Failure::new(ErrorKind::NotFound, format!("there is no {kind} named '{shown}'"), hint)
}
