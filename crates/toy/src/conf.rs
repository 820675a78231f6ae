//! What a server is for: the file `toy.conf`, which the engine writes before each start.

use crate::journal::damaged;
use offshoot_connector::DataDir;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// The file.
pub(crate) const FILE: &str = "toy.conf";

/// What a server is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// Takes writes and serves users: a source, a VDB.
    #[default]
    Users,
    /// Takes writes of the engine; no connection goes out from it.
    Private,
    /// Replays what appears in its journal.
    Staging,
}

/// The file's content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Conf {
    #[serde(default)]
    pub(crate) purpose: Purpose,
    /// The engine's copy of a database, not one in production.
    #[serde(default)]
    pub(crate) copy: bool,
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
}

impl Conf {
    /// The file of a data directory; the defaults where it has none.
    ///
    /// # Errors
    /// `DataDamaged`.
    pub(crate) fn read(files: &dyn DataDir) -> Result<Conf, Failure> {
        match files.read(FILE) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| damaged(FILE, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Conf::default()),
            Err(error) => Err(damaged(FILE, error)),
        }
    }

    /// Replaces it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn write(&self, files: &dyn DataDir) -> Result<(), Failure> {
        let bytes = serde_json::to_vec(self).map_err(io::Error::other);
        bytes.and_then(|bytes| files.write_atomic(FILE, &bytes, 0o600)).map_err(|error| {
            Failure::internal(format!("cannot write {FILE}: {error}")).or_pool_full(&error)
        })
    }

    /// After how many bytes of journal a checkpoint is written.
    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        let wanted = self.settings.get(CHECKPOINT_BYTES).and_then(|text| text.parse().ok());
        wanted.unwrap_or(256 << 10)
    }

    /// Whether users may not write.
    pub(crate) fn read_only(&self) -> bool {
        self.settings.get(READ_ONLY).is_some_and(|text| text == "on")
    }
}

/// Bytes of journal between checkpoints.
const CHECKPOINT_BYTES: &str = "checkpoint_bytes";
/// `on`: users may not write.
const READ_ONLY: &str = "read_only";

/// Whether a server accepts these settings.
///
/// # Errors
/// `InvalidInput` naming the setting.
pub(crate) fn validate(settings: &BTreeMap<String, String>) -> Result<(), Failure> {
    for (name, value) in settings {
        let hint = match name.as_str() {
            CHECKPOINT_BYTES if value.parse::<u32>().is_ok() => continue,
            CHECKPOINT_BYTES => "give a number of bytes",
            READ_ONLY if matches!(value.as_str(), "on" | "off") => continue,
            READ_ONLY => "give on or off",
            _ => "the toy has the settings checkpoint_bytes and read_only",
        };
        let message = format!("the setting {name}={value} is not accepted");
        return Err(Failure::new(ErrorKind::InvalidInput, message, hint));
    }
    Ok(())
}
