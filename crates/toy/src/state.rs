//! What a database holds, and its checkpoint on disk.
//!
//! ```text
//! state: "toystate" · length u32 · checksum of the rest u32 · JSON
//! ```

use crate::journal::{BEGIN, damaged};
use crate::record::{Kind, Record};
use offshoot_connector::DataDir;
use offshoot_os::random_bytes;
use offshoot_types::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The version of the database that this crate implements.
pub const VERSION: &str = "1.0";
/// The file of the last checkpoint.
pub(crate) const FILE: &str = "state";
/// The directory of the journal.
pub(crate) const JOURNAL: &str = "journal";
const MAGIC: &[u8; 8] = b"toystate";
const HEADER_BYTES: usize = 16;

/// The state that the journal up to a position produces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Identifies the database and all its copies.
    pub(crate) identity: String,
    pub(crate) version: String,
    /// Where the next record begins.
    pub(crate) position: u64,
    /// Where the last one begins; 0 before the first.
    pub(crate) previous: u64,
    /// The number of the last commit.
    pub(crate) number: u64,
    pub(crate) last_time_us: Option<i64>,
    /// A copy that accepted writes of its own: no log of its source can be replayed any more.
    pub(crate) diverged: bool,
    pub(crate) data: BTreeMap<String, String>,
    pub(crate) logins: BTreeMap<String, String>,
    pub(crate) settings: BTreeMap<String, String>,
}

impl State {
    /// Applies a record that ends at `end`.
    pub(crate) fn apply(&mut self, record: &Record, end: u64) {
        let map = match record.kind {
            Kind::Data => &mut self.data,
            Kind::Login => &mut self.logins,
            Kind::Setting => &mut self.settings,
        };
        if record.value.is_empty() && record.kind != Kind::Data {
            map.remove(&record.key);
        } else {
            map.insert(record.key.clone(), record.value.clone());
        }
        self.previous = self.position;
        self.position = end;
        self.number = record.number;
        self.last_time_us = Some(record.time_us);
    }

    /// Its bytes as in a file.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let body = serde_json::to_vec(self).map_err(io::Error::other)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        Ok(bytes)
    }

    /// Reads the bytes of a file; the error says why they are invalid.
    pub(crate) fn decode(bytes: &[u8]) -> Result<State, &'static str> {
        let (header, body) = bytes.split_at_checked(HEADER_BYTES).ok_or("it is too short")?;
        let number = |at: usize| {
            let field = header.get(at..at + 4).and_then(|field| field.try_into().ok());
            field.map(u32::from_le_bytes)
        };
        if !header.starts_with(MAGIC) {
            return Err("it does not begin as a checkpoint does");
        }
        if number(8).is_none_or(|length| length as usize != body.len()) {
            return Err("it has another length than it says");
        }
        if number(12) != Some(crc32c::crc32c(body)) {
            return Err("its checksum is wrong");
        }
        serde_json::from_slice(body).map_err(|_| "it is of another version of the toy")
    }

    /// The checkpoint of a data directory.
    ///
    /// # Errors
    /// `DataDamaged`.
    pub(crate) fn read(files: &dyn DataDir) -> Result<State, Failure> {
        let bytes = files.read(FILE).map_err(|error| damaged(FILE, error))?;
        State::decode(&bytes).map_err(|why| damaged(FILE, why))
    }

    /// Whether a login accepts a secret.
    pub(crate) fn admits(&self, name: &str, secret: &str) -> bool {
        self.logins.get(name) == Some(&login_value(secret))
    }
}

/// What is stored for an enabled login; `cut:` precedes that of one that was disabled with the
/// ties.
pub(crate) fn login_value(secret: &str) -> String {
    format!("on:{:08x}", crc32c::crc32c(secret.as_bytes()))
}

/// Makes a new, empty database in an empty directory, with one login.
///
/// # Errors
/// File system errors.
pub fn create(data_dir: &Path, login: &str, secret: &str) -> io::Result<()> {
    create_of_version(data_dir, login, secret, VERSION)
}

/// The same with another version of the database, which the connector may not know.
///
/// # Errors
/// As [`create`].
pub fn create_of_version(
    data_dir: &Path,
    login: &str,
    secret: &str,
    version: &str,
) -> io::Result<()> {
    std::fs::create_dir_all(data_dir.join(JOURNAL))?;
    let mut state = State {
        identity: format!("{:016x}", u64::from_le_bytes(random_bytes())),
        version: version.to_owned(),
        position: BEGIN,
        ..State::default()
    };
    state.logins.insert(login.to_owned(), login_value(secret));
    std::fs::write(data_dir.join(FILE), state.encode()?)
}
