//! `offshoot secret …`

use super::JobArgs;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum SecretCommand {
    /// Show how many passwords the pool has, and which key they are sealed with
    #[command(after_help = "Example:\n  offshoot secret show")]
    Show,
    /// Make a new key and seal all passwords with it
    ///
    /// Nothing else changes: VDBs and sources keep their passwords. The old key stays where keys are kept, as copies of
    /// the pool from before need it.
    #[command(
        after_help = "Examples:\n  offshoot secret rotate\n  offshoot secret rotate --forget-old"
    )]
    Rotate(RotateArgs),
}

#[derive(Debug, Clone, Copy, Args)]
pub struct RotateArgs {
    /// Remove the old keys: the passwords in older copies of the pool can then not be read any more
    #[arg(long)]
    pub forget_old: bool,
    #[command(flatten)]
    pub job: JobArgs,
}
