//! `offshoot replication …`

use super::JobArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum ReplicationCommand {
    Export(ExportArgs),
    Import(ImportArgs),
}

/// Write dSources or VDBs as archives, to be kept or carried to another engine
///
/// An archive holds all snapshots and the received log, so that any commit can be opened from it; of a VDB, the snapshots that
/// are ready. Blocks are in it once,
/// compressed as in the pool; passwords that the engine keeps are not. Whoever can read it can read the database. It appears under its name only
/// when it is whole.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot replication export shop --output shop.offshoot\n  \
                        offshoot replication export shop orders --output /mnt/truck/")]
pub struct ExportArgs {
    /// The dSources or VDBs
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// The file to write; a directory, where each gets NAME.offshoot; or - for stdout
    #[arg(long, value_name = "FILE|DIR")]
    pub output: PathBuf,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Export from an encrypted pool, although archives are not encrypted
    #[arg(long)]
    pub plain: bool,
}

/// Take archives in: a dSource becomes PREFIX/NAME, read only, and VDBs are provisioned from it
///
/// An archive of a dSource that is here already renews it. Nothing of an archive appears before all of it is in the pool; of
/// one that is damaged or was cut off nothing stays.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot replication import shop.offshoot --as west\n  \
                        offshoot replication import /mnt/truck/\n  \
                        offshoot vdb provision dev --from west/shop --at '2026-11-21 14:03:27+00'")]
pub struct ImportArgs {
    /// The archive; a directory, of which all *.offshoot are taken in; or - for stdin
    #[arg(value_name = "FILE|DIR")]
    pub input: PathBuf,
    /// What names get before them
    #[arg(long = "as", value_name = "PREFIX", default_value = "imported")]
    pub namespace: String,
    #[command(flatten)]
    pub job: JobArgs,
}
