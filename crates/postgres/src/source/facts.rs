//! What a source says about itself.

use crate::lsn::Lsn;
use jiff::Timestamp;
use offshoot_types::{ErrorKind, Failure};
use serde::{Deserialize, Serialize};
use std::time::Duration;

use super::session::{Session, TextRow};

/// A tablespace outside the source's data directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceTablespace {
    /// Its object id, the name of its link in `pg_tblspc`.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Its directory on the source's host.
    pub location: String,
}

/// What a source reports about itself; may be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFacts {
    /// Identifies the cluster: the same on all its standbys, different for every other cluster.
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
    /// Whether the server archives its log; a base backup then includes the log.
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

/// How long the facts may take: sizes are summed file by file.
const FACTS_TIMEOUT: Duration = Duration::from_secs(60);

/// What distinguishes one cluster, and one primary of it, from another.
const IDENTITY: &str = "
    SELECT (SELECT system_identifier FROM pg_catalog.pg_control_system()),
           CASE WHEN pg_catalog.pg_is_in_recovery()
                THEN (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint())::text
                ELSE 'x' || pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) END";

const FACTS: &str = "
    SELECT pg_catalog.current_setting('server_version_num'),
           pg_catalog.current_setting('server_version'),
           (SELECT coalesce(pg_catalog.sum(pg_catalog.pg_database_size(oid)), 0)::bigint FROM pg_catalog.pg_database
             WHERE datallowconn AND pg_catalog.has_database_privilege(oid, 'CONNECT')),
           pg_catalog.current_setting('data_checksums'),
           (SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'),
           pg_catalog.current_setting('archive_mode'),
           pg_catalog.pg_is_in_recovery(),
           CASE WHEN pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_last_wal_replay_lsn()
                ELSE pg_catalog.pg_current_wal_flush_lsn() END,
           pg_catalog.to_char(pg_catalog.clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')";

const TABLESPACES: &str = "
    SELECT oid, spcname, pg_catalog.pg_tablespace_location(oid) FROM pg_catalog.pg_tablespace
     WHERE pg_catalog.pg_tablespace_location(oid) LIKE '/%' ORDER BY oid";

/// Reads the facts of a server of a supported version.
///
/// # Errors
/// `SourceUnreachable` or `SourceRefused`.
pub fn read_facts(session: &Session) -> Result<SourceFacts, Failure> {
    let tablespaces = session
        .rows(TABLESPACES)?
        .into_iter()
        .map(|row| {
            let mut values = Values::new(row);
            Ok(SourceTablespace {
                oid: values.parse("oid")?,
                name: values.text("name")?,
                location: values.text("location")?,
            })
        })
        .collect::<Result<_, Failure>>()?;
    let (system_identifier, timeline) = read_identity(session)?;
    let row = session.rows_within(FACTS, FACTS_TIMEOUT)?.into_iter().next().unwrap_or_default();
    let mut values = Values::new(row);
    let major = values.parse::<u32>("version")? / 10_000;
    Ok(SourceFacts {
        system_identifier,
        major,
        version: values.text("version")?,
        size_bytes: values.parse("size")?,
        tablespaces,
        data_checksums: values.text("data_checksums")? == "on",
        wal_segment_bytes: values.parse("wal_segment_size")?,
        archiving: values.text("archive_mode")? != "off",
        in_recovery: values.text("recovery state")? == "t",
        timeline,
        flushed: values.parse("log position")?,
        clock: values.parse("clock")?,
    })
}

/// Reads the system identifier and the timeline; much quicker than all facts.
pub(crate) fn read_identity(session: &Session) -> Result<(u64, u32), Failure> {
    let mut values = Values::new(session.row(IDENTITY)?);
    // The server prints the identifier as a signed number.
    let system_identifier = values.parse::<i64>("system identifier")?.cast_unsigned();
    Ok((system_identifier, parse_timeline(&values.text("timeline")?)?))
}

/// A timeline as `xHHHHHHHH` (from a WAL file name) or as a decimal number.
fn parse_timeline(text: &str) -> Result<u32, Failure> {
    let parsed = match text.strip_prefix('x') {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| unexpected("timeline", text))
}

/// The values of a row, taken one after the other.
pub(super) struct Values(std::vec::IntoIter<Option<String>>);

impl Values {
    pub(super) fn new(row: TextRow) -> Self {
        Values(row.into_iter())
    }

    /// The next value; NULL is an error, and so is what could pass for a terminal's commands.
    pub(super) fn text(&mut self, what: &str) -> Result<String, Failure> {
        let text = self.0.next().flatten().ok_or_else(|| unexpected(what, "nothing"))?;
        if text.contains(char::is_control) { Err(unexpected(what, &text)) } else { Ok(text) }
    }

    /// The next value, parsed.
    pub(super) fn parse<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, Failure> {
        let text = self.text(what)?;
        text.parse().map_err(|_| unexpected(what, &text))
    }
}

fn unexpected(what: &str, text: &str) -> Failure {
    Failure::new(ErrorKind::SourceRefused, format!("the source says '{text}' as its {what}"), "")
}
