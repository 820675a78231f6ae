//! Accepting connections and speaking HTTP on them.

use super::connection::Connection;
use super::peer::Peer;
use super::places::{Place, Places};
use crate::peers::{self, ALPN, Door, Shown};
use crate::tls::Identity;
use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use offshoot_os::local_socket::LocalListener;
use rustls::server::Acceptor;
use std::future::{Future, pending};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

/// How long the headers of a request may take, from the first moment that the connection has nothing else to do. So
/// idle connections end after it, too.
pub(crate) const HEADERS_WITHIN: Duration = Duration::from_secs(10);
/// Room for the headers of a request, and for how many.
const HEADER_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;
/// How long to wait when the system has nothing left to accept with.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(200);

/// What listens, within a runtime.
pub(crate) struct Listeners {
    tcp: TcpListener,
    tls: Option<Identity>,
    local: Option<UnixListener>,
}

impl Listeners {
    /// Takes over what listens already. Called within a runtime.
    pub(crate) fn new(
        tcp: std::net::TcpListener,
        tls: Option<Identity>,
        local: Option<&LocalListener>,
    ) -> io::Result<Listeners> {
        let local = match local {
            Some(local) => Some(UnixListener::from_std(local.socket()?)?),
            None => None,
        };
        Ok(Listeners { tcp: TcpListener::from_std(tcp)?, tls, local })
    }

    async fn accept(&self) -> io::Result<(Stream, Peer)> {
        tokio::select! {
            accepted = self.tcp.accept() => {
                let (stream, address) = accepted?;
                Ok((Stream::Tcp(stream), Peer::Remote(address)))
            }
            accepted = accept_local(self.local.as_ref()) => accepted,
        }
    }
}

async fn accept_local(listener: Option<&UnixListener>) -> io::Result<(Stream, Peer)> {
    let Some(listener) = listener else { return pending().await };
    let (stream, _) = listener.accept().await?;
    let who = stream.peer_cred()?;
    let peer = Peer::Local { uid: who.uid(), pid: who.pid().unwrap_or_default() };
    Ok((Stream::Local(stream), peer))
}

enum Stream {
    Tcp(TcpStream),
    Local(UnixStream),
}

/// Serves connections until `stop` is done and requests in flight have ended.
pub(crate) async fn accept_until(
    listeners: Listeners,
    app: Router,
    stop: impl Future<Output = ()>,
) {
    let (remote, local) = (Places::remote(), Places::local());
    let ending = GracefulShutdown::new();
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listeners.accept() => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let tls = listeners.tls.as_ref();
                admit(stream, peer, tls, &app, [&remote, &local], ending.watcher());
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(SHORTAGE_PAUSE).await;
            }
        }
    }
    drop(listeners);
    ending.shutdown().await;
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | NotConnected)
}

/// Serves a connection if there is a place for it, and closes it at once if not.
fn admit(
    stream: Stream,
    peer: Peer,
    tls: Option<&Identity>,
    app: &Router,
    [remote, local]: [&Arc<Places>; 2],
    watcher: Watcher,
) {
    let app = app.clone();
    match stream {
        Stream::Tcp(stream) => {
            let Some(place) = remote.take(&peer) else { return };
            // Answers are short: nothing is gained by waiting for more of them.
            let _ = stream.set_nodelay(true);
            match tls {
                None => tokio::spawn(speak(stream, peer, place, app, watcher)),
                Some(identity) => {
                    let identity = identity.clone();
                    tokio::spawn(speak_by_tls(identity, stream, peer, place, app, watcher))
                }
            };
        }
        Stream::Local(stream) => {
            let Some(place) = local.take(&peer) else { return };
            tokio::spawn(speak(stream, peer, place, app, watcher));
        }
    }
}

/// As [`speak`], once the other end has done its part of the handshake; unless it is another engine.
async fn speak_by_tls(
    identity: Identity,
    stream: TcpStream,
    peer: Peer,
    place: Place,
    app: Router,
    watcher: Watcher,
) {
    let begin = LazyConfigAcceptor::new(Acceptor::default(), stream);
    let begun = match tokio::time::timeout(HEADERS_WITHIN, begin).await {
        Ok(Ok(begun)) => begun,
        Ok(Err(error)) => return tracing::debug!(%peer, %error, "no TLS"),
        Err(_) => return tracing::debug!(%peer, "no TLS in time"),
    };
    let asked_for = |protocol| {
        begun.client_hello().alpn().is_some_and(|mut all| all.any(|one| one == protocol))
    };
    match identity.door.clone() {
        Some(door) if asked_for(ALPN) => let_in(door, begun, peer, place).await,
        _ => {
            let begun = begun.into_stream(identity.config.clone());
            match tokio::time::timeout(HEADERS_WITHIN, begun).await {
                Ok(Ok(stream)) => speak(stream, peer, place, app, watcher).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS"),
                Err(_) => tracing::debug!(%peer, "no TLS in time"),
            }
        }
    }
}

/// Hands another engine's connection on.
async fn let_in(door: Arc<Door>, begun: StartHandshake<TcpStream>, peer: Peer, place: Place) {
    let reading = door.clone();
    let asked = begun.client_hello().alpn().and_then(peers::asked_for);
    // The key is in the catalog.
    let config = move || reading.config(asked.as_deref());
    let Shown { config, own } = match tokio::task::spawn_blocking(config).await {
        Ok(Ok(shown)) => shown,
        Ok(Err(failure)) => return tracing::error!(%peer, %failure, "no key for peers"),
        Err(error) => return tracing::error!(%peer, %error, "no key for peers"),
    };
    match tokio::time::timeout(HEADERS_WITHIN, begun.into_stream(config)).await {
        Ok(Ok(stream)) => {
            if let Err(error) = door.let_in(stream, place, own) {
                tracing::warn!(%peer, %error, "another engine was not let in");
            }
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS of an engine"),
        Err(_) => tracing::debug!(%peer, "no TLS of an engine in time"),
    }
}

async fn speak<S>(stream: S, peer: Peer, place: Place, app: Router, watcher: Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = WithPeer { app: TowerToHyperService::new(app), peer };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(Connection::new(stream, place)), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

/// Tells the application with each request who sent it.
struct WithPeer {
    app: TowerToHyperService<Router>,
    peer: Peer,
}

impl hyper::service::Service<Request<Incoming>> for WithPeer {
    type Response =
        <TowerToHyperService<Router> as hyper::service::Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Router> as hyper::service::Service<Request<Incoming>>>::Error;
    type Future =
        <TowerToHyperService<Router> as hyper::service::Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer);
        self.app.call(request)
    }
}
