//! The process: its sockets, its signals, its end.

use crate::control_socket;
use crate::hub::{Hub, Phase};
use crate::messages::{Fatal, TOO_MANY};
use crate::session::attend;
use offshoot_types::{ErrorKind, Failure};
use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use std::fs::Permissions;
use std::io;
use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

/// Most clients at a time.
const CLIENTS_MAX: u64 = 5_000;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long clients have to hear that it ends.
const END_TIMEOUT: Duration = Duration::from_millis(800);
/// When a silent client's host is asked whether it is still there, how often again, and how many times in vain.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(120);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);
const KEEPALIVE_COUNT: u32 = 6;
/// Before connections are accepted again when the system has no room for them.
const PAUSE: Duration = Duration::from_millis(50);

/// What a gateway is started with: an argument of its process, so never a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Of the VDB, for messages.
    pub name: String,
    /// Where clients reach it.
    pub listen: Vec<SocketAddr>,
    /// Where its control socket is; what is there is replaced.
    pub control: PathBuf,
    /// The user who may control it; nobody else may.
    pub controller: u32,
}

/// Runs a gateway until it is told to end. Once all sockets are bound it opens no file and binds nothing: it accepts
/// connections, and makes some to 127.0.0.1.
///
/// # Errors
/// `AlreadyExists` when an address is taken, `HostUnprepared` when one cannot be had for another reason, `Internal` for
/// what the system refuses.
pub fn run(options: Options) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refused("starting a gateway", &error))?;
    let ended = runtime.block_on(serve(options));
    runtime.shutdown_background();
    ended
}

async fn serve(options: Options) -> Result<(), Failure> {
    let socket = bind_control(&options.control);
    let socket = socket.map_err(|error| refused("binding a gateway's control socket", &error))?;
    let listeners: Vec<_> = options.listen.iter().map(|at| bind(*at)).collect::<Result<_, _>>()?;
    let signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [terminate, interrupt, hangup] = signals.map(signal);
    let told = |error| refused("listening to signals", &error);
    // The last two are heard, and nothing follows.
    let (mut terminate, _ignored) = (terminate.map_err(told)?, [interrupt, hangup]);
    let hub = Hub::new(options.name);
    tokio::spawn(control_socket::listen(Arc::clone(&hub), socket, options.controller));
    for listener in listeners {
        tokio::spawn(accept(Arc::clone(&hub), listener));
    }
    let mut phase = hub.phase();
    tokio::select! {
        _ = terminate.recv() => hub.end(),
        _ = phase.wait_for(|phase| matches!(phase, Phase::Ended)) => {}
    }
    let farewell = async {
        while hub.client_count() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
        // Whoever told it to end is answered.
        sleep(Duration::from_millis(20)).await;
    };
    let _ = tokio::time::timeout(END_TIMEOUT, farewell).await;
    Ok(())
}

/// Its directory is the gateway's own. In a cell there is no `/proc` by which longer paths are reached.
fn bind_control(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(socket)
}

fn bind(at: SocketAddr) -> Result<TcpListener, Failure> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let listener = socket.and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(at)?;
        socket.listen(BACKLOG)
    });
    listener.map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::AddrInUse => ErrorKind::AlreadyExists,
            _ => ErrorKind::HostUnprepared,
        };
        Failure::new(code, format!("a gateway cannot listen at {at}: {error}"), "")
    })
}

async fn accept(hub: Arc<Hub>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => receive(&hub, stream, peer),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

fn receive(hub: &Arc<Hub>, stream: TcpStream, peer: SocketAddr) {
    let Some(entered) = hub.enter(CLIENTS_MAX) else {
        let fatal = Fatal::new(TOO_MANY, "sorry, too many clients already");
        // It is short, and the connection is fresh: there is room for it. Whoever does not get it is closed all the same.
        let _ = stream.into_std().and_then(|mut stream| {
            stream.write_all(&fatal.encode())?;
            stream.shutdown(Shutdown::Write)
        });
        return;
    };
    // Without either it works, too.
    let _ = stream.set_nodelay(true);
    let _ = keep_alive(&stream);
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        attend(hub, stream, peer).await;
        drop(entered);
    });
}

/// Has the system find out when a client's host is gone.
fn keep_alive(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_COUNT)
}

fn refused(doing: &str, error: &io::Error) -> Failure {
    Failure::internal(format!("{doing}: {error}"))
}
