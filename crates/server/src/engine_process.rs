//! Runs an engine until it is told to stop.

use crate::engine_service::LocalEngine;
use crate::peers::{Door, PeerNetwork};
use crate::poster::HttpPoster;
use crate::signal::MAKE_ROOM;
use crate::{
    HttpServer, Identity, Listen, LocalSocket, ServeOptions, ShutdownSignal, Token,
    publish_address, withdraw_address,
};
use offshoot_cell::Cells;
use offshoot_connector::Registry;
use offshoot_engine::{Engine, EngineOptions};
use offshoot_fuse::Fuse;
use offshoot_launcher::{Launcher, ThisHost};
use offshoot_os::limits;
use offshoot_postgres::Postgres;
use offshoot_types::{ErrorKind, Failure};
use sd_notify::NotifyState;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;

/// Descriptors that many VDBs can use up.
const DESCRIPTORS_FEW: u64 = 4096;

/// Runs an engine in the foreground until SIGTERM or SIGINT; says `ready` on stdout when it answers.
///
/// # Errors
/// What prevents the start, or closing the pool.
pub fn run_engine(options: ServeOptions) -> Result<(), Failure> {
    // From here on signals are kept until they are waited for, so none is lost while the engine
    // opens.
    let signal = ShutdownSignal::install()?;
    raise_limits();
    let _share = offshoot_os::own_share().inspect_err(
        |error| tracing::info!(%error, "the engine has no share of the processors of its own"),
    );
    // VDBs wait until it answers, however many there are.
    let hurry = offshoot_os::hurry();
    if options.takeover {
        offshoot_engine::displace(&options.pool)?;
    }
    offshoot_engine::outlast_killed(&options.pool);
    // A taken port is reported before anything is started.
    let by_tls = options.tls_files.is_some() || !options.listen.ip().is_loopback();
    drop(crate::listen::bind_tcp(options.listen, by_tls)?);
    let given = options.tls_files.as_ref().map(|(cert, key)| Identity::of_files(cert, key));
    let given = given.transpose()?;
    let socket = LocalSocket::of_pool(&options.pool, options.socket_group.as_deref())?;
    let launcher = launcher(options.unconfined)?;
    let mut warnings = Vec::from_iter(few_descriptors());
    if options.unconfined {
        warnings.push(unconfined());
    }
    if options.unconfined && options.direct_size_bytes > 0 {
        warnings.push(asks_for_all());
    }
    for warning in &warnings {
        tracing::warn!(%warning, hint = warning.hint, "engine");
    }
    let program = std::env::current_exe().ok();
    let postgres =
        Postgres::new(launcher, options.postgres_bin_dirs).with_gateways(program.clone());
    let engine = Engine::open(&EngineOptions {
        pool: options.pool.clone(),
        cache_size: options.cache_size_bytes,
        direct_size: options.direct_size_bytes,
        capacity: options.capacity_bytes,
        secret_keys: crate::secret_keys::places(options.secret_key),
        forget_secrets: options.forget_secrets,
        encrypt: options.encrypt,
        connectors: Registry::new(vec![Arc::new(postgres)]),
        delivery: Arc::new(Fuse::default()),
        network: Arc::new(PeerNetwork),
        poster: Arc::new(HttpPoster::of_host()),
        collector: options.traces,
        keeper: program,
    })?;
    drop(hurry);
    let service = Arc::new(LocalEngine::new(engine, warnings));
    let (pool, names) = (&options.pool, options.host_names);
    let tls = match given {
        None if by_tls => Identity::of_pool(pool, &names).map(Some),
        given => Ok(given),
    };
    let served = tls.and_then(|tls| {
        let listen = Listen { tcp: options.listen, tls, local: Some(socket), names };
        serve_until(pool, listen, &service, signal)
    });
    if served.as_ref().is_ok_and(|signal| *signal == MAKE_ROOM) {
        make_room(service.engine());
    }
    let closed = service.engine().close();
    served.map(drop).and(closed)
}

/// As systemd's `Type=notify` asks for; nothing where no service manager listens.
fn tell_service_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager is not told");
    }
}

