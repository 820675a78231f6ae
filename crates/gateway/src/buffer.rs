//! What was read from one side and not yet written to the other.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{io, mem};
use tokio::io::{AsyncRead, ReadBuf};

/// What a quiet connection takes, in bytes.
const SMALL: usize = 8 << 10;
/// What a connection takes that had more to read than that.
const LARGE: usize = 64 << 10;

/// Bytes in order; takes no memory before the first are read.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// What is there.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether a read could add anything.
    pub(crate) fn has_room(&self) -> bool {
        self.end - self.start < self.bytes.len().max(SMALL)
    }

    /// Drops the first `count` bytes.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Gives the memory back if nothing is in it.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            *self = Buffer::default();
        }
    }

    /// What is there, taken out.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let mut bytes = mem::take(&mut self.bytes);
        bytes.truncate(self.end);
        bytes.drain(..self.start);
        self.clear();
        bytes
    }

    /// Makes room for as many bytes in all.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.compact();
        if self.bytes.len() < count {
            self.bytes.resize(count, 0);
        }
    }

    /// Reads once. Returns how many bytes came: 0 at the end of the stream. There must be room.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        from: Pin<&mut impl AsyncRead>,
    ) -> Poll<io::Result<usize>> {
        debug_assert!(self.has_room());
        self.reserve(SMALL);
        let mut free = ReadBuf::new(&mut self.bytes[self.end..]);
        ready!(from.poll_read(cx, &mut free))?;
        let count = free.filled().len();
        self.end += count;
        if self.end == self.bytes.len() && self.bytes.len() < LARGE {
            self.bytes.resize(LARGE, 0);
        }
        Poll::Ready(Ok(count))
    }

    fn compact(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
    }
}
