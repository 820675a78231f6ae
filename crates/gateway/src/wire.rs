//! The connection of a client, with or without TLS, and that to the server.

use crate::buffer::Buffer;
use crate::hub::Open;
use crate::messages::{Frame, frame_at};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A client's bytes.
#[derive(Debug)]
pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_read(cx, into),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(cx),
        }
    }
}

/// One end of a session: the connection and what was read from it.
#[derive(Debug)]
pub(crate) struct End<S> {
    pub(crate) stream: S,
    pub(crate) unread: Buffer,
    /// Of a connection to the server: counted as long as it is open.
    open: Option<Open>,
}

/// The end of the client.
pub(crate) type Client = End<Wire>;
/// The end of the server.
pub(crate) type Server = End<TcpStream>;

impl<S: AsyncRead + AsyncWrite + Unpin> End<S> {
    pub(crate) fn new(stream: S, open: Option<Open>) -> Self {
        End { stream, unread: Buffer::default(), open }
    }

    /// Whether this end counts as a connection to the server.
    pub(crate) fn is_counted(&self) -> bool {
        self.open.is_some()
    }

    /// Reads once; returns 0 at the end of the stream. May be dropped and begun again.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        poll_fn(|cx| self.unread.poll_fill(cx, Pin::new(&mut self.stream))).await
    }

    /// The next whole frame, of at most so many bytes. May be dropped and begun again.
    pub(crate) async fn frame(&mut self, bytes_max: usize) -> io::Result<Frame> {
        loop {
            match frame_at(self.unread.filled(), bytes_max)? {
                Ok(frame) => {
                    self.unread.consume(frame.bytes.len());
                    return Ok(frame);
                }
                Err(needed) => self.unread.reserve(needed),
            }
            if self.fill().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Writes all of it, and out.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }
}
