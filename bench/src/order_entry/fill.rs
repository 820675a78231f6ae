//! Fills a database with order entry: `COPY` over several connections in parallel, then keys and
//! indexes.

use super::rows::Rows;
use super::schema::{INDEXES, TABLES, Table};
use super::sizes::Sizes;
use crate::connection::{self, Connection};
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures_util::SinkExt;
use offshoot_os::{Clock, SystemClock};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that a connection takes at a time.
const CHUNK_ROWS: u64 = 50_000;
/// Bytes handed to the server at a time.
const COPY_BYTES: usize = 128 << 10;

/// What to fill.
#[derive(Debug, Clone)]
pub struct FillPlan {
    /// The database, which must not have the tables yet.
    pub uri: String,
    /// 1 is about 1 GB.
    pub scale: f64,
    /// Decides the data.
    pub seed: u64,
    /// Connections that load at once.
    pub connections: u32,
}

/// What filling took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Filled {
    /// The scale.
    pub scale: f64,
    /// The seed.
    pub seed: u64,
    /// Row counts.
    pub sizes: Sizes,
    /// Bytes handed to `COPY`.
    pub copied_bytes: u64,
    /// Seconds of `COPY`.
    pub copy_seconds: f64,
    /// `copied_bytes` over `copy_seconds`, in units of 1,000,000.
    pub copy_mb_per_s: f64,
    /// Seconds for keys, indexes, statistics and the checkpoint.
    pub index_seconds: f64,
    /// What the database then takes.
    pub database_bytes: u64,
}

/// A stretch of one table.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    table: Table,
    first: u64,
    last: u64,
}

/// Fills a database.
///
/// # Errors
/// What the server says; what was written until then stays.
pub fn fill(plan: &FillPlan) -> Result<Filled> {
    let runtime = connection::runtime()?;
    runtime.block_on(fill_within(plan))
}

async fn fill_within(plan: &FillPlan) -> Result<Filled> {
    if !(plan.scale > 0.0 && plan.scale <= 10_000.0) {
        bail!("the scale {} is not between 0 and 10,000", plan.scale);
    }
    let clock = SystemClock;
    let sizes = Sizes::of_scale(plan.scale);
    let rows = Arc::new(Rows::new(plan.seed, sizes));
    let db = Connection::open(&plan.uri).await?;
    db.batch(TABLES).await.context("making the tables")?;

    let began = clock.elapsed();
    let chunks = Arc::new(Mutex::new(chunks(&rows)));
    let workers = (0..plan.connections.max(1)).map(|_| {
        tokio::spawn(copy_chunks(plan.uri.clone(), Arc::clone(&rows), Arc::clone(&chunks)))
    });
    let mut copied_bytes = 0;
    for worker in workers.collect::<Vec<_>>() {
        copied_bytes += worker.await.context("a loader ended")??;
    }
    let copy_seconds = (clock.elapsed() - began).as_secs_f64();

    let began = clock.elapsed();
    build_indexes(plan).await?;
    db.batch(&sequences(&sizes)).await?;
    db.batch(&metadata(plan)).await?;
    db.batch("VACUUM (ANALYZE, FREEZE)").await?;
    db.batch("CHECKPOINT").await?;
    let index_seconds = (clock.elapsed() - began).as_secs_f64();
    let database_bytes = db.number("SELECT pg_database_size(current_database())").await? as u64;
    Ok(Filled {
        scale: plan.scale,
        seed: plan.seed,
        sizes,
        copied_bytes,
        copy_seconds,
        copy_mb_per_s: copied_bytes as f64 / 1e6 / copy_seconds,
        index_seconds,
        database_bytes,
    })
}

fn chunks(rows: &Rows) -> VecDeque<Chunk> {
    let mut all = VecDeque::new();
    for table in Table::ALL {
        let count = rows.count(table);
        for first in (1..=count).step_by(CHUNK_ROWS as usize) {
            all.push_back(Chunk { table, first, last: (first + CHUNK_ROWS - 1).min(count) });
        }
    }
    all
}

/// Copies chunks until none is left; returns the bytes copied.
async fn copy_chunks(
    uri: String,
    rows: Arc<Rows>,
    chunks: Arc<Mutex<VecDeque<Chunk>>>,
) -> Result<u64> {
    let db = Connection::open(&uri).await?;
    let mut total = 0;
    loop {
        let next = chunks.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(chunk) = next else { return Ok(total) };
        let name = chunk.table.name();
        total += copy(&db, &rows, chunk).await.with_context(|| format!("loading {name}"))?;
    }
}

async fn copy(db: &Connection, rows: &Rows, chunk: Chunk) -> Result<u64> {
    let statement = format!("COPY {} FROM STDIN", chunk.table.name());
    let sink = db.client.copy_in::<_, Bytes>(&statement).await?;
    let mut sink = std::pin::pin!(sink);
    let (mut total, mut text) = (0, String::with_capacity(COPY_BYTES + 4_096));
    for number in chunk.first..=chunk.last {
        rows.push(chunk.table, number, &mut text);
        if text.len() >= COPY_BYTES || number == chunk.last {
            total += text.len() as u64;
            let full = std::mem::replace(&mut text, String::with_capacity(COPY_BYTES + 4_096));
            sink.send(Bytes::from(full)).await?;
        }
    }
    sink.finish().await?;
    Ok(total)
}

/// Builds keys and indexes over as many connections as loaded.
async fn build_indexes(plan: &FillPlan) -> Result<()> {
    let waiting = Arc::new(Mutex::new(INDEXES.iter().collect::<VecDeque<_>>()));
    let mut workers = Vec::new();
    for _ in 0..plan.connections.max(1) {
        let (uri, waiting) = (plan.uri.clone(), Arc::clone(&waiting));
        workers.push(tokio::spawn(async move {
            let db = Connection::open(&uri).await?;
            db.batch("SET maintenance_work_mem = '128MB'").await?;
            loop {
                let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                let Some(statement) = next else { return anyhow::Ok(()) };
                // Keys of one table wait for each other's lock; the server handles that.
                db.batch(statement).await.with_context(|| (*statement).to_owned())?;
            }
        }));
    }
    for worker in workers {
        worker.await.context("an index builder ended")??;
    }
    Ok(())
}

fn sequences(sizes: &Sizes) -> String {
    [
        ("customer_ids", sizes.customers),
        ("address_ids", sizes.addresses),
        ("card_ids", sizes.cards),
        ("order_ids", sizes.orders),
        ("logon_ids", sizes.logons),
    ]
    .iter()
    .map(|(name, last)| format!("SELECT setval('{name}', {last});"))
    .collect()
}

/// What a load needs to know about the data, written into the database itself.
fn metadata(plan: &FillPlan) -> String {
    let rows = [
        ("format", "1".to_owned()),
        ("scale", plan.scale.to_string()),
        ("seed", plan.seed.to_string()),
    ];
    let values: Vec<String> =
        rows.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
    format!("INSERT INTO metadata VALUES {}", values.join(", "))
}
