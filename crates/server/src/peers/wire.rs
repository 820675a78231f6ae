//! A connection by TLS to another engine, that is read and written by one thread.

use crate::listen::Place;
use offshoot_engine::Wire;
use rustls::{ConnectionCommon, SideData, StreamOwned};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::ops::DerefMut;
use std::time::Duration;

/// How long one attempt to read or write waits.
const PAUSE: Duration = Duration::from_millis(250);

/// A connection that counts what goes over the network.
pub(crate) struct Counted {
    stream: TcpStream,
    sent: u64,
    received: u64,
    /// Of a caller.
    _place: Option<Place>,
}

impl Counted {
    pub(crate) fn new(stream: TcpStream, place: Option<Place>) -> Counted {
        Counted { stream, sent: 0, received: 0, _place: place }
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.received += count as u64;
        Ok(count)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.sent += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A connection after its handshake.
pub(crate) struct TlsWire<C: Sized>(StreamOwned<C, Counted>);

impl<C, S> TlsWire<C>
where
    C: DerefMut<Target = ConnectionCommon<S>>,
    S: SideData,
{
    pub(crate) fn new(connection: C, stream: Counted) -> io::Result<TlsWire<C>> {
        stream.stream.set_read_timeout(Some(PAUSE))?;
        stream.stream.set_write_timeout(Some(PAUSE))?;
        stream.stream.set_nodelay(true)?;
        Ok(TlsWire(StreamOwned::new(connection, stream)))
    }
}

impl<C, S> Read for TlsWire<C>
where
    C: DerefMut<Target = ConnectionCommon<S>>,
    S: SideData,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<C, S> Write for TlsWire<C>
where
    C: DerefMut<Target = ConnectionCommon<S>>,
    S: SideData,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<C, S> Wire for TlsWire<C>
where
    C: DerefMut<Target = ConnectionCommon<S>> + Send,
    S: SideData,
{
    fn pause_ms(&self) -> u64 {
        PAUSE.as_millis() as u64
    }

    fn sent_bytes(&self) -> u64 {
        self.0.sock.sent
    }

    fn received_bytes(&self) -> u64 {
        self.0.sock.received
    }
}
