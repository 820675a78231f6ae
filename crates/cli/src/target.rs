//! Which engine a command talks to: options override the environment, which overrides the default pool.

use crate::args::TargetArgs;
use offshoot_client::Target;
use offshoot_types::{ErrorKind, Failure};
use std::path::PathBuf;

/// The engine that options and environment name.
pub fn resolve(args: &TargetArgs) -> Result<Target, Failure> {
    if let Some(url) = &args.server {
        return server(args, url.clone());
    }
    if args.pool.is_none()
        && let Some(url) = variable("OFFSHOOT_SERVER")
    {
        return server(args, url);
    }
    // The environment's token belongs to the environment's engine, not to one that an option names.
    let named = args.token_file.clone();
    let token_file = match args.pool {
        Some(_) => named,
        None => named.or_else(token_file_of_environment),
    };
    Ok(Target::Pool { dir: pool_dir(args)?, token_file })
}

fn token_file_of_environment() -> Option<PathBuf> {
    variable("OFFSHOOT_TOKEN_FILE").map(PathBuf::from)
}

/// The pool directory that options and environment name.
pub fn pool_dir(args: &TargetArgs) -> Result<PathBuf, Failure> {
    if let Some(pool) = &args.pool {
        return Ok(pool.clone());
    }
    if let Some(pool) = variable("OFFSHOOT_POOL") {
        return Ok(pool.into());
    }
    if rustix::process::geteuid().is_root() {
        return Ok("/var/lib/offshoot".into());
    }
    variable("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".local/share")))
        .map(|data| data.join("offshoot"))
        .ok_or_else(|| {
            Failure::new(
                ErrorKind::InvalidInput,
                "neither XDG_DATA_HOME nor HOME is set, so there is no default pool",
                "name the pool with --pool DIR or OFFSHOOT_POOL",
            )
        })
}

fn server(args: &TargetArgs, url: String) -> Result<Target, Failure> {
    let file = args.token_file.clone().or_else(token_file_of_environment);
    let token_file = file.ok_or_else(|| {
        Failure::new(
            ErrorKind::Unauthorized,
            format!("there is no token for the engine at {url}"),
            "name a file with it by --token-file FILE or OFFSHOOT_TOKEN_FILE; it is the file `token` in \
             the engine's pool",
        )
    })?;
    Ok(Target::Server { url, token_file, known: known_engines()? })
}

/// The file of what certificates engines of other hosts are known by.
pub fn known_engines() -> Result<PathBuf, Failure> {
    let config = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    config.map(|config| config.join("offshoot/known_engines")).ok_or_else(|| {
        Failure::new(
            ErrorKind::InvalidInput,
            "neither XDG_CONFIG_HOME nor HOME is set, so there is no place for what engines are known by",
            "set HOME",
        )
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