fn unconfined() -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        "servers are not confined: whoever is superuser of a VDB can run programs on this host",
        "start the engine without --unconfined",
    )
}

fn asks_for_all() -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        "servers are not confined, so none of them reads directly: --direct-size has no effect",
        "start the engine without --unconfined",
    )
}

/// Takes as many descriptors as this process may have: many systems give a program 1,024 until it asks for more.
pub(crate) fn raise_limits() {
    if let Err(error) = limits::raise_descriptors() {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

pub(crate) fn few_descriptors() -> Option<Failure> {
    let limit = limits::descriptors();
    let few = || {
        Failure::new(
            ErrorKind::HostUnprepared,
            format!("the engine may have {limit} files open: many VDBs use them up"),
            "raise its hard limit (ulimit -Hn, or LimitNOFILE= of systemd), and restart it",
        )
    };
    (limit < DESCRIPTORS_FEW).then(few)
}

/// What runs servers: in cells, which this program builds, unless told otherwise.
pub(crate) fn launcher(unconfined: bool) -> Result<Arc<dyn Launcher>, Failure> {
    let host = ThisHost::with_user(offshoot_postgres::server::USER)?;
    if unconfined {
        return Ok(Arc::new(host));
    }
    let builder = std::env::current_exe()
        .map_err(|error| Failure::internal(format!("the path of this program: {error}")))?;
    Ok(Arc::new(Cells::new(&host, builder)?))
}

/// Becomes the gateway of a VDB, which `options` describe.
///
/// # Errors
/// What the host refused.
pub fn run_gateway(options: &str) -> Result<(), Failure> {
    let options = serde_json::from_str(options)
        .map_err(|error| Failure::internal(format!("the gateway is not understood: {error}")))?;
    raise_limits();
    // A cell is around it already, where servers have cells.
    offshoot_gateway::run(options)
}

/// Builds a cell around this process and becomes the program in it.
///
/// # Errors
/// What the host refused.
pub fn enter_cell(spec: &str, command: &[OsString]) -> Result<Infallible, Failure> {
    offshoot_cell::enter(spec, command)
}

/// Leaves VDBs and mounts to the engine that waits for our end.
fn make_room(engine: &Engine) -> ! {
    if let Err(failure) = engine.make_room() {
        // The next engine finds it in the logs.
        tracing::warn!(%failure, "not everything is committed");
    }
    tracing::info!("another engine takes over");
    // Not an ordinary end: that would unmount.
    std::process::exit(0)
}

/// Runs the keeper of a pool, which holds the mounts of running VDBs while there is no engine.
///
/// # Errors
/// When its socket cannot be made.
pub fn run_keeper(pool: &std::path::Path) -> Result<(), Failure> {
    raise_limits();
    offshoot_engine::run_keeper(pool, Arc::new(Fuse::default()))
}

fn serve_until(
    pool: &std::path::Path,
    listen: Listen,
    service: &Arc<LocalEngine>,
    signal: ShutdownSignal,
) -> Result<&'static str, Failure> {
    let token = Token::load_or_create(pool)?;
    let fingerprint = listen.tls.as_ref().map(|tls| tls.fingerprint().to_owned());
    if let Some(fingerprint) = &fingerprint {
        tracing::info!(fingerprint, "clients of other hosts pin this certificate");
    }
    let door = Door::new(service.clone());
    let tls = listen.tls.map(|tls| tls.with_door(door.clone()));
    let http = HttpServer::start(Listen { tls, ..listen }, service.clone(), token)?;
    service.set_address(http.local_addr(), http.socket(), fingerprint);
    publish_address(pool, http.local_addr())?;
    tracing::info!(address = %http.local_addr(), pool = %pool.display(), "ready");
    // The reader of this line may have closed the pipe; that is no reason to stop.
    let _ = writeln!(std::io::stdout(), "ready").and_then(|()| std::io::stdout().flush());
    tell_service_manager(NotifyState::Ready);
    let asked = signal.wait();
    tracing::info!(asked, "stopping");
    tell_service_manager(NotifyState::Stopping);
    door.close();
    let withdrawn = withdraw_address(pool);
    http.stop();
    withdrawn.map(|()| asked)
}
