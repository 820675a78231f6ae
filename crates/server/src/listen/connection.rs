//! A connection whose other end has to take what it is sent.

use super::places::Place;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long the other end may take nothing of an answer.
const WRITE_PAUSE: Duration = Duration::from_secs(30);

/// A connection, and the place it takes.
pub(crate) struct Connection<S> {
    stream: S,
    /// Runs while the other end takes nothing.
    stuck: Pin<Box<Sleep>>,
    writing: bool,
    pause: Duration,
    _place: Place,
}

impl<S> Connection<S> {
    pub(crate) fn new(stream: S, place: Place) -> Self {
        Connection::with_pause(stream, place, WRITE_PAUSE)
    }

    fn with_pause(stream: S, place: Place, pause: Duration) -> Self {
        let stuck = Box::pin(sleep(pause));
        Connection { stream, stuck, writing: false, pause, _place: place }
    }

    /// Passes on what a write said, and gives up on one that has waited too long.
    fn progress<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing = false;
            return written;
        }
        if !self.writing {
            self.writing = true;
            let end = Instant::now() + self.pause;
            self.stuck.as_mut().reset(end);
        }
        ready!(self.stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, data);
        self.progress(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.progress(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.progress(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.progress(context, ended)
    }
}

#[cfg(test)]
mod tests;
