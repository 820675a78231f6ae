//! Order entry as pgbench scripts.

use crate::order_entry::{Mix, Sizes, pgbench_arguments, write_scripts};
use anyhow::Result;
use std::path::PathBuf;

/// Write order entry as pgbench scripts, and print how pgbench is called with them
#[derive(Debug, Clone, clap::Args)]
#[command(
    after_help = "Example:\n  offshoot bench scripts --into order-entry --scale 0.1 --mix read"
)]
pub struct Arguments {
    /// Write the scripts here
    #[arg(long, value_name = "DIR")]
    into: PathBuf,
    /// The scale that the database was filled with
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    scale: f64,
    /// What is done and how often
    #[arg(long, value_enum, default_value_t = Mix::Oltp)]
    mix: Mix,
}

/// Writes the scripts and prints pgbench's arguments.
pub fn run(arguments: &Arguments, json: bool) -> Result<bool> {
    write_scripts(&arguments.into)?;
    let sizes = Sizes::of_scale(arguments.scale);
    let words = pgbench_arguments(arguments.mix, &sizes, &arguments.into);
    if json {
        println!("{}", serde_json::json!({ "arguments": words }));
    } else {
        println!("pgbench --client=10 --time=60 {} URI", words.join(" "));
    }
    Ok(true)
}
