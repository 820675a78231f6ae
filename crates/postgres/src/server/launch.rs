//! Starting the postmaster.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use offshoot_os::process::{Sink, Spec, User};
use offshoot_types::{ErrorKind, Failure};
use parking_lot::Mutex;

use super::{Server, ServerSpec, log, orphans, record};

/// Longest path of a Unix socket in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 107;

pub(super) fn start(spec: ServerSpec) -> Result<Server, Failure> {
    check_socket_path(&spec)?;
    if let Some(found) = record::find(&spec.runtime_dir) {
        return Err(Failure::new(
            ErrorKind::AlreadyExists,
            format!("the server {} runs already (pid {})", spec.name, found.process.pid),
            "stop it first",
        ));
    }
    if let Some(port) = spec.tcp_port {
        check_port(port)?;
    }
    prepare_dirs(&spec)?;
    orphans::end(&spec.data_dir)?;
    let log_start = log::length(&spec.log_file);
    let child = command(&spec).spawn().map_err(|error| {
        Failure::new(
            ErrorKind::HostUnprepared,
            error.to_string(),
            "install the server programs of this version of PostgreSQL",
        )
    })?;
    let Some(process) = child.process_id() else {
        return Err(log::start_failure(&spec, log_start));
    };
    let mut server =
        Server { process, child: Some(child), log_start, role: Mutex::new(None), spec };
    if let Err(failure) = record::write(&server.spec, process) {
        let _ = server.stop(super::StopMode::Immediate, std::time::Duration::from_secs(10));
        return Err(failure);
    }
    Ok(server)
}

fn command(spec: &ServerSpec) -> Spec {
    let data = spec.data_dir.display();
    let socket_dir = spec.socket_dir();
    let port = spec.socket_port().to_string();
    let mut settings: Vec<(&str, String)> = vec![
        ("listen_addresses", spec.tcp_port.map_or("", |_| "127.0.0.1").to_owned()),
        ("port", port),
        ("unix_socket_directories", quote_list_item(&socket_dir)),
        ("unix_socket_permissions", "0700".to_owned()),
        ("unix_socket_group", String::new()),
        ("hba_file", format!("{data}/pg_hba.conf")),
        ("ident_file", format!("{data}/pg_ident.conf")),
        ("external_pid_file", String::new()),
        ("logging_collector", "off".to_owned()),
        ("log_destination", "stderr".to_owned()),
        ("log_line_prefix", "%m [%p] ".to_owned()),
        ("lc_messages", "C".to_owned()),
        ("cluster_name", cluster_name(&spec.name)),
        ("update_process_title", "on".to_owned()),
        ("archive_mode", "off".to_owned()),
        ("ssl", "off".to_owned()),
        ("bonjour", "off".to_owned()),
    ];
    settings.extend(spec.forced.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let mut command = Spec::new(spec.bin_dir.join("postgres")).arg("-D").arg(&spec.data_dir);
    for (name, value) in settings {
        command = command.arg("-c").arg(format!("{name}={value}"));
    }
    command
        .clear_env()
        .env("LC_ALL", "C")
        .cwd("/")
        .user(spec.user.clone())
        .stdout(Sink::File(spec.log_file.clone()))
        .stderr(Sink::File(spec.log_file.clone()))
}

/// The list of socket directories is split at commas unless quoted.
fn quote_list_item(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('"', "\"\""))
}

/// At most 63 plain characters.
fn cluster_name(name: &str) -> String {
    let plain = |letter: char| if (' '..='~').contains(&letter) { letter } else { '?' };
    format!("offshoot {name}").chars().map(plain).take(63).collect()
}

fn check_socket_path(spec: &ServerSpec) -> Result<(), Failure> {
    // As the server names it, with its lock file beside it.
    let socket = spec.socket_dir().join(format!(".s.PGSQL.{}", spec.socket_port()));
    let length = socket.as_os_str().as_bytes().len();
    if length <= SOCKET_PATH_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::new(
        ErrorKind::HostUnprepared,
        format!(
            "the path of the socket {} has {length} bytes; a socket's path may have \
             {SOCKET_PATH_BYTES_MAX}",
            socket.display()
        ),
        "put the pool, or its runtime directory, at a shorter path",
    ))
}

/// Asks before the server does, for an error that can be understood. Listening is the test itself,
/// with the option the server uses too, so that sessions that just closed do not count.
fn check_port(port: u16) -> Result<(), Failure> {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(log::port_taken(port)),
        Err(error) => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("cannot listen on 127.0.0.1:{port}: {error}"),
            "choose another port with --port",
        )),
    }
}

fn prepare_dirs(spec: &ServerSpec) -> Result<(), Failure> {
    make_dir(&spec.runtime_dir, 0o711, None)
        .and_then(|()| make_dir(&spec.socket_dir(), 0o700, spec.user.as_ref()))
        .map_err(|error| {
            let dir = spec.runtime_dir.display();
            Failure::new(
                ErrorKind::HostUnprepared,
                format!("cannot prepare the runtime directory {dir}: {error}"),
                "make sure that the engine may write there",
            )
        })?;
    // A socket of a server that was killed: another server would refuse to replace it while the
    // pid in its lock file belongs to any process.
    let name = format!(".s.PGSQL.{}", spec.socket_port());
    for name in [format!("{name}.lock"), name] {
        let _ = std::fs::remove_file(spec.socket_dir().join(name));
    }
    Ok(())
}

fn make_dir(path: &Path, mode: u32, owner: Option<&User>) -> std::io::Result<()> {
    std::fs::create_dir_all(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    match owner {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}
