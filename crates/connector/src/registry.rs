//! The kinds of databases that an engine knows.

use crate::Connector;
use offshoot_types::{ErrorKind, Failure};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The kinds of databases that an engine knows. Made where the engine is wired together.
#[derive(Clone)]
pub struct Registry {
    kinds: Vec<Arc<dyn Connector>>,
}

impl Registry {
    /// The kinds. The first is the one that records of the first releases mean, which name none.
    pub fn new(kinds: Vec<Arc<dyn Connector>>) -> Registry {
        assert!(!kinds.is_empty(), "an engine knows at least one kind of database");
        Registry { kinds }
    }

    /// The kind of that name; the first if the name is empty.
    ///
    /// # Errors
    /// `InvalidInput` that names the kinds there are.
    pub fn find(&self, kind: &str) -> Result<&Arc<dyn Connector>, Failure> {
        let found = self.kinds.iter().find(|one| kind.is_empty() || one.kind() == kind);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.kinds.iter().map(|one| one.kind()).collect();
            Failure::new(
                ErrorKind::InvalidInput,
                format!("there is no connector '{kind}'"),
                format!("use --connector {}", known.join(" or --connector ")),
            )
        })
    }

    /// All kinds.
    pub fn all(&self) -> &[Arc<dyn Connector>] {
        &self.kinds
    }

    /// Stops whatever server an earlier engine left in a runtime directory, of whichever kind it is.
    ///
    /// # Errors
    /// If it does not end even when killed.
    pub fn stop_leftover(&self, runtime_dir: &Path, deadline: Duration) -> Result<(), Failure> {
        self.kinds.iter().try_for_each(|kind| kind.stop_leftover(runtime_dir, deadline))
    }
}
