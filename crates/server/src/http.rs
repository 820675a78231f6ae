//! The HTTP server as the engine's process uses it: own threads, blocking methods.

use crate::{EngineService, Token};
use offshoot_types::Failure;
use std::net::SocketAddr;
use std::sync::Arc;

/// A running HTTP server. Dropping it stops it.
#[derive(Debug)]
pub struct HttpServer {}

impl HttpServer {
    /// Listens on a loopback address and answers for a service.
    ///
    /// # Errors
    /// `invalid_input` for an address that is not loopback; `already_exists` where the port is taken.
    pub fn start(
        _listen: SocketAddr,
        _service: Arc<dyn EngineService>,
        _token: Token,
    ) -> Result<Self, Failure> {
        todo!()
    }

    /// The address it answers on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        todo!()
    }

    /// Blocks until the process is sent SIGTERM or SIGINT.
    pub fn wait_for_signal(&self) -> Result<(), Failure> {
        todo!()
    }

    /// Stops listening, lets requests under way end (for at most five seconds).
    pub fn stop(self) {
        todo!()
    }
}
