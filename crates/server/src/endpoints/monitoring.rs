//! What monitoring asks: whether the engine answers, and its figures in the OpenMetrics text format, which Prometheus
//! reads (<https://prometheus.io/docs/specs/om/open_metrics_spec/>). Names follow its conventions: base units, the unit
//! last, counters end with `_total`.

mod histograms;

use crate::access::Caller;
use crate::endpoints::{App, Service};
use crate::reply::{Refusal, ask};
use crate::service::latencies::{FileLatencies, Latencies, StoreLatencies};
use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use histograms::Histograms;
use offshoot_api::{Dsource, DsourceState, ObjectKind, Replication, Status, Vdb, VdbState};
use offshoot_types::Failure;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::AtomicU64;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Figure = Gauge<f64, AtomicU64>;
type Labels = Vec<(&'static str, String)>;
type Figures = Family<Labels, Figure>;

/// The process answers.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The engine answers: its catalog and its pool can be asked.
pub(crate) async fn readyz(State(app): State<App>) -> Result<&'static str, Refusal> {
    ask(app.service, |service| service.list_policies()).await?;
    Ok("ready\n")
}

/// The figures of what the caller may see.
pub(crate) async fn metrics(
    Extension(caller): Extension<Caller>,
    Service(service): Service,
) -> Result<Response, Refusal> {
    let text = ask(service, move |service| {
        let (status, dsources) = (service.status()?, service.list_dsources()?);
        let replications = match caller.surveys() {
            true => service.replicator().list_replications()?,
            false => Vec::new(),
        };
        let latencies = service.latencies()?;
        text(&status, &dsources, &service.list_vdbs()?, &replications, &latencies)
    })
    .await?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response())
}

fn text(
    status: &Status,
    dsources: &[Dsource],
    vdbs: &[Vdb],
    replications: &[Replication],
    latencies: &Latencies,
) -> Result<String, Failure> {
    let mut registry = Registry::with_prefix("offshoot");
    engine(&mut registry, status);
    pool(&mut registry, status);
    of_dsources(&mut registry, dsources);
    of_vdbs(&mut registry, vdbs);
    of_replications(&mut registry, replications);
    of_direct(&mut registry, &latencies.files);
    of_latencies(&mut registry, latencies);
    let mut text = String::new();
    encode(&mut text, &registry)
        .map_err(|error| Failure::internal(format!("the figures cannot be written: {error}")))?;
    Ok(text)
}

fn engine(registry: &mut Registry, status: &Status) {
    let version = family(registry, "build_info", "The version of the engine", None);
    version.get_or_create(&vec![("version", status.engine_version.clone())]).set(1.0);
    let started = status.started_at.as_millisecond() as f64 / 1000.0;
    let seconds = Some(Unit::Seconds);
    figure(registry, "start_time", "When the engine was started, since 1970", seconds, started);
    let counts = [
        ("dsources", "dSources", status.dsources),
        ("vdbs", "VDBs", status.vdbs),
        ("vdbs_running", "VDBs that run", status.vdbs_running),
        ("jobs_active", "Jobs that are queued or at work", status.jobs_active),
        ("faults", "What is wrong at present", status.faults.len() as u64),
        ("warnings", "What should be known", status.warnings.len() as u64),
    ];
    for (name, help, value) in counts {
        figure(registry, name, help, None, value as f64);
    }
}

fn pool(registry: &mut Registry, status: &Status) {
    let (pool, cache) = (&status.pool_status, &status.cache);
    let sizes = [
        ("pool_capacity", "What the pool's data may take", pool.capacity_bytes),
        ("pool_used", "What the pool's files take", pool.used_bytes),
        ("pool_free", "What may be added before the reserve is used", pool.free_bytes),
        ("pool_logical", "What all datasets would take outside the pool", pool.logical_bytes),
        ("pool_live", "What reachable blocks take", pool.live_bytes),
        ("cache_size", "What the shared block cache may hold", cache.size_bytes),
        ("cache_used", "What the shared block cache holds", cache.used_bytes),
    ];
    for (name, help, bytes) in sizes {
        figure(registry, name, help, Some(Unit::Bytes), bytes as f64);
    }
    figure(
        registry,
        "pool_compression_ratio",
        "Uncompressed to stored size",
        None,
        pool.compression_ratio,
    );
    figure(
        registry,
        "pool_dedup_ratio",
        "References for each stored block",
        None,
        pool.dedup_ratio,
    );
    let reads = [
        ("cache_hits", "Reads answered from the shared block cache", cache.hits),
        ("cache_misses", "Reads that the shared block cache could not answer", cache.misses),
    ];
    for (name, help, value) in reads {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        registry.register(name, help, counter);
    }
}

