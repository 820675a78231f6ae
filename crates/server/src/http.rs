//! The HTTP server for the engine's process: its own threads, blocking methods.

use crate::connections::Bounded;
use crate::router::router;
use crate::{EngineService, Token};
use offshoot_types::{ErrorKind, Failure};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// How long requests in flight may take when the server stops.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// Threads for HTTP itself.
const HTTP_THREADS: usize = 2;
/// Requests that are handled at the same time; more wait.
const REQUESTS_MAX: usize = 64;

/// A running HTTP server. Dropping it also stops it, but waits for requests that the service is
/// handling.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<()>>,
}

impl HttpServer {
    /// Listens on a loopback address and answers for a service.
    ///
    /// # Errors
    /// `invalid_input` for an address that is not loopback; `already_exists` if the port is taken.
    pub fn start(
        listen: SocketAddr,
        service: Arc<dyn EngineService>,
        token: Token,
    ) -> Result<Self, Failure> {
        let listener = bind(listen)?;
        let failed = |error: io::Error| {
            Failure::internal(format!("the HTTP server on {listen} cannot be started: {error}"))
        };
        let address = listener.local_addr().map_err(failed)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(HTTP_THREADS)
            .max_blocking_threads(REQUESTS_MAX)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(failed)?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(listener).map_err(failed)?
        };
        let (stop, stopped) = oneshot::channel();
        let serving = runtime.spawn(serve(listener, service, token, async {
            // An error means that the sender was dropped: that stops the server too.
            let _ = stopped.await;
        }));
        Ok(HttpServer { address, runtime, stop, serving })
    }

    /// The address it answers on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Stops listening, lets requests in flight finish (for at most five seconds).
    pub fn stop(self) {
        let HttpServer { runtime, stop, serving, .. } = self;
        // The receiver is gone only if the server has ended on its own.
        let _ = stop.send(());
        let ended = runtime.block_on(async { tokio::time::timeout(STOP_GRACE, serving).await });
        match ended {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => tracing::warn!(%error, "the HTTP server ended with an error"),
            Ok(Err(error)) => tracing::error!(%error, "the HTTP server panicked"),
            Err(_) => tracing::warn!("requests were cut off as they did not end in time"),
        }
        runtime.shutdown_timeout(Duration::from_millis(100));
    }
}

/// Serves a listener until `shutdown` is done and requests in flight have ended.
///
/// # Errors
/// What the listener says when it cannot accept any more.
pub async fn serve(
    listener: TcpListener,
    service: Arc<dyn EngineService>,
    token: Token,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let listener = Bounded::new(listener);
    axum::serve(listener, router(service, token)).with_graceful_shutdown(shutdown).await
}

pub(crate) fn bind(listen: SocketAddr) -> Result<std::net::TcpListener, Failure> {
    if !listen.ip().is_loopback() {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("will not listen on {listen}: without TLS the token could be read on the way"),
            "listen on loopback, as --listen 127.0.0.1:7640, and reach it from elsewhere through an \
             SSH tunnel",
        ));
    }
    let listener = std::net::TcpListener::bind(listen).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => Failure::new(
            ErrorKind::AlreadyExists,
            format!("another program listens on {listen} already"),
            "choose another port with --listen 127.0.0.1:PORT (0 takes a free one), or stop the other \
             program",
        ),
        _ => Failure::new(
            ErrorKind::HostUnprepared,
            format!("cannot listen on {listen}: {error}"),
            "choose another address with --listen",
        ),
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| Failure::internal(format!("the listener cannot be set up: {error}")))?;
    Ok(listener)
}
