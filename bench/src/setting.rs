//! What benchmarks have in common: arguments of all of them, and of those that fill a source.

use crate::stage::Stage;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// What the source is filled with.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct SourceData {
    /// Size of the order entry data in the source, about 1 GB each
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    scale: f64,
    /// Fill the source with pgbench's data of this scale, about 15 MB each, instead
    #[arg(long, value_name = "SCALE", conflicts_with = "scale")]
    pub pgbench: Option<u32>,
}

impl SourceData {
    /// pgbench's scale for [`Stage::start`]: 0 where there is none of its data.
    pub fn pgbench_scale(&self) -> u32 {
        self.pgbench.unwrap_or(0)
    }

    /// Fills the source with what [`Stage::start`] did not.
    ///
    /// # Errors
    /// What the server says.
    pub fn fill(&self, stage: &Stage, seed: u64) -> Result<()> {
        match self.pgbench {
            Some(_) => Ok(()),
            None => stage.fill(self.scale, seed).map(drop),
        }
    }
}

/// What every benchmark takes.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct Setting {
    /// Write result.json and report.html here [default: bench-results/NAME-TIME]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub out: Option<PathBuf>,
    /// Memory of the engine's shared block cache
    #[arg(long, value_name = "SIZE", default_value = "2GiB", help_heading = "Run")]
    pub cache_size: String,
    /// Memory from which servers read without asking, `--direct-size` of the engine [default: none]
    #[arg(long, value_name = "SIZE", help_heading = "Run")]
    pub direct_size: Option<String>,
    /// The binary whose engine is measured; by default this one
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub binary: Option<PathBuf>,
    /// Decides generated data and what users draw
    #[arg(long, value_name = "N", default_value_t = 7, help_heading = "Run")]
    pub seed: u64,
    /// Exit with 1 unless every goal was reached
    #[arg(long, help_heading = "Run")]
    pub require_goals: bool,
}
