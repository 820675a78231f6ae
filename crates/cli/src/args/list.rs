//! What lists take.

use clap::Args;

/// What every list takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "List")]
pub struct ListArgs {
    /// Order by this column; with `-` before it, the largest or latest first
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Show so many at most
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Show these columns, in this order; with --json everything is shown
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,
}
