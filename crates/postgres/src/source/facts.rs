//! What a source says about itself.

use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure, Lsn};
use serde::{Deserialize, Serialize};

use super::Session;

/// A tablespace that lies outside the source's data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTablespace {
    /// Its object id, the name of its link in `pg_tblspc`.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Its directory on the source's host.
    pub location: String,
}

/// What a source says about itself; may be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFacts {
    /// Names the cluster: the same on all its standbys, different for every other cluster.
    pub system_identifier: u64,
    /// The major version, as 15.
    pub major: u32,
    /// The version as the server prints it, as `15.14 (Debian 15.14-0+deb12u1)`.
    pub version: String,
    /// The size of all databases that this role may see, in bytes.
    pub size_bytes: u64,
    /// Tablespaces outside the data directory.
    pub tablespaces: Vec<SourceTablespace>,
    /// Whether pages carry checksums.
    pub data_checksums: bool,
    /// The size of a WAL file in bytes.
    pub wal_segment_bytes: u64,
    /// Whether the server archives its log; a base backup then takes the log along.
    pub archiving: bool,
    /// Whether the source is itself a standby.
    pub in_recovery: bool,
    /// The current timeline.
    pub timeline: u32,
    /// How far the source's log is durable.
    pub flushed: Lsn,
    /// The source's clock.
    pub clock: Timestamp,
}

/// Reads the facts.
///
/// # Errors
/// `SourceUnreachable` or `SourceRefused`.
pub fn read_facts(session: &Session) -> Result<SourceFacts, Failure> {
    todo!()
}
