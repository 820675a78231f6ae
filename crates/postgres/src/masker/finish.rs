//! The files of a masked copy, whose server was stopped cleanly: only what its server needs stays.

use crate::archive::WalFile;
use crate::base_backup::TABLESPACES_DIR;
use crate::rounds;
use offshoot_connector::DataDir;
use offshoot_types::{ErrorKind, Failure};
use std::io;

/// What a cluster consists of. A source may have had anything else in its data directory: logs, dumps, old settings.
const PARTS: [&str; 24] = [
    "PG_VERSION",
    "base",
    "global",
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_hba.conf",
    "pg_ident.conf",
    "pg_logical",
    "pg_multixact",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
    "pg_wal",
    "pg_xact",
    "postgresql.auto.conf",
    "postgresql.conf",
    // Ours.
    TABLESPACES_DIR,
    "offshoot.source_logins.json",
];

/// More of ours.
const SETTINGS: [&str; 2] = ["offshoot.conf", "offshoot.inherited.conf"];

/// Directories whose content no stopped server needs: statistics and texts of statements, slots, rows decoded from log,
/// snapshots, notes about log.
const EMPTIED: [&str; 9] = [
    "pg_dynshmem",
    "pg_logical/mappings",
    "pg_logical/snapshots",
    "pg_replslot",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_wal/archive_status",
    "pg_wal/summaries",
];

/// Where temporary files of queries are.
const TEMPORARY: &str = "base/pgsql_tmp";

/// Removes what could show an unmasked value. [`super::mask`] has made sure that the file of log with the last checkpoint
/// has nothing from before.
///
/// # Errors
/// `WrongState` if the server was not stopped cleanly, `DataDamaged` if the control file cannot be read, `Internal` when a
/// file cannot be removed.
pub fn finish(files: &dyn DataDir) -> Result<(), Failure> {
    let Some(last) = rounds::shut_down_at(files)? else {
        return Err(Failure::new(
            ErrorKind::WrongState,
            "the server of the masked copy was not stopped cleanly",
            "mask it again",
        ));
    };
    let failed = |error: io::Error| {
        Failure::internal(format!("the files of the masked copy cannot be cleaned: {error}"))
    };
    remove_log(files, &last).map_err(failed)?;
    remove_others(files).map_err(failed)
}

fn remove_log(files: &dyn DataDir, last: &rounds::ShutDown) -> io::Result<()> {
    let needed = last.position.0 / last.segment_bytes;
    for name in files.list("pg_wal")? {
        let keeps = match WalFile::parse(&name, last.segment_bytes) {
            Some(file) => !file.partial && file.timeline == last.timeline && file.number == needed,
            // They say which timeline began where.
            None => name.ends_with(".history") || matches!(&*name, "archive_status" | "summaries"),
        };
        if !keeps {
            files.remove_all(&format!("pg_wal/{name}"))?;
        }
    }
    Ok(())
}

fn remove_others(files: &dyn DataDir) -> io::Result<()> {
    for name in files.list("")? {
        if !PARTS.contains(&&*name) && !SETTINGS.contains(&&*name) {
            files.remove_all(&name)?;
        }
    }
    for directory in EMPTIED {
        let names = match files.list(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names?,
        };
        for name in names {
            files.remove_all(&format!("{directory}/{name}"))?;
        }
    }
    files.remove_all(TEMPORARY)
}
