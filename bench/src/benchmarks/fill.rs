//! Fills a database with order entry.

use crate::order_entry::{FillPlan, fill};
use anyhow::Result;

/// Fill a database with order entry: customers, orders, products, warehouses
///
/// The database must not have the tables. The data is the same for the same scale and seed.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Example:\n  offshoot bench fill \
                        --target postgresql://postgres@127.0.0.1:5432/shop --scale 0.1")]
pub struct Arguments {
    /// The database
    #[arg(long, value_name = "URI")]
    target: String,
    /// Size of the data, about 1 GB each
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    scale: f64,
    /// Decides the data
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Connections that load at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    connections: u32,
}

/// Fills and prints what that took.
pub fn run(arguments: &Arguments, json: bool) -> Result<bool> {
    let filled = fill(&FillPlan {
        uri: arguments.target.clone(),
        scale: arguments.scale,
        seed: arguments.seed,
        connections: arguments.connections,
    })?;
    if json {
        println!("{}", serde_json::to_string_pretty(&filled)?);
    } else {
        println!(
            "{:.1} MB copied in {:.1} s ({:.1} MB/s), indexes in {:.1} s, {:.1} MB in the database",
            filled.copied_bytes as f64 / 1e6,
            filled.copy_seconds,
            filled.copy_mb_per_s,
            filled.index_seconds,
            filled.database_bytes as f64 / 1e6
        );
    }
    Ok(true)
}
