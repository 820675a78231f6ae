//! The HTTP server for the engine's process: its own threads, blocking methods.

use crate::access::Access;
use crate::endpoints::App;
use crate::endpoints::events::STREAMS_MAX;
use crate::listen::{Listeners, accept_until, bind_tcp};
use crate::router::router;
use crate::{Accounts, EngineService, Listen, LocalSocket, Token};
use offshoot_os::local_socket::LocalListener;
use offshoot_types::Failure;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot, watch};
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
    local: Option<LocalListener>,
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl HttpServer {
    /// Listens on an address, and perhaps on a Unix socket, and answers for a service.
    ///
    /// # Errors
    /// `invalid_input` for an address that is not loopback, without TLS; `already_exists` if the port is taken; `host_unprepared` if
    /// the socket cannot be made.
    pub fn start(
        listen: impl Into<Listen>,
        service: Arc<impl EngineService + Accounts>,
        token: Token,
    ) -> Result<Self, Failure> {
        let Listen { tcp, tls, local, names } = listen.into();
        let failed = |error: io::Error| {
            Failure::internal(format!("the HTTP server on {tcp} cannot be started: {error}"))
        };
        let listener = bind_tcp(tcp, tls.is_some())?;
        let address = listener.local_addr().map_err(failed)?;
        let local = local.as_ref().map(LocalSocket::bind).transpose()?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(HTTP_THREADS)
            .max_blocking_threads(REQUESTS_MAX)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(failed)?;
        let listeners = {
            let _inside = runtime.enter();
            Listeners::new(listener, tls, local.as_ref()).map_err(failed)?
        };
        let accounts: Arc<dyn Accounts> = service.clone();
        let access = Access::new(token, names, accounts.clone());
        let (ends, ending) = watch::channel(false);
        let streams = Arc::new(Semaphore::new(STREAMS_MAX));
        let app = router(App { service, accounts, access, streams, ending });
        let (stop, stopped) = oneshot::channel();
        let serving = runtime.spawn(accept_until(listeners, app, async move {
            // An error means that the sender was dropped: that stops the server too.
            let _ = stopped.await;
            // Streams of events end only if they are told to.
            ends.send_replace(true);
        }));
        Ok(HttpServer { address, local, runtime, stop, serving })
    }

    /// The address it answers on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The Unix socket it answers on, if it has one.
    pub fn socket(&self) -> Option<&Path> {
        self.local.as_ref().map(LocalListener::path)
    }

    /// Stops listening, lets requests in flight finish (for at most five seconds).
    pub fn stop(self) {
        let HttpServer { runtime, stop, serving, local, .. } = self;
        // From here on clients learn that no engine runs.
        drop(local);
        // The receiver is gone only if the server has ended on its own.
        let _ = stop.send(());
        let ended = runtime.block_on(async { tokio::time::timeout(STOP_GRACE, serving).await });
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "the HTTP server panicked"),
            Err(_) => tracing::warn!("requests were cut off as they did not end in time"),
        }
        runtime.shutdown_timeout(Duration::from_millis(100));
    }
}
