//! How requests travel by any stream whose reads and writes can be limited in time.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, LazyBuffers, NextTimeout, Transport,
};

/// A stream whose reads and writes end.
pub(crate) trait Timed: Read + Write + Send + Sync + 'static {
    /// Whether what is sent is sealed on the way.
    const IS_TLS: bool;

    /// How long a read may take; none: without end.
    fn limit_reads(&self, limit: Option<Duration>) -> io::Result<()>;
    /// How long a write may take.
    fn limit_writes(&self, limit: Option<Duration>) -> io::Result<()>;
}

impl Timed for UnixStream {
    const IS_TLS: bool = false;

    fn limit_reads(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(limit)
    }

    fn limit_writes(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_write_timeout(limit)
    }
}

impl Timed for rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    const IS_TLS: bool = true;

    fn limit_reads(&self, limit: Option<Duration>) -> io::Result<()> {
        self.sock.set_read_timeout(limit)
    }

    fn limit_writes(&self, limit: Option<Duration>) -> io::Result<()> {
        self.sock.set_write_timeout(limit)
    }
}

/// A connection to the engine.
pub(crate) struct StreamTransport<S> {
    stream: S,
    buffers: LazyBuffers,
}

impl<S> StreamTransport<S> {
    pub(crate) fn new(stream: S, details: &ConnectionDetails<'_>) -> Self {
        let sizes = details.config;
        let buffers = LazyBuffers::new(sizes.input_buffer_size(), sizes.output_buffer_size());
        StreamTransport { stream, buffers }
    }
}

impl<S> fmt::Debug for StreamTransport<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamTransport")
    }
}

impl<S: Timed> Transport for StreamTransport<S> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.limit_writes(limit(timeout))?;
        let output = &self.buffers.output()[..amount];
        let written = self.stream.write_all(output).and_then(|()| self.stream.flush());
        written.map_err(|error| of_io(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.limit_reads(limit(timeout))?;
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

    fn is_tls(&self) -> bool {
        S::IS_TLS
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
