//! What databases and host did while a load ran: sampled once a second from outside.

use crate::connection::Connection;
use crate::driver::{Felt, LoadPlan, drive};
use crate::host::{CpuShares, DeviceWork, HostCounters};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What users' backends wait for at this moment; those that wait for nothing run.
const WAITS: &str = "SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU'), count(*) \
    FROM pg_stat_activity WHERE backend_type = 'client backend' AND state = 'active' \
    AND pid <> pg_backend_pid() AND application_name = 'offshoot-bench' GROUP BY 1";
/// Reads from the server's own cache and from outside, position of the log.
const COUNTERS: &str = "SELECT (SELECT sum(blks_hit) FROM pg_stat_database), \
    (SELECT sum(blks_read) FROM pg_stat_database), pg_current_wal_insert_lsn() - '0/0'::pg_lsn";
/// Checkpoints up to PostgreSQL 16 and from 17 on.
const CHECKPOINTS_16: &str = "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter";
const CHECKPOINTS_17: &str = "SELECT num_timed + num_requested FROM pg_stat_checkpointer";

/// What the databases did during a load, summed over all of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DatabaseWork {
    /// Checkpoints begun.
    pub checkpoints: u64,
    /// Bytes of log written.
    pub wal_bytes: u64,
    /// Blocks found in the servers' own caches.
    pub blocks_hit: u64,
    /// Blocks asked of the operating system.
    pub blocks_read: u64,
    /// `blocks_hit` of both; 1 where nothing was asked for.
    pub hit_ratio: f64,
    /// How many backends were seen waiting for what, summed over all samples; `CPU` waits for nothing.
    pub waits: BTreeMap<String, u64>,
}

/// One second of the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostSecond {
    /// How processors spent it.
    #[serde(flatten)]
    pub cpu: CpuShares,
    /// Reads of all devices.
    pub reads: u64,
    /// Writes of all devices.
    pub writes: u64,
}

/// A load and everything seen while it ran.
#[derive(Debug, Clone, Serialize)]
pub struct Observed {
    /// What users felt.
    pub load: Felt,
    /// What databases did.
    pub database: DatabaseWork,
    /// What devices did.
    pub devices: Vec<DeviceWork>,
    /// How processors spent the time.
    pub cpu: CpuShares,
    /// Second by second.
    pub host_seconds: Vec<HostSecond>,
}

/// A database's counters at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    hit: u64,
    read: u64,
    wal: u64,
    checkpoints: u64,
}

/// Runs a load and watches it.
///
/// # Errors
/// When users or watchers cannot connect.
pub async fn observe(uris: &[String], plan: &LoadPlan) -> Result<Observed> {
    let mut watchers = Vec::with_capacity(uris.len());
    let mut before = Vec::with_capacity(uris.len());
    for uri in uris {
        let watcher = Connection::open(uri).await?;
        before.push(Counters::of(&watcher).await?);
        watchers.push(watcher);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let sampling = tokio::spawn(sample(watchers, Arc::clone(&stop)));
    let host_before = HostCounters::now();
    let load = drive(uris, plan).await;
    let host_after = HostCounters::now();
    stop.store(true, Ordering::Release);
    let (watchers, waits, host_seconds) = sampling.await?;
    let mut database = DatabaseWork { waits, ..Default::default() };
    for (watcher, before) in watchers.iter().zip(before) {
        // A server that was restarted or is gone has begun to count from zero.
        let now = Counters::of(watcher).await.unwrap_or(before);
        database.checkpoints += now.checkpoints.saturating_sub(before.checkpoints);
        database.wal_bytes += now.wal.saturating_sub(before.wal);
        database.blocks_hit += now.hit.saturating_sub(before.hit);
        database.blocks_read += now.read.saturating_sub(before.read);
    }
    let asked = database.blocks_hit + database.blocks_read;
    database.hit_ratio = if asked == 0 { 1.0 } else { database.blocks_hit as f64 / asked as f64 };
    Ok(Observed {
        load: load?,
        database,
        devices: host_after.devices_since(&host_before),
        cpu: host_after.cpu_since(&host_before),
        host_seconds,
    })
}

type Samples = (Vec<Connection>, BTreeMap<String, u64>, Vec<HostSecond>);

async fn sample(watchers: Vec<Connection>, stop: Arc<AtomicBool>) -> Samples {
    let (mut waits, mut seconds) = (BTreeMap::new(), Vec::new());
    let mut before = HostCounters::now();
    let mut tick = tokio::time::interval(Duration::from_secs(1));
    tick.tick().await;
    while !stop.load(Ordering::Acquire) {
        for watcher in &watchers {
            // If a database does not answer, its users notice; nothing is sampled then.
            for row in watcher.rows(WAITS).await.unwrap_or_default() {
                let count: u64 = row.get(1).and_then(|n| n.parse().ok()).unwrap_or(0);
                *waits.entry(row[0].clone()).or_default() += count;
            }
        }
        tick.tick().await;
        let now = HostCounters::now();
        let devices = now.devices_since(&before);
        seconds.push(HostSecond {
            cpu: now.cpu_since(&before),
            reads: devices.iter().map(|device| device.reads).sum(),
            writes: devices.iter().map(|device| device.writes).sum(),
        });
        before = now;
    }
    (watchers, waits, seconds)
}

impl Counters {
    async fn of(db: &Connection) -> Result<Self> {
        let version = db.number("SHOW server_version_num").await?;
        let checkpoints = if version >= 170_000 { CHECKPOINTS_17 } else { CHECKPOINTS_16 };
        let row = db.rows(COUNTERS).await?.into_iter().next().unwrap_or_default();
        let number = |index: usize| -> u64 {
            row.get(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) as u64
        };
        Ok(Counters {
            hit: number(0),
            read: number(1),
            wal: number(2),
            checkpoints: db.number(checkpoints).await? as u64,
        })
    }
}
