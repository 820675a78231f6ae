//! Starting the postmaster.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use offshoot_domain::Exposure;
use offshoot_launcher::Launch;
use offshoot_os::bounded_log::LogPlace;
use offshoot_os::process::{Sink, Spec, User};
use offshoot_types::{ErrorKind, Failure};

use crate::tls::{CERTIFICATE_FILE, KEY_FILE};

use super::{PROGRAM, Server, ServerSpec, log, mark};
use crate::installation::program_dirs;

/// Longest path of a Unix socket in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 107;

pub(super) fn start(spec: ServerSpec) -> Result<Server, Failure> {
    check_socket_path(&spec)?;
    if let Some(port) = spec.tcp_port {
        addresses(&spec).into_iter().try_for_each(|address| check_port(address, port))?;
    }
    prepare_dirs(&spec)?;
    let log_start = LogPlace::end_of(&spec.log_file);
    let launched = spec.launcher.launch(Launch {
        name: spec.name.clone(),
        command: command(&spec),
        runtime_dir: spec.runtime_dir.clone(),
        data_dir: spec.data_dir.clone(),
        ends: false,
        own_dirs: vec![spec.socket_dir()],
        program_dirs: program_dirs(&spec.bin_dir).into_iter().chain(library_dir(&spec)).collect(),
        port: spec.socket_port(),
        tcp: spec.tcp_port.is_some(),
        connects: Vec::new(),
        udp: spec.udp,
        reaches: spec.reaches.clone(),
        memory_bytes: spec.memory_bytes,
        processes_max: spec.processes_max,
        share: spec.share,
    })?;
    match launched {
        Some(process) => Ok(Server::new(process, log_start, spec)),
        None => Err(log::start_failure(&spec, &log_start)),
    }
}

/// See [`super::vacate`].
pub(super) fn vacate(spec: &ServerSpec) -> Result<(), Failure> {
    if let Some(found) = spec.launcher.find(&spec.runtime_dir, &mark(&spec.runtime_dir)) {
        return Err(found.runs_already(&spec.name));
    }
    // Only where a server has been started before: looking at every process takes its time.
    if spec.socket_dir().is_dir() {
        spec.launcher.end_orphans(&spec.data_dir, PROGRAM)?;
    }
    Ok(())
}

/// The setting that says where the private socket is, in a form that names its directory.
pub(super) fn socket_setting(dir: &Path) -> (&'static str, String) {
    ("unix_socket_directories", quote_list_item(dir))
}

/// Where what is loaded into it is.
fn library_dir(spec: &ServerSpec) -> Option<PathBuf> {
    Some(spec.preload.as_ref()?.library.parent()?.to_owned())
}

fn command(spec: &ServerSpec) -> Spec {
    let data = spec.data_dir.display();
    let port = spec.socket_port().to_string();
    let mut settings: Vec<(&str, String)> = vec![
        ("listen_addresses", listen_addresses(spec)),
        ("port", port),
        socket_setting(&spec.socket_dir()),
        ("unix_socket_permissions", "0700".to_owned()),
        ("unix_socket_group", String::new()),
        ("hba_file", format!("{data}/pg_hba.conf")),
        ("ident_file", format!("{data}/pg_ident.conf")),
        // That of a configuration is not its own; none at all cannot be said without a complaint in the log.
        ("external_pid_file", spec.socket_dir().join("pid").display().to_string()),
        ("logging_collector", "off".to_owned()),
        ("log_destination", "stderr".to_owned()),
        ("log_line_prefix", "%m [%p] ".to_owned()),
        ("lc_messages", "C".to_owned()),
        ("cluster_name", cluster_name(&spec.name)),
        ("update_process_title", "on".to_owned()),
        ("archive_mode", "off".to_owned()),
        ("bonjour", "off".to_owned()),
    ];
    settings.extend(tls_settings(spec));
    settings.extend(spec.forced.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let mut command = Spec::new(spec.bin_dir.join(PROGRAM)).arg("-D").arg(&spec.data_dir);
    for (name, value) in settings {
        command = command.arg("-c").arg(format!("{name}={value}"));
    }
    command
        .clear_env()
        .env("LC_ALL", "C")
        .preload(spec.preload.clone())
        .cwd("/")
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

fn addresses(spec: &ServerSpec) -> Vec<IpAddr> {
    Exposure::listening(spec.exposure.as_ref())
}

fn listen_addresses(spec: &ServerSpec) -> String {
    let addresses = spec.tcp_port.map_or_else(Vec::new, |_| addresses(spec));
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(",")
}

fn tls_settings(spec: &ServerSpec) -> Vec<(&'static str, String)> {
    if spec.exposure.is_none() {
        return vec![("ssl", "off".to_owned())];
    }
    vec![
        ("ssl", "on".to_owned()),
        ("ssl_cert_file", CERTIFICATE_FILE.to_owned()),
        ("ssl_key_file", KEY_FILE.to_owned()),
        ("ssl_ca_file", String::new()),
        ("ssl_crl_file", String::new()),
        ("ssl_min_protocol_version", "TLSv1.2".to_owned()),
    ]
}

/// Asks before the server does, for an error that can be understood. Listening is the test itself,
/// with the option the server uses too, so that sessions that just closed do not count.
pub(crate) fn check_port(address: IpAddr, port: u16) -> Result<(), Failure> {
    match TcpListener::bind((address, port)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Err(log::port_taken(port)),
        Err(error) => Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("cannot listen on {}: {error}", SocketAddr::new(address, port)),
            "choose another port with --port, or an address of this host with --listen",
        )),
    }
}

fn prepare_dirs(spec: &ServerSpec) -> Result<(), Failure> {
    let user = spec.launcher.user_of(&spec.data_dir)?;
    make_runtime_dirs(&spec.runtime_dir, &spec.socket_dir(), user.as_ref())?;
    // A socket of a server that was killed: another server would refuse to replace it while the
    // pid in its lock file belongs to any process.
    let name = format!(".s.PGSQL.{}", spec.socket_port());
    for name in [format!("{name}.lock"), name] {
        let _ = std::fs::remove_file(spec.socket_dir().join(name));
    }
    Ok(())
}

/// Makes a runtime directory, and in it the one that belongs to the process.
pub(crate) fn make_runtime_dirs(
    dir: &Path,
    own: &Path,
    user: Option<&User>,
) -> Result<(), Failure> {
    let made = make_dir(dir, 0o711, None).and_then(|()| make_dir(own, 0o700, user));
    made.map_err(|error| {
        Failure::new(
            ErrorKind::HostUnprepared,
            format!("cannot prepare the runtime directory {}: {error}", dir.display()),
            "make sure that the engine may write there",
        )
    })
}

/// A directory of this mode, and of this user.
pub(crate) fn make_dir(path: &Path, mode: u32, owner: Option<&User>) -> std::io::Result<()> {
    std::fs::create_dir_all(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
    match owner {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}
