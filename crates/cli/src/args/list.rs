//! What lists take.

use clap::Args;

/// What lists take.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "List")]
pub struct ListArgs {
    /// Order by this column; with `-` before it, the largest or latest first
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Show so many at most
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<usize>,
    /// Show these columns, in this order; with --json everything is shown
    #[arg(long, value_name = "COLUMN", value_delimiter = ',')]
    pub columns: Vec<String>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a number from 1 on".to_owned())
}
