//! Opens a VDB in psql.

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
    if vdb.state != VdbState::Running {
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
    let mut uri = Url::parse(&vdb.uri).map_err(unreadable)?;
    let password = uri.password().map(decode).unwrap_or_default();
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
        offshoot_os::replace_process(program.as_os_str(), all, &[("PGPASSWORD", &password)]);
    Err(Failure::new(
        ErrorKind::HostUnprepared,
        format!("{} cannot be started: {error}", program.display()),
        "check the installation of the PostgreSQL client",
    ))
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
