//! Opens a VDB in psql, or for another program.

use crate::source::decode;
use offshoot_api::{Vdb, VdbState};
use offshoot_types::{ErrorKind, Failure};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use url::Url;

/// Where Debian and its derivatives keep the programs of each version.
const VERSIONS_DIR: &str = "/usr/lib/postgresql";

/// Replaces this process with psql. The password is passed in the environment, as everybody can see
/// arguments.
pub fn open(vdb: &Vdb, args: &[OsString]) -> Result<(), Failure> {
    let Place { mut uri, password, .. } = place(vdb)?;
    if password.is_none() {
        eprintln!("the password of {} is shown to its owner alone; psql asks for it", vdb.name);
    }
    // A URI that takes no password has none to take out.
    let _ = uri.set_password(None);
    let program = find().ok_or_else(|| {
        Failure::new(
            ErrorKind::HostUnprepared,
            "psql is neither in PATH nor in /usr/lib/postgresql",
            "install the PostgreSQL client (on Debian: apt install postgresql-client), or use the uri of \
             `offshoot vdb show`",
        )
    })?;
    let all = std::iter::once(OsStr::new(uri.as_str())).chain(args.iter().map(OsString::as_os_str));
    let error =
        offshoot_os::replace_process(program.as_os_str(), all, &of_password(password.as_deref()));
    Err(not_started(&program, &error, "check the installation of the PostgreSQL client"))
}

/// Replaces this process with a program that finds a VDB's address and password in its environment.
pub fn run_with(vdb: &Vdb, command: &[OsString]) -> Result<(), Failure> {
    let Place { uri, password, database } = place(vdb)?;
    // The grammar lets through no empty command.
    let (program, args) = command.split_first().ok_or_else(|| Failure::internal("no command"))?;
    let port = vdb.port.to_string();
    let mut environment = vec![
        ("PGHOST", vdb.host.as_str()),
        ("PGPORT", &port),
        ("PGUSER", &vdb.user),
        ("PGDATABASE", &database),
        ("DATABASE_URL", uri.as_str()),
    ];
    environment.extend(of_password(password.as_deref()));
    let error = offshoot_os::replace_process(program, args, &environment);
    Err(not_started(program.as_ref(), &error, "name a program of this host after --"))
}

/// How a VDB is reached.
struct Place {
    uri: Url,
    /// None: the engine shows it to others, or does not know it. What the user has in the environment counts then.
    password: Option<String>,
    database: String,
}

fn of_password(password: Option<&str>) -> Vec<(&'static str, &str)> {
    password.map(|password| ("PGPASSWORD", password)).into_iter().collect()
}

fn place(vdb: &Vdb) -> Result<Place, Failure> {
    // Whoever connects wakes one that is asleep.
    let asleep = vdb.gateway.as_ref().is_some_and(|gateway| gateway.asleep);
    if vdb.state != VdbState::Running && !asleep {
        let state = crate::output::word(&vdb.state);
        return Err(Failure::new(
            ErrorKind::WrongState,
            format!("{} is {state}", vdb.name),
            match vdb.state {
                VdbState::Stopped => format!("start it with: offshoot vdb start {}", vdb.name),
                _ => format!("see: offshoot vdb show {}", vdb.name),
            },
        ));
    }
    let unreadable = |_| Failure::internal(format!("the engine gave no URI of {}", vdb.name));
    let uri = Url::parse(&vdb.uri).map_err(unreadable)?;
    let password = uri.password().map(decode);
    let database = decode(uri.path().trim_start_matches('/'));
    Ok(Place { uri, password, database })
}

fn not_started(program: &Path, error: &std::io::Error, hint: &str) -> Failure {
    let message = format!("{} cannot be started: {error}", program.display());
    Failure::new(ErrorKind::HostUnprepared, message, hint)
}

/// psql in `PATH`, or of the newest version installed.
fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).map(|dir| dir.join("psql"));
    in_path.into_iter().find(|program| program.is_file()).or_else(|| newest(VERSIONS_DIR.as_ref()))
}

fn newest(versions: &Path) -> Option<PathBuf> {
    std::fs::read_dir(versions)
        .ok()?
        .filter_map(|entry| {
            let version: u32 = entry.as_ref().ok()?.file_name().to_str()?.parse().ok()?;
            let program = entry.ok()?.path().join("bin/psql");
            program.is_file().then_some((version, program))
        })
        .max()
        .map(|(_, program)| program)
}
