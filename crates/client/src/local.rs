//! Requests by the Unix socket of a pool. Before anything is sent, the kernel says who answers: in the place of an
//! engine that ended there may be somebody else's program.

use offshoot_os::local_socket;
use offshoot_os::process::User;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};

/// Connects to the engine of a pool.
#[derive(Debug)]
pub(crate) struct LocalConnector {
    socket: PathBuf,
}

/// Somebody else's program answers.
#[derive(Debug)]
pub(crate) struct Stranger {
    uid: u32,
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let uid = self.uid;
        write!(f, "what answers is a program of the user {uid}, who does not own the pool")
    }
}

impl std::error::Error for Stranger {}

impl LocalConnector {
    pub(crate) fn new(socket: &Path) -> Self {
        LocalConnector { socket: socket.to_owned() }
    }

    /// A connection to a program of the pool's owner, of root, or of the user who asks.
    fn connect(&self) -> io::Result<UnixStream> {
        let stream = local_socket::connect(&self.socket)?;
        let uid = offshoot_os::descriptors::peer(&stream)?.uid;
        let owner = self.socket.parent().map(std::fs::metadata).transpose()?;
        if uid == 0 || uid == User::own_uid() || owner.is_some_and(|owner| owner.uid() == uid) {
            return Ok(stream);
        }
        Err(io::Error::other(Stranger { uid }))
    }
}

impl Connector for LocalConnector {
    type Out = LocalTransport;

    fn connect(
        &self,
        details: &ConnectionDetails,
        _chained: Option<()>,
    ) -> Result<Option<LocalTransport>, ureq::Error> {
        let stream = LocalConnector::connect(self)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(LocalTransport { stream, buffers }))
    }
}

/// A connection to the engine.
#[derive(Debug)]
pub(crate) struct LocalTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for LocalTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.set_write_timeout(limit(timeout))?;
        let output = &self.buffers.output()[..amount];
        self.stream.write_all(output).map_err(|error| of_io(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.set_read_timeout(limit(timeout))?;
        let got = loop {
            match self.stream.read(self.buffers.input_append_buf()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                got => break got.map_err(|error| of_io(error, timeout))?,
            }
        };
        self.buffers.input_appended(got);
        Ok(got > 0)
    }

    fn is_open(&mut self) -> bool {
        // Connections are not kept.
        false
    }
}

fn limit(timeout: NextTimeout) -> Option<Duration> {
    timeout.not_zero().map(|limit| *limit)
}

fn of_io(error: io::Error, timeout: NextTimeout) -> ureq::Error {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ureq::Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}

/// There is nothing to look up.
#[derive(Debug)]
pub(crate) struct NoLookup;

impl Resolver for NoLookup {
    fn resolve(
        &self,
        _uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        Ok(self.empty())
    }
}

#[cfg(test)]
mod tests;
