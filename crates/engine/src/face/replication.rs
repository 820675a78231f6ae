//! What is passed between engines.

use crate::history::names;
use crate::jobs::replica::{self, collected};
use crate::parts::Parts;
use offshoot_dataset::HeldState;
use offshoot_domain::ObjectName;
use offshoot_replication::archive::{self, Archive, Tally};
use offshoot_types::{ErrorKind, Failure, JobId};
use std::io::{Read, Write};
use std::sync::Arc;

/// What to export.
#[derive(Debug, Clone, Default)]
pub struct ExportRequest {
    /// The name of the dSource or VDB.
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
    /// Gets a dSource, or what is ready of a VDB, ready to be written as an archive.
    ///
    /// # Errors
    /// `NotFound`, `WrongState`; `Forbidden` if the pool is encrypted and the archive would not be.
    pub fn export(&self, request: &ExportRequest) -> Result<Export, Failure> {
        let owner = names::find(self.parts, &request.name)?;
        if self.parts.store.pool().seals().are_on() && !request.plain {
            return Err(Failure::new(
                ErrorKind::Forbidden,
                "the pool is encrypted, and an archive of it would not be",
                "export it with --plain, and keep the archive where only those can read it who may",
            ));
        }
        let (manifest, states) = collected::collect(self.parts, owner)?;
        let manifest = serde_json::to_vec(&manifest)
            .map_err(|error| Failure::internal(format!("a manifest cannot be written: {error}")))?;
        Ok(Export { manifest, states })
    }

    /// Takes an archive in; `namespace` is what its name gets before it, `bytes` how long it is, if that is known. The job
    /// reads it to its end.
    ///
    /// # Errors
    /// As `Archive::open`, those of the name, and `PoolFull` where it is known that there is no room for it.
    pub fn import(
        &self,
        archive: Box<dyn Read + Send>,
        namespace: &str,
        bytes: Option<u64>,
    ) -> Result<JobId, Failure> {
        let namespace: ObjectName = namespace.parse()?;
        let archive = Archive::open(archive).map_err(|error| error.failure())?;
        replica::submit(self.parts, archive, &namespace, bytes)
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
