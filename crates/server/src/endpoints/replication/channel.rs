//! Between what blocks (the engine reads and writes archives) and what must not (HTTP): channels of a few chunks, so that
//! the slower side sets the pace.

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use offshoot_types::{ErrorKind, Failure};
use std::io::{self, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Chunks that wait.
const CHUNKS: usize = 8;
/// Bytes of a chunk that is sent.
const CHUNK_BYTES: usize = 256 << 10;

/// Bytes that come, read as a stream; none: all came.
pub(super) struct Incoming {
    chunks: Receiver<io::Result<Option<Bytes>>>,
    chunk: Bytes,
    ended: bool,
}

impl Incoming {
    pub(super) fn new() -> (Sender<io::Result<Option<Bytes>>>, Incoming) {
        let (sender, chunks) = channel(CHUNKS);
        (sender, Incoming { chunks, chunk: Bytes::new(), ended: false })
    }
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() && !self.ended {
            match self.chunks.blocking_recv() {
                Some(Ok(Some(chunk))) => self.chunk = chunk,
                Some(Ok(None)) => self.ended = true,
                // Whoever sent it is gone in the middle.
                Some(Err(_)) | None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let len = buffer.len().min(self.chunk.len());
        buffer[..len].copy_from_slice(&self.chunk.split_to(len));
        Ok(len)
    }
}

/// Bytes that go, written as a stream.
pub(super) struct Outgoing {
    chunks: Sender<io::Result<Bytes>>,
    chunk: Vec<u8>,
}

/// The body that they become.
pub(super) struct Chunks(Receiver<io::Result<Bytes>>);

pub(super) fn outgoing() -> (Outgoing, Chunks) {
    let (sender, chunks) = channel(CHUNKS);
    (Outgoing { chunks: sender, chunk: Vec::with_capacity(CHUNK_BYTES) }, Chunks(chunks))
}

impl Outgoing {
    /// Sends what is left: all was written.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        let gone = |_| Failure::new(ErrorKind::Cancelled, "nobody reads it any more", "");
        self.flush().map_err(gone)
    }

    /// Cuts the body off: whoever reads it must not take it for whole.
    pub(super) fn fail(self, failure: &Failure) {
        let _ = self.chunks.blocking_send(Err(io::Error::other(failure.message.clone())));
    }
}

impl Write for Outgoing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.chunk.extend_from_slice(bytes);
        if self.chunk.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        self.chunks.blocking_send(Ok(chunk.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|next| next.map(|chunk| chunk.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests;
