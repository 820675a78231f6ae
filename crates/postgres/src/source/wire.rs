//! The bytes that a source sends to a session, watched before the client library sees them.
//!
//! A source is trusted with nothing: it may ask for the password in the clear, or answer without end.
//! The library would send the one and store the other. So the stream below it (above TLS, if there is
//! TLS) reads along in the [message formats](https://www.postgresql.org/docs/current/protocol-message-formats.html)
//! and fails as soon as the source goes too far ([`Breach`]). How long an answer may take is the
//! session's matter.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::SourceAddress;

/// Most bytes before the source is ready for the first statement.
const GREETING_BYTES_MAX: u64 = 256 << 10;
/// Most bytes of one answer; the largest by far that is asked for are all settings, about 100 KiB.
const ANSWER_BYTES_MAX: u64 = 16 << 20;
/// Most rows of one answer.
const ROWS_MAX: u64 = 100_000;
/// Most bytes of messages that nobody asked for (notices, parameters) in one answer.
const UNASKED_BYTES_MAX: u64 = 256 << 10;
/// Most changes of parameters in one session: the library keeps each.
const PARAMETERS_MAX: u64 = 1000;

/// A peer that has vanished is noticed after this long without a word, …
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// … or this long after it was sent something.
const UNANSWERED_MS_MAX: u32 = 25_000;

/// What a source did that no source may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breach {
    /// It asked for the password, or for a hash that is as good as it, in a way that only TLS would protect.
    Exposed,
    /// An answer has too many bytes or rows.
    Endless,
    /// It sent something that is no message.
    Garbled,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Breach::Exposed => "it asks for the password in the clear",
            Breach::Endless => "its answer does not end",
            Breach::Garbled => "its answer is not PostgreSQL's protocol",
        })
    }
}

impl std::error::Error for Breach {}

/// What a source did that ended its connection: the library does not pass it on to those who wait for an
/// answer.
pub(crate) type Noted = Arc<OnceLock<Breach>>;

/// A connection of any kind.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// Connects to the address's socket or port.
pub(super) async fn dial(address: &SourceAddress) -> io::Result<Box<dyn Wire>> {
    if address.host.starts_with('/') {
        let socket = Path::new(&address.host).join(format!(".s.PGSQL.{}", address.port));
        return Ok(Box::new(UnixStream::connect(socket).await?));
    }
    let stream = TcpStream::connect((address.host.as_str(), address.port)).await?;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEP_ALIVE)?;
    sockopt::set_tcp_user_timeout(&stream, UNANSWERED_MS_MAX)?;
    Ok(Box::new(stream))
}

/// A stream that is read along.
pub(crate) struct Guard<S> {
    inner: S,
    watch: Watch,
    noted: Noted,
}

impl<S> Guard<S> {
    /// Before TLS is negotiated if `asks_for_tls`. `exposed` says whether the source may ask for the
    /// password in the clear.
    pub(crate) fn new(inner: S, asks_for_tls: bool, exposed: bool, noted: Noted) -> Guard<S> {
        let skip = u64::from(asks_for_tls);
        Guard { inner, watch: Watch { skip, exposed, ..Watch::default() }, noted }
    }

    /// With other limits than those of a source.
    pub(crate) fn within(mut self, limits: Limits) -> Guard<S> {
        self.watch.limits = limits;
        self
    }
}

/// How much may come in one answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of all messages.
    pub answer_bytes: u64,
    /// Bytes of messages that nobody asked for.
    pub unasked_bytes: u64,
    /// Rows.
    pub rows: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { answer_bytes: ANSWER_BYTES_MAX, unasked_bytes: UNASKED_BYTES_MAX, rows: ROWS_MAX }
    }
}

/// What has been seen of the stream.
#[derive(Debug, Default)]
struct Watch {
    /// Bytes that belong to no message: the answer to the question for TLS.
    skip: u64,
    /// Whether a password may be asked for in the clear.
    exposed: bool,
    /// The head of the present message, as far as it has come: kind, length, first number.
    head: [u8; 9],
    head_len: usize,
    /// Bytes of the message that are still to come.
    left: u64,
    /// Whether the source was ready once.
    greeted: bool,
    limits: Limits,
    answer_bytes: u64,
    unasked_bytes: u64,
    rows: u64,
    parameters: u64,
}

