//! `offshoot mask …`

use super::{JobArgs, duration_ms};
use clap::{ArgGroup, Args, Subcommand};
use offshoot_types::SnapshotId;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum MaskCommand {
    Init(InitArgs),
    /// Print the JSON schema of rulesets, for editors and checks in a repository
    #[command(after_help = "Examples:\n  offshoot mask schema > masking.schema.json\n  \
                            # first line of masking.yaml, for editors:\n  \
                            # yaml-language-server: $schema=masking.schema.json")]
    Schema,
    Discover(DiscoverArgs),
    Check(CheckArgs),
    Preview(PreviewArgs),
    Apply(ApplyArgs),
    Report(ReportArgs),
    /// Show the keys that values are masked with, and make new ones
    #[command(
        subcommand,
        after_help = "Examples:\n  offshoot mask key list\n  offshoot mask key rotate main"
    )]
    Key(KeyCommand),
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
/// of the masked dSource. Nothing appears before all of it is masked. A masked dSource that is there is renewed: only what
/// has changed since its last image is masked, where rules and schema are the same. docs/masking.md describes rules and algorithms.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  offshoot mask apply masking.yaml --from shop --as shop-masked\n  \
                        offshoot mask apply masking.yaml --from shop --every 1d\n  \
                        offshoot vdb provision qa --from shop-masked"
)]
pub struct ApplyArgs {
    /// The file with the rules, in YAML, JSON or TOML
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
    /// Mask everything, although only what has changed since the last image may have to be masked
    #[arg(long)]
    pub full: bool,
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
    /// The file with the rules, in YAML, JSON or TOML
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

/// Write a ruleset to begin with, with comments
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  offshoot mask init masking.yaml")]
pub struct InitArgs {
    /// The file to write
    #[arg(value_name = "FILE", default_value = "masking.yaml")]
    pub file: PathBuf,
    /// Overwrite a file that is there
    #[arg(long)]
    pub force: bool,
}

/// Look for columns that should be masked, and write rules for them to be reviewed
///
/// Looks at the names of columns, then at some of their values, in a private server on the latest moment. No value leaves
/// the engine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  offshoot mask discover shop --out masking.yaml\n  \
                        offshoot mask discover shop --json")]
pub struct DiscoverArgs {
    /// The dSource to look through
    #[arg(value_name = "DSOURCE")]
    pub from: String,
    /// Write the rules into this file, which must not be there, instead of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Look at about so many values of each column; 0: at names alone
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub sample: u32,
    #[command(flatten)]
    pub job: JobArgs,
}

/// Show what rules make of some rows of a table
///
/// Shows only columns that the rules mask, and only their masks. Nothing of it is kept.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  offshoot mask preview masking.yaml --from shop --table public.customers"
)]
pub struct PreviewArgs {
    /// The file with the rules, in YAML, JSON or TOML
    #[arg(value_name = "RULES")]
    pub rules: PathBuf,
    /// The dSource that the rows are of
    #[arg(long, value_name = "DSOURCE")]
    pub from: String,
    /// The table
    #[arg(long, value_name = "TABLE")]
    pub table: String,
    /// How many rows
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rows: u32,
    /// Show the values of production beside their masks; for administrators
    #[arg(long)]
    pub show_originals: bool,
}

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Show the keys that masked dSources use; never a key itself
    #[command(after_help = "Example:\n  offshoot mask key list")]
    List,
    /// Make another key of a name, and forget the one before
    ///
    /// What is masked from then on has other masks: it does not join what was masked before, and tokens from before
    /// cannot be turned back. Masked images stay as they are until they are renewed. Rotate a key that somebody may have
    /// learned, and renew what was masked with it.
    #[command(after_help = "Example:\n  offshoot mask key rotate main --yes")]
    Rotate {
        /// The name that rules have for it
        name: String,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Show, save or check the signed report of a masked image
///
/// It tells what was masked with what, rows before and after, columns without a rule and who accepted them, what else
/// was removed, and how many rows share each combination of the quasi-identifiers that the rules name; counts alone,
/// never a value. Saved, it is a JSON document or a page that is signed with the engine's key: a report of which any
/// byte was changed is refused by --verify.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").args(["name", "verify", "public_key"]).required(true),
    after_help = "Examples:\n  offshoot mask report shop-masked\n  \
                  offshoot mask report shop-masked --output report.html\n  \
                  offshoot mask report shop-masked --json > report.json\n  \
                  offshoot mask report --verify report.html\n  \
                  offshoot mask report --public-key\n  \
                  offshoot mask report --verify report.html --key 3d40…"
)]
pub struct ReportArgs {
    /// The name of a masked dSource
    pub name: Option<String>,
    /// The report of this image of it instead of the newest
    #[arg(long, value_name = "ID", requires = "name")]
    pub snapshot: Option<SnapshotId>,
    /// Write a page instead of JSON
    #[arg(long, requires = "name", conflicts_with = "json")]
    pub html: bool,
    /// Save the signed report in this file: a page if its name ends in .html, else JSON
    #[arg(long, value_name = "FILE", requires = "name")]
    pub output: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Check a saved report, with the key of the engine
    #[arg(long, value_name = "FILE")]
    pub verify: Option<PathBuf>,
    /// Check it with this public key, without asking an engine
    #[arg(long, value_name = "KEY", requires = "verify")]
    pub key: Option<String>,
    /// Show the public key of the engine
    #[arg(long)]
    pub public_key: bool,
}
