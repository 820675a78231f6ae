//! From a pool's directory to the parts of an engine on it: what was left is cleaned up, what was begun finished or
//! undone, what should run started.

use crate::core::Core;
use crate::core::encryption;
use crate::core::secret_keys::KeyPlaces;
use crate::core::topic::Topic;
use crate::core::traces::collector_url;
use crate::following::Following;
use crate::ground::custody::Custody;
use crate::ground::network::Network;
use crate::ground::paths::Paths;
use crate::ground::pool_dir;
use crate::ground::poster::Poster;
use crate::housekeeping::leftovers;
use crate::housekeeping::restart;
use crate::housekeeping::takeover::{self, Survivors};
use crate::images::readiness;
use crate::jobs::bisect;
use crate::jobs::bookmark;
use crate::jobs::diff;
use crate::jobs::dsource;
use crate::jobs::failover;
use crate::jobs::group;
use crate::jobs::link;
use crate::jobs::mask;
use crate::jobs::point;
use crate::jobs::pool;
use crate::jobs::provision;
use crate::jobs::reparent;
use crate::jobs::replica;
use crate::jobs::replicate;
use crate::jobs::resync;
use crate::jobs::retention;
use crate::jobs::scrub;
use crate::jobs::secrets;
use crate::jobs::set_vdb;
use crate::jobs::sleep;
use crate::jobs::snapshot;
use crate::jobs::vdb;
use crate::jobs::warm;
use crate::jobs::way;
use crate::parts::Parts;
use crate::serving::Serving;
use crate::serving::direct::Direct;
use crate::serving::owners::Owners;
use crate::serving::servers::stop_leftovers;
use crate::serving::volumes::Volumes;
use crate::space::Space;
use crate::space::damage;
use crate::space::losses;
use crate::space::room;
use offshoot_catalog::Catalog;
use offshoot_connector::Registry;
use offshoot_dataset::{DataKey, Store, StoreOptions};
use offshoot_delivery::Delivery;
use offshoot_domain::format_size;
use offshoot_os::disk::{Disk, LinuxDisk};
use offshoot_os::{Clock, SystemClock, limits};
use offshoot_types::{ErrorKind, Failure};
use offshoot_workflow::{AbortAt, CrashPoints, Runner, Workflow};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Variable that names the step at which a test makes the engine die.
const CRASH_VARIABLE: &str = "OFFSHOOT_CRASH_AT";
/// How long jobs that a crash interrupted may take before objects are started without them.
const RESUME_JOBS: Duration = Duration::from_secs(600);
/// The smallest cache: below it, blocks that a single statement needs displace each other.
const CACHE_MIN: u64 = 16 << 20;
/// The smallest capacity: twice the least reserve, so that half of it holds data.
const CAPACITY_MIN: u64 = 128 << 20;
/// The least memory of a trust group.
const DIRECT_MIN: u64 = 16 << 20;
/// Room set aside for deletions on a file system that others have filled, in bytes.
const BALLAST: u64 = 64 << 20;

/// Whether an engine could open a pool in this directory, or make one. Changes nothing.
///
/// # Errors
/// `InvalidInput` for one with other files in it, `HostUnprepared` for one that cannot be used.
pub fn check_pool_dir(dir: &Path) -> Result<(), Failure> {
    pool_dir::check(dir)
}

/// Whether this host can deliver datasets so.
///
/// # Errors
/// `HostUnprepared`, with what is missing.
pub fn check_delivery(delivery: &dyn Delivery) -> Result<(), Failure> {
    delivery.check_host()
}

/// How to open an engine.
#[derive(Clone)]
pub struct EngineOptions {
    /// The pool directory; made where missing.
    pub pool: PathBuf,
    /// What the shared block cache may hold, in bytes; a share of the memory if absent.
    pub cache_size: Option<u64>,
    /// Memory from which the servers of a trust group read without asking, in bytes, for each group; 0: they ask.
    pub direct_size: u64,
    /// The most the pool's blocks may take of its file system, in bytes; all of it if absent.
    pub capacity: Option<u64>,
    /// Where the keys of the catalog's secrets are kept.
    pub secret_keys: KeyPlaces,
    /// Whether secrets whose key is lost are forgotten; without that the pool is not opened.
    pub forget_secrets: bool,
    /// Whether a pool that is made is encrypted; one that is there has to be.
    pub encrypt: bool,
    /// The kinds of databases it works with.
    pub connectors: Registry,
    /// How datasets reach the servers that work in them.
    pub delivery: Arc<dyn Delivery>,
    /// The way to other engines.
    pub network: Arc<dyn Network>,
    /// The way to those who are told of events.
    pub poster: Arc<dyn Poster>,
    /// Where traces of jobs are sent, as OTLP by HTTP; none: nowhere.
    pub collector: Option<String>,
    /// The program whose subcommand `keeper` runs [`run_keeper`](crate::run_keeper); without it VDBs end with the engine.
    pub keeper: Option<PathBuf>,
}