fn of_dsources(registry: &mut Registry, dsources: &[Dsource]) {
    let (bytes, seconds) = (Some(Unit::Bytes), Some(Unit::Seconds));
    let following =
        family(registry, "dsource_following", "Whether the source's log is received", None);
    let lag = family(
        registry,
        "dsource_lag",
        "Log that the source has and the engine has not",
        bytes.clone(),
    );
    let age = family(registry, "dsource_age", "Age of the latest moment that opens", seconds);
    let stored = family(registry, "dsource_stored", "What it takes in the pool", bytes.clone());
    let logical =
        family(registry, "dsource_logical", "What its files would take outside the pool", bytes);
    let snapshots = family(registry, "dsource_snapshots", "Its snapshots", None);
    for one in dsources {
        let labels = vec![("dsource", one.name.clone())];
        let set = |figures: &Figures, value: f64| figures.get_or_create(&labels).set(value);
        if !matches!(one.state, DsourceState::Masked | DsourceState::Replica) {
            set(&following, f64::from(u8::from(one.state == DsourceState::Active)));
        }
        if let Some(bytes) = one.lag_bytes {
            set(&lag, bytes as f64);
        }
        if let Some(ms) = one.lag_ms {
            set(&age, ms as f64 / 1000.0);
        }
        set(&stored, one.stored_bytes as f64);
        set(&logical, one.logical_bytes as f64);
        set(&snapshots, one.snapshots.len() as f64);
    }
}

fn of_vdbs(registry: &mut Registry, vdbs: &[Vdb]) {
    let bytes = Some(Unit::Bytes);
    let running = family(registry, "vdb_running", "Whether it runs", None);
    let unique = family(registry, "vdb_unique", "What it alone takes in the pool", bytes.clone());
    let logical =
        family(registry, "vdb_logical", "What its files would take outside the pool", bytes);
    for one in vdbs {
        let labels = vec![("vdb", one.name.clone()), ("parent", one.parent.clone())];
        let set = |figures: &Figures, value: f64| figures.get_or_create(&labels).set(value);
        set(&running, f64::from(u8::from(one.state == VdbState::Running)));
        set(&unique, one.unique_bytes as f64);
        set(&logical, one.logical_bytes as f64);
    }
}

fn of_replications(registry: &mut Registry, replications: &[Replication]) {
    let (bytes, seconds) = (Some(Unit::Bytes), Some(Unit::Seconds));
    let failed = family(registry, "replication_failed", "Whether the last run failed", None);
    let lag = family(
        registry,
        "replication_lag",
        "How long ago the state is that the peer has all of",
        seconds,
    );
    let log = family(registry, "replication_log_lag", "Log that the peer lacks", bytes);
    for one in replications {
        let labels = vec![("profile", one.name.clone()), ("peer", one.peer.clone())];
        let set = |figures: &Figures, value: f64| figures.get_or_create(&labels).set(value);
        set(&failed, f64::from(u8::from(one.error.is_some())));
        if let Some(ms) = one.lag_ms {
            set(&lag, ms as f64 / 1000.0);
        }
        set(&log, one.lag_bytes as f64);
    }
}

/// Of servers that read without asking.
fn of_direct(registry: &mut Registry, files: &[FileLatencies]) {
    let reads = Family::<Labels, Counter>::default();
    let help = "Blocks of 8 KiB that a server read without asking the engine";
    registry.register("direct_reads", help, reads.clone());
    let bytes = Some(Unit::Bytes);
    let size = family(
        registry,
        "direct_size",
        "Memory to read from that a trust group can have",
        bytes.clone(),
    );
    let used = family(registry, "direct_used", "What of that memory is in use", bytes);
    for (file, direct) in files.iter().filter_map(|file| Some((file, file.direct?))) {
        let label = vec![("vdb", file.owner.clone())];
        reads.get_or_create(&label).inc_by(direct.blocks);
        size.get_or_create(&label).set(direct.size as f64);
        used.get_or_create(&label).set(direct.used as f64);
    }
}

fn of_latencies(registry: &mut Registry, latencies: &Latencies) {
    let of_file = |one: &FileLatencies| {
        let label = match one.kind {
            ObjectKind::Dsource => "dsource",
            ObjectKind::Vdb => "vdb",
        };
        let owner = (label, one.owner.clone());
        [("read", one.reads), ("write", one.writes), ("sync", one.syncs)].map(
            |(operation, counts)| {
                (vec![owner.clone(), ("operation", operation.to_owned())], counts)
            },
        )
    };
    let mut register = |name, help, counts| {
        registry.register_collector(Box::new(Histograms { name, help, counts }));
    };
    register(
        "file_operation",
        "How long servers waited for their files",
        latencies.files.iter().flat_map(of_file).collect(),
    );
    let Some(StoreLatencies { pool_reads, log_flushes, commits }) = latencies.store else { return };
    let alone = |counts| vec![(Vec::new(), counts)];
    register("pool_read", "Reads of blocks from the pool's device", alone(pool_reads));
    register("log_flush", "Flushes of the intent log to the device", alone(log_flushes));
    register("commit", "Commits of the pool", alone(commits));
}

fn figure(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>, value: f64) {
    let figure = Figure::default();
    figure.set(value);
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, figure),
        None => registry.register(name, help, figure),
    }
}

fn family(registry: &mut Registry, name: &str, help: &str, unit: Option<Unit>) -> Figures {
    let figures = Figures::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, figures.clone()),
        None => registry.register(name, help, figures.clone()),
    }
    figures
}
