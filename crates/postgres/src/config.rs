//! Configuration of the servers the engine starts.
//!
//! A source's configuration is never trusted to start here: it may name files, libraries, addresses
//! and memory this host does not have, or archive into production's archive. So a base backup is
//! [`adopt`]ed once: what is worth keeping of the source's settings goes into
//! `offshoot.inherited.conf`, everything else is dropped, `postgresql.conf` becomes two includes
//! and `postgresql.auto.conf`, `pg_hba.conf` and `pg_ident.conf` are replaced. From then on each
//! purpose (staging, preparing an image, VDB) writes only `offshoot.conf`.
//!
//! Who wins, from weak to strong: inherited < `offshoot.conf` < `ALTER SYSTEM` of a VDB's own user
//! (`postgresql.auto.conf`) < the few settings that [`crate::server`] passes as arguments (address,
//! port, socket, access files, logging), which therefore nobody can break.

use std::collections::BTreeMap;
use std::path::Path;

use offshoot_os::process::User;
use offshoot_types::Failure;

use crate::control::Control;
use crate::data_dir::DataDir;

/// Setting names and values, as in `postgresql.conf`.
pub type Settings = BTreeMap<String, String>;

/// A query that reads the source's settings over SQL: rows of name and value, for [`adopt`]. Needed
/// where the source keeps its configuration outside of its data directory (Debian does).
pub const SOURCE_SETTINGS_SQL: &str = "SELECT name, setting FROM pg_catalog.pg_settings \
     WHERE source IN ('configuration file', 'command line', 'global')";

/// What [`adopt`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Adopted {
    /// Settings kept from the source.
    pub inherited: Settings,
    /// Settings dropped although they might matter to a user, each with the reason.
    pub dropped: Vec<(String, String)>,
}

/// Replaces the source's configuration in a fresh base backup by ours. Safe to repeat: an adopted
/// directory is left as it is. `from_source` are settings read by [`SOURCE_SETTINGS_SQL`] (may be
/// empty); they win over what the backup's own files say.
///
/// # Errors
/// `HostUnprepared` when the server program is missing; `Internal` when a file cannot be written.
pub fn adopt(
    dir: &dyn DataDir,
    bin_dir: &Path,
    user: Option<&User>,
    from_source: &Settings,
) -> Result<Adopted, Failure> {
    let _ = (dir, bin_dir, user, from_source);
    todo!()
}

/// Checks settings a user gives for a VDB: known to this version, valid, and not among those that
/// the engine keeps for itself.
///
/// # Errors
/// `InvalidInput` naming the setting, what is wrong with it and what may be done instead.
pub fn validate(bin_dir: &Path, user: Option<&User>, settings: &Settings) -> Result<(), Failure> {
    let _ = (bin_dir, user, settings);
    todo!()
}

/// How a VDB is to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VdbOptions {
    /// The user's own settings, validated by [`validate`].
    pub settings: Settings,
    /// Memory the VDB may use, in bytes; sizes `shared_buffers` and friends. `None`: small.
    pub memory_bytes: Option<u64>,
}

/// Writes `offshoot.conf` for a VDB into a ready image's clone and removes what must not be there
/// (signal files, a stale `postmaster.pid`). Access rules are [`crate::access::write_vdb`]'s.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub fn write_vdb(
    dir: &dyn DataDir,
    control: &Control,
    options: &VdbOptions,
) -> Result<(), Failure> {
    let _ = (dir, control, options);
    todo!()
}
