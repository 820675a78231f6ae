//! `offshoot mask …`

use super::{JobArgs, duration_ms};
use clap::{Args, Subcommand};
use offshoot_types::SnapshotId;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum MaskCommand {
    Apply(ApplyArgs),
    Check(CheckArgs),
    /// Show what is masked, with which rules, and how far a run is
    #[command(
        after_help = "Examples:\n  offshoot mask status\n  offshoot mask status shop-masked --json"
    )]
    Status {
        /// The name of a masked dSource; all of them without
        name: Option<String>,
    },
}

/// Make a masked dSource, or renew it: VDBs of it hold no value that the rules mask
///
/// Opens the latest moment of the dSource in a private server, masks it by the rules and keeps the result as an image
/// of the masked dSource. Nothing appears before all of it is masked. docs/masking.md describes rules and algorithms.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot mask apply masking.yaml --from shop --as shop-masked\n  \
                        offshoot mask apply masking.yaml --from shop --every 1d\n  \
                        offshoot vdb provision qa --from shop-masked"
)]
pub struct ApplyArgs {
    /// The file with the rules, in YAML
    #[arg(value_name = "RULES")]
    pub rules: PathBuf,
    /// The dSource to mask
    #[arg(long, value_name = "DSOURCE")]
    pub from: String,
    /// The name of the masked dSource [default: that of the dSource with -masked]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,
    /// Mask this snapshot instead of the latest moment
    #[arg(long, value_name = "ID")]
    pub snapshot: Option<SnapshotId>,
    /// Renew it so often, with the rules as they are now
    #[arg(long, value_name = "DURATION", value_parser = duration_ms)]
    pub every: Option<u64>,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Hold rules against a dSource, without masking anything
///
/// Fails when the rules cannot be applied; names what they do not meet, and columns that look as if they had to be
/// masked.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot mask check masking.yaml --from shop --strict")]
pub struct CheckArgs {
    /// The file with the rules, in YAML
    #[arg(value_name = "RULES")]
    pub rules: PathBuf,
    /// The dSource to hold them against
    #[arg(long, value_name = "DSOURCE")]
    pub from: String,
    /// Fail also when a rule meets nothing, or a column that looks sensitive has no rule
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub job: JobArgs,
}