/// Kind and length.
const FRAME_LEN: usize = 5;

impl Watch {
    /// Another answer begins.
    fn begin(&mut self) {
        if self.greeted {
            (self.answer_bytes, self.unasked_bytes, self.rows) = (0, 0, 0);
        }
    }

    /// Reads along.
    fn see(&mut self, mut bytes: &[u8]) -> Result<(), Breach> {
        let skipped = bytes.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
        bytes = &bytes[skipped..];
        self.skip -= skipped as u64;
        while let Some((&first, rest)) = bytes.split_first() {
            if self.head_len < FRAME_LEN {
                self.head[self.head_len] = first;
                self.head_len += 1;
                bytes = rest;
                if self.head_len == FRAME_LEN {
                    self.begin_message()?;
                }
                continue;
            }
            // The method of authentication decides before the library acts on it.
            if self.head[0] == b'R' && self.head_len < self.head.len() {
                self.head[self.head_len] = first;
                self.head_len += 1;
                if self.head_len == self.head.len() {
                    self.check_method()?;
                }
            }
            let taken = match self.head[0] {
                b'R' => 1,
                _ => bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX)),
            };
            bytes = &bytes[taken..];
            self.left -= taken as u64;
            if self.left == 0 {
                self.head_len = 0;
            }
        }
        Ok(())
    }

    /// The kind and the length of a message are known.
    fn begin_message(&mut self) -> Result<(), Breach> {
        let [kind, length @ ..] = [0, 1, 2, 3, 4].map(|at: usize| self.head[at]);
        let length = u32::from_be_bytes(length);
        self.left = u64::from(length.checked_sub(4).ok_or(Breach::Garbled)?);
        if self.left == 0 {
            self.head_len = 0;
        }
        let size = self.left + FRAME_LEN as u64;
        self.answer_bytes += size;
        match kind {
            b'D' => self.rows += 1,
            b'N' | b'A' => self.unasked_bytes += size,
            b'S' => {
                self.unasked_bytes += size;
                self.parameters += 1;
            }
            b'Z' => self.greeted = true,
            // Authentication is over when the source is ready, and each of its messages has a method.
            b'R' if self.greeted || self.left < 4 => return Err(Breach::Garbled),
            _ => {}
        }
        let bytes_max = if self.greeted { self.limits.answer_bytes } else { GREETING_BYTES_MAX };
        if self.answer_bytes > bytes_max
            || self.unasked_bytes > self.limits.unasked_bytes
            || self.rows > self.limits.rows
            || self.parameters > PARAMETERS_MAX
        {
            return Err(Breach::Endless);
        }
        Ok(())
    }

    fn check_method(&self) -> Result<(), Breach> {
        const CLEAR_TEXT: u8 = 3;
        const MD5: u8 = 5;
        let [.., a, b, c, method] = self.head;
        let reveals = [a, b, c] == [0; 3] && [CLEAR_TEXT, MD5].contains(&method);
        if reveals && !self.exposed { Err(Breach::Exposed) } else { Ok(()) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        let seen = this.watch.see(&buffer.filled()[before..]);
        Poll::Ready(seen.map_err(|breach| {
            let _ = this.noted.set(breach);
            io::Error::new(io::ErrorKind::InvalidData, breach)
        }))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.watch.begin();
        Pin::new(&mut this.inner).poll_write(context, buffer)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

impl<S: TlsStream + Unpin> TlsStream for Guard<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.inner.channel_binding()
    }
}

/// Makes TLS below the guard instead of above it.
pub(super) struct TlsBelow<T>(pub(super) T);

impl<T, S> TlsConnect<Guard<S>> for TlsBelow<T>
where
    T: TlsConnect<S>,
    T::Future: Send + 'static,
    T::Stream: 'static,
    T::Error: 'static,
{
    type Stream = Guard<T::Stream>;
    type Error = T::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Stream, Self::Error>> + Send>>;

    fn connect(self, stream: Guard<S>) -> Self::Future {
        let Guard { inner, watch, noted } = stream;
        let made = self.0.connect(inner);
        Box::pin(async move { Ok(Guard::new(made.await?, false, watch.exposed, noted)) })
    }
}

#[cfg(test)]
mod tests;