/// Opens a pool; see [`Engine::open`](crate::Engine::open). What is returned runs.
pub fn open(
    options: &EngineOptions,
    crash_points: Option<Arc<dyn CrashPoints>>,
) -> Result<Arc<Parts>, Failure> {
    let cache_size = cache_size(options.cache_size)?;
    check_capacity(options.capacity)?;
    let collector = options.collector.as_deref().map(collector_url).transpose()?;
    options.delivery.check_host()?;
    let paths = Paths::prepare(&options.pool)?;
    for user in options.connectors.all().iter().filter_map(|kind| kind.server_user()) {
        paths.check_way(user)?;
    }
    match options.forget_secrets {
        true => options.secret_keys.check_lost(&paths)?,
        false => options.secret_keys.check(&paths)?,
    }
    let data_key = encryption::prepare(&paths, &options.secret_keys, options.encrypt)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let custody = Custody::connect(options.keeper.clone(), &paths);
    let survivors = Survivors::of(&custody);
    let store = open_store(
        &paths,
        pool_options(options, cache_size, &data_key),
        clock.clone(),
        &survivors,
    )?;
    tracing::debug!("the store is open");
    room::make_way(&store);
    paths.make_runtime()?;
    paths.remove_deserted_runtimes();
    custody.start();
    if options.forget_secrets {
        forget_secrets(&paths, &options.secret_keys)?;
    }
    let catalog = open_catalog(&paths, &options.secret_keys, &store, data_key.as_ref())?;
    let connectors = options.connectors.clone();
    let delivery = options.delivery.clone();
    let owners = Owners::of(&connectors, &paths);
    if let Some(warning) = owners.warning() {
        tracing::warn!(%warning, hint = warning.hint, "engine");
    }
    let direct = Direct::new(direct_size(options.direct_size)?, &paths.libraries());
    let volumes = Volumes::new(store.clone(), paths.clone(), delivery, owners, custody, direct);
    let key_places = options.secret_keys.clone();
    let (network, poster) = (options.network.clone(), options.poster.clone());
    let core =
        Core { paths, store, catalog, key_places, clock, connectors, network, poster, collector };
    let space = Arc::new(Space::new(Arc::new(core)));
    let serving = Arc::new(Serving::new(space, volumes));
    let parts = Arc::new(Parts::new(Following::new(serving)));
    tracing::debug!("the catalog is open");
    clean_up(&parts, survivors)?;
    tracing::debug!("what continues is taken over, what does not is cleaned up");
    leftovers::check_catalog(&parts)?;
    forget_misplaced_faults(&parts)?;
    damage::recall(&parts)?;
    parts.set_runner(runner(&parts, crash_points));
    resume(&parts)?;
    tracing::debug!("interrupted jobs are settled");
    losses::report_all(&parts)?;
    restart::start_all(&parts)?;
    Ok(parts)
}

/// Where the environment asks the engine to die.
pub fn crash_points() -> Result<Option<Arc<dyn CrashPoints>>, Failure> {
    match std::env::var(CRASH_VARIABLE) {
        Ok(text) => Ok(Some(Arc::new(AbortAt::parse(&text)?))),
        Err(_) => Ok(None),
    }
}

fn runner(parts: &Parts, crash_points: Option<Arc<dyn CrashPoints>>) -> Runner<Parts> {
    let (catalog, clock) = (parts.catalog.clone(), parts.clock.clone());
    match crash_points {
        Some(points) => Runner::with_crash_points(catalog, clock, workflows(), points),
        None => Runner::new(catalog, clock, workflows()),
    }
}

fn workflows() -> Vec<Workflow<Parts>> {
    let mut all = vec![
        diff::workflow(),
        failover::workflow(),
        link::workflow(),
        point::workflow(),
        reparent::workflow(),
        set_vdb::workflow(),
        sleep::workflow(),
        replica::workflow(),
        replica::pull::workflow(),
        replicate::workflow(),
        resync::workflow(),
        provision::workflow(),
        readiness::workflow(),
        retention::workflow(),
        restart::workflow(),
        pool::reclaim_workflow(),
        scrub::workflow(),
        secrets::workflow(),
        warm::workflow(),
        way::workflow(),
    ];
    all.extend(dsource::workflows());
    all.extend(snapshot::workflows());
    all.extend(bookmark::workflows());
    all.extend(group::workflows());
    all.push(bisect::workflow());
    all.extend(mask::workflows());
    all.extend(vdb::workflows());
    all
}

/// Finishes or undoes what a crash interrupted, then removes what the catalog does not know.
fn resume(parts: &Arc<Parts>) -> Result<(), Failure> {
    // Undoing a step may need the log of a dSource, or stop what does not exist: both are harmless.
    let deadline = parts.clock.elapsed() + RESUME_JOBS;
    for job in parts.runner()?.resume(parts)? {
        let left = deadline.saturating_sub(parts.clock.elapsed());
        let ended = parts.runner()?.wait(job, left)?;
        tracing::info!(%job, kind = ended.kind, state = ended.state.as_str(), "an interrupted job");
    }
    if parts.runner()?.has_unsettled()? { Ok(()) } else { leftovers::remove(parts) }
}

