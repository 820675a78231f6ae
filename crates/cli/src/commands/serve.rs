//! `offshoot serve`

use crate::args::{ServeArgs, TargetArgs};
use crate::target;
use offshoot_server::ServeOptions;
use offshoot_types::{ErrorKind, Failure};
use std::path::PathBuf;
use tracing_subscriber::EnvFilter;

/// Names the file with the key of secrets.
const KEY_VARIABLE: &str = "OFFSHOOT_SECRET_KEY_FILE";

/// What others say of their own workings is for those who name them. Statements may hold passwords.
const QUIET: &str = "fuser=off,tokio_postgres=info";

/// Runs the engine of a pool in this process until it is told to stop.
pub fn run(target: &TargetArgs, args: &ServeArgs) -> Result<(), Failure> {
    if target.server.is_some() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            "an engine serves a pool of its own; --server names another one",
            "name the pool with --pool, and where to listen with --listen",
        ));
    }
    let mut options = ServeOptions::new(target::pool_dir(target)?);
    if let Some(file) = &args.config {
        options.read_config(file)?;
    }
    options.listen = args.listen.unwrap_or(options.listen);
    options.socket_group = args.socket_group.clone().or(options.socket_group);
    options.host_names.extend(args.host_names.iter().cloned());
    options.tls_files = args.tls_cert.clone().zip(args.tls_key.clone()).or(options.tls_files);
    options.cache_size_bytes = args.cache_size.or(options.cache_size_bytes);
    options.direct_size_bytes = args.direct_size.unwrap_or(options.direct_size_bytes);
    options.capacity_bytes = args.capacity.or(options.capacity_bytes);
    options.secret_key = key_file(args.secret_key.clone()).or(options.secret_key);
    options.forget_secrets = args.forget_secrets;
    options.encrypt |= args.encrypt;
    options.unconfined |= args.unconfined;
    options.traces = args.traces.clone().or(options.traces);
    options.takeover = args.takeover;
    log_to_stderr()?;
    offshoot_server::run_engine(options)
}

/// Holds the mounts of a pool's VDBs for its engines.
pub fn run_keeper(target: &TargetArgs) -> Result<(), Failure> {
    log_to_stderr()?;
    offshoot_server::run_keeper(&target::pool_dir(target)?)
}

/// The file of keys that the command line names, or else the environment.
pub fn key_file(named: Option<PathBuf>) -> Option<PathBuf> {
    let variable = || std::env::var_os(KEY_VARIABLE).filter(|file| !file.is_empty());
    named.or_else(|| variable().map(PathBuf::from))
}

fn log_to_stderr() -> Result<(), Failure> {
    let filter = match std::env::var("OFFSHOOT_LOG") {
        Err(_) => EnvFilter::new(format!("info,{QUIET}")),
        Ok(directives) => EnvFilter::try_new(format!("{QUIET},{directives}")).map_err(|error| {
            Failure::new(
                ErrorKind::InvalidInput,
                format!("OFFSHOOT_LOG={directives} is not understood: {error}"),
                "write it as OFFSHOOT_LOG=debug or OFFSHOOT_LOG=info,offshoot_pool=debug",
            )
        })?,
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match std::env::var("OFFSHOOT_LOG_FORMAT").as_deref() {
        Err(_) | Ok("" | "text") => {
            log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init();
        }
        Ok("json") => log.json().flatten_event(true).init(),
        Ok(other) => {
            return Err(Failure::new(
                ErrorKind::InvalidInput,
                format!("OFFSHOOT_LOG_FORMAT={other} is not known"),
                "write OFFSHOOT_LOG_FORMAT=json, or text",
            ));
        }
    }
    Ok(())
}
