//! Whether this host has what an engine needs. Each check is the one that the start of an engine makes, so that the two
//! cannot disagree.

use crate::ServeOptions;
use crate::engine_process::{few_descriptors, launcher, raise_limits};
use crate::listen::bind_tcp;
use offshoot_api::{HostCheck, HostCheckState, HostReport};
use offshoot_domain::format_size;
use offshoot_fuse::Fuse;
use offshoot_os::cgroup::Group;
use offshoot_os::kernel_version;
use offshoot_types::{ErrorKind, Failure};
use std::path::{Path, PathBuf};

/// From here on VDBs outlive their engine.
const KERNEL_WANTED: (u32, u32) = (6, 9);
/// Less room than this is soon used up.
const ROOM_FEW: u64 = 10 << 30;
/// A limit that is set for a moment, to see whether it can be.
const MEMORY_TRIED: u64 = 64 << 20;

/// What was found, or what is wrong.
type Found = Result<String, (HostCheckState, Failure)>;

/// Looks at everything that an engine with these options needs. Changes nothing.
pub fn examine_host(options: &ServeOptions) -> HostReport {
    raise_limits();
    let all: [(&str, Found); 8] = [
        ("mounting", mounting()),
        ("cells", cells(options.unconfined)),
        ("PostgreSQL", postgres(options)),
        ("pool", pool(&options.pool)),
        ("address", address(options)),
        ("kernel", kernel()),
        ("limits of VDBs", groups()),
        ("open files", descriptors()),
    ];
    HostReport { checks: all.into_iter().map(|(name, found)| check(name, found)).collect() }
}

fn check(name: &str, found: Found) -> HostCheck {
    let name = name.to_owned();
    match found {
        Ok(message) => HostCheck { name, state: HostCheckState::Ok, message, hint: String::new() },
        Err((state, failure)) => {
            HostCheck { name, state, message: failure.message, hint: failure.hint }
        }
    }
}

fn failed(failure: Failure) -> (HostCheckState, Failure) {
    (HostCheckState::Failed, failure)
}

fn warning(message: String, hint: &str) -> (HostCheckState, Failure) {
    (HostCheckState::Warning, Failure::new(ErrorKind::HostUnprepared, message, hint))
}

fn mounting() -> Found {
    offshoot_engine::check_delivery(&Fuse::default()).map_err(failed)?;
    Ok("files of VDBs can be mounted by FUSE".to_owned())
}

fn cells(unconfined: bool) -> Found {
    launcher(unconfined).map_err(failed)?;
    if unconfined {
        let message = "servers are to run without cells (unconfined)".to_owned();
        return Err(warning(message, "take 'unconfined' out of the engine's settings"));
    }
    Ok("servers can be confined: namespaces, Landlock, seccomp".to_owned())
}

fn postgres(options: &ServeOptions) -> Found {
    let found = offshoot_postgres::installation::find_installations(&options.postgres_bin_dirs);
    if found.is_empty() {
        return Err(failed(Failure::new(
            ErrorKind::HostUnprepared,
            "no PostgreSQL server is installed",
            "install that of the source's major version (on Debian: apt install postgresql), or name its programs' \
             directory by postgres_bin_dir in the file of --config",
        )));
    }
    let has_server = |dir: &&PathBuf| found.iter().any(|one| one.bin_dir == **dir);
    if let Some(dir) = options.postgres_bin_dirs.iter().find(|dir| !has_server(dir)) {
        let message =
            format!("postgres_bin_dir: there is no PostgreSQL server in {}", dir.display());
        return Err(warning(
            message,
            "name the directory that its programs are in, such as /opt/pg16/bin",
        ));
    }
    let versions = found.iter().map(|one| format!("{} in {}", one.version, one.bin_dir.display()));
    Ok(versions.collect::<Vec<_>>().join(", "))
}

fn pool(dir: &Path) -> Found {
    offshoot_engine::check_pool_dir(dir).map_err(failed)?;
    let there = dir.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let room = rustix::fs::statvfs(there).map_err(|error| {
        let message = format!("{}: {error}", there.display());
        failed(Failure::new(ErrorKind::HostUnprepared, message, "choose another --pool"))
    })?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    let message = format!("{}: {} free", dir.display(), format_size(free));
    if free < ROOM_FEW {
        return Err(warning(
            message,
            "a pool takes about a third of its sources; give it more room",
        ));
    }
    Ok(message)
}

/// An engine that runs has the address itself.
fn address(options: &ServeOptions) -> Found {
    let by_tls = options.tls_files.is_some() || !options.listen.ip().is_loopback();
    match bind_tcp(options.listen, by_tls) {
        Ok(_) => Ok(format!("{} is free", options.listen)),
        Err(taken) if taken.code == ErrorKind::AlreadyExists => {
            let hint =
                "if it is this engine, all is well; otherwise choose another port with --listen";
            Err(warning(taken.message, hint))
        }
        Err(failure) => Err(failed(failure)),
    }
}

fn kernel() -> Found {
    let (major, minor) = kernel_version();
    let message = format!("Linux {major}.{minor}");
    if (major, minor) < KERNEL_WANTED {
        let message = format!("{message}: VDBs end with their engine");
        return Err(warning(message, "use Linux 6.9 or later for VDBs that outlive it"));
    }
    Ok(message)
}

fn groups() -> Found {
    let name = format!("offshoot-{}-doctor", std::process::id());
    let tried = Group::create(&name).and_then(|group| {
        let limited = group
            .limit_memory(MEMORY_TRIED)
            .and_then(|()| group.limit_processes(16))
            .and_then(|()| group.share_processors());
        group.remove()?;
        limited
    });
    match tried {
        Ok(()) => Ok("memory, processes and processors can be limited".to_owned()),
        Err(error) => Err(warning(
            format!("memory, processes or processors of VDBs cannot be limited ({error})"),
            "run the engine as root, under systemd with offshoot-vdbs.service of the package",
        )),
    }
}

fn descriptors() -> Found {
    match few_descriptors() {
        Some(failure) => Err((HostCheckState::Warning, failure)),
        None => Ok(format!("{} at once", offshoot_os::limits::descriptors())),
    }
}
