//! What the source is loaded with.

use crate::benchmarks::provision::start_load;
use crate::connection::runtime;
use crate::driver::{Felt, LoadPlan, drive};
use crate::order_entry::Mix;
use crate::record::Record;
use crate::stage::fill_source;
use anyhow::{Context, Result, ensure};
use offshoot_os::process::Child;
use offshoot_rig::Source;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// As fast as it goes.
const HEAVY: &[&str] = &["--client=8", "--jobs=2", "--time=100000", "--no-vacuum"];
/// Users of order entry.
const USERS: u32 = 8;
/// Order entry of this scale is as large as pgbench's data of scale 1.
const ORDERS_SCALE: f64 = 0.015;

/// What the source is loaded with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// pgbench: two clients, 100 transactions a second
    Steady,
    /// pgbench: eight clients, as many as the source takes
    Heavy,
    /// Order entry, the OLTP mix: eight users, as many as the source takes
    Orders,
}

/// A load that runs.
#[derive(Debug)]
pub enum Running {
    /// Until it is ended.
    Pgbench(Child),
    /// For its time.
    Orders(Runtime, JoinHandle<Result<Felt>>),
}

impl Load {
    /// The scale of pgbench's data that the source is made with.
    pub fn pgbench_scale(self, scale: u32) -> u32 {
        if self == Load::Orders { 0 } else { scale }
    }

    /// Fills a source with what it was not made with.
    ///
    /// # Errors
    /// What the server says.
    pub fn fill(self, source: &Source, scale: u32, seed: u64) -> Result<()> {
        if self == Load::Orders {
            fill_source(source, f64::from(scale) * ORDERS_SCALE, seed)?;
        }
        Ok(())
    }

    /// Begins it, for as long as it should last at least.
    ///
    /// # Errors
    /// What cannot be started.
    pub fn start(self, source: &Source, time: Duration, seed: u64) -> Result<Running> {
        Ok(match self {
            Load::Steady => Running::Pgbench(start_load(source)?),
            Load::Heavy => Running::Pgbench(source.pgbench(HEAVY).die_with_parent(true).spawn()?),
            Load::Orders => {
                let seconds = time.as_secs_f64().ceil() as u32;
                let plan = LoadPlan::closed_loop(Mix::Oltp, USERS, seconds, seed);
                let (runtime, uri) = (runtime()?, source.superuser_uri("postgres"));
                let users = runtime.spawn(async move { drive(&[uri], &plan).await });
                Running::Orders(runtime, users)
            }
        })
    }
}

impl Running {
    /// Ends it, at the end of its time.
    ///
    /// # Errors
    /// When it ended before.
    pub fn end(self, record: &mut Record) -> Result<()> {
        match self {
            Running::Pgbench(mut child) => {
                let ended = child.try_wait()?;
                ensure!(ended.is_none(), "pgbench has ended before its time: {ended:?}");
                child.kill_group();
            }
            Running::Orders(runtime, users) => {
                let felt = runtime.block_on(users).context("users of order entry")??;
                if let Some((text, _)) = felt.error_texts.iter().max_by_key(|(_, times)| **times) {
                    record.note(format!("{} transactions failed, as with: {text}", felt.errors));
                }
            }
        }
        Ok(())
    }

    /// Ends it at any time.
    pub fn abort(self) {
        match self {
            Running::Pgbench(mut child) => child.kill_group(),
            Running::Orders(runtime, _) => runtime.shutdown_background(),
        }
    }
}