/// Drops what an earlier release recorded about a dSource or VDB under the pool's or the engine's
/// name.
fn forget_misplaced_faults(parts: &Parts) -> Result<(), Failure> {
    for fault in parts.catalog.faults()?.iter().filter(|fault| Topic::is_misplaced(fault)) {
        parts.clear_stored(&fault.subject, &fault.topic);
    }
    Ok(())
}

/// Takes over what continues. Anything else still running on the pool, whose lock is ours, was left
/// by a killed engine.
fn clean_up(parts: &Arc<Parts>, survivors: Survivors) -> Result<(), Failure> {
    let going_on = takeover::take_over(parts, survivors)?;
    stop_leftovers(&parts.connectors, parts.paths.runtime(), &going_on.servers)?;
    for stale in parts.volumes.delivery().clean_stale(&parts.paths.mounts(), &going_on.mounts)? {
        tracing::info!(mount = %stale.display(), "a stale mount was removed");
    }
    for left in ["offshoot-", offshoot_os::OWN_GROUP] {
        offshoot_os::cgroup::remove_left(left);
    }
    Ok(())
}

/// Forgets what a lost key has sealed. The pool's lock is ours.
fn forget_secrets(paths: &Paths, keys: &KeyPlaces) -> Result<(), Failure> {
    let ring = keys.prepare_without_lost(paths)?;
    for secret in Catalog::forget_closed(&paths.catalog(), &ring)? {
        tracing::warn!(secret, "forgotten: its key is lost");
    }
    Ok(())
}

fn open_catalog(
    paths: &Paths,
    keys: &KeyPlaces,
    store: &Arc<Store>,
    data_key: Option<&DataKey>,
) -> Result<Arc<Catalog>, Failure> {
    let ring = keys.prepare(paths)?;
    encryption::wrap_by(paths, keys, ring.first())?;
    let rows = encryption::row_key(data_key);
    let catalog = Arc::new(Catalog::open_sealed(&paths.catalog(), ring, rows.as_deref())?);
    let ballast = Arc::downgrade(store);
    catalog.on_full(move || ballast.upgrade().is_some_and(|it| it.pool().release_ballast()));
    if let Err(error) = catalog.remove_traces() {
        tracing::warn!(%error, "passwords of earlier releases may be left in the catalog until the next start");
    }
    Ok(catalog)
}

fn pool_options(of: &EngineOptions, cache: u64, data_key: &Option<DataKey>) -> StoreOptions {
    let mut options = StoreOptions::default();
    options.pool.cache_size = cache;
    options.pool.capacity = of.capacity;
    options.pool.ballast = BALLAST;
    options.pool.data_key = data_key.clone();
    // The rest is for mounts, servers and clients.
    let descriptors = usize::try_from(limits::descriptors() / 4).unwrap_or(usize::MAX);
    options.pool.open_segments_max = options.pool.open_segments_max.min(descriptors).max(1);
    options
}

fn open_store(
    paths: &Paths,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
    survivors: &Survivors,
) -> Result<Arc<Store>, Failure> {
    let disk: Arc<dyn Disk> = Arc::new(LinuxDisk::new(paths.pool()).map_err(|error| {
        let message = format!("the pool {} cannot be used: {error}", paths.pool().display());
        Failure::new(ErrorKind::HostUnprepared, message, "check its permissions and its disk")
    })?);
    if !paths.pool().join("label").exists() {
        Store::create(&disk, &options).map_err(|error| error.failure())?;
    }
    Store::take_over(disk, &options, clock, &survivors.logs).map_err(|error| error.failure())
}

/// The size of the shared cache: as asked for, or a quarter of this host's memory.
fn cache_size(wanted: Option<u64>) -> Result<u64, Failure> {
    let memory = memory_bytes();
    match wanted {
        Some(size) if size > memory => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("a cache of {size} bytes does not fit this host's {memory} bytes of memory"),
            "choose a smaller --cache-size",
        )),
        Some(size) if size < CACHE_MIN => {
            Err(too_small("a cache", size, CACHE_MIN, "--cache-size"))
        }
        Some(size) => Ok(size),
        None => Ok((memory / 4).max(64 << 20)),
    }
}

/// The size of a group's memory: none, or enough for a few files of each of its servers.
fn direct_size(wanted: u64) -> Result<u64, Failure> {
    match wanted {
        1..DIRECT_MIN => Err(too_small("memory to read from", wanted, DIRECT_MIN, "--direct-size")),
        size if size > memory_bytes() => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("{size} bytes to read from do not fit this host's memory"),
            "choose a smaller --direct-size",
        )),
        size => Ok(size),
    }
}

fn check_capacity(wanted: Option<u64>) -> Result<(), Failure> {
    match wanted {
        Some(size) if size < CAPACITY_MIN => {
            Err(too_small("a capacity", size, CAPACITY_MIN, "--capacity"))
        }
        _ => Ok(()),
    }
}

fn too_small(what: &str, size: u64, least: u64, option: &str) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        format!("{what} of {} is too small to work with", format_size(size)),
        format!("give {option} at least {}", format_size(least)),
    )
}

fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}
