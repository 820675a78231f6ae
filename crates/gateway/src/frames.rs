//! Where messages begin and end in a stream, by their headers alone.

use crate::messages::{LENGTH_MAX, broken};
use std::io;

/// Bytes of tag and length.
const HEADER_LEN: usize = 5;
/// Longest body that is kept, in bytes.
const KEPT_MAX: usize = 8 << 10;

/// Follows one direction of a connection. Bodies pass by, but for those of a few short messages.
#[derive(Debug)]
pub(crate) struct Frames {
    header: [u8; HEADER_LEN],
    have: usize,
    left: usize,
    /// Tags of the messages whose bodies are kept.
    keeps: &'static [u8],
    keeping: bool,
    kept: Vec<u8>,
}

/// What one look at the bytes found: at most one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Bytes that belong to it.
    pub(crate) used: usize,
    /// Its header is whole now: the tag.
    pub(crate) began: Option<u8>,
    /// It is whole now: the tag.
    pub(crate) ended: Option<u8>,
}

impl Frames {
    pub(crate) fn new(keeps: &'static [u8]) -> Self {
        Frames {
            header: [0; HEADER_LEN],
            have: 0,
            left: 0,
            keeps,
            keeping: false,
            kept: Vec::new(),
        }
    }

    /// Whether nothing of a message has passed that is not whole.
    pub(crate) fn at_boundary(&self) -> bool {
        self.have == 0
    }

    /// The body of the message that just ended, if it was to be kept and is short enough.
    pub(crate) fn kept(&self) -> Option<&[u8]> {
        self.keeping.then_some(self.kept.as_slice())
    }

    /// Looks at the next bytes, up to the end of a message.
    ///
    /// # Errors
    /// `InvalidData` for a length that no message has.
    pub(crate) fn step(&mut self, bytes: &[u8]) -> io::Result<Step> {
        let mut step = Step { used: 0, began: None, ended: None };
        if self.have < HEADER_LEN {
            step.used = bytes.len().min(HEADER_LEN - self.have);
            self.header[self.have..self.have + step.used].copy_from_slice(&bytes[..step.used]);
            self.have += step.used;
            if self.have < HEADER_LEN {
                return Ok(step);
            }
            let [tag, length @ ..] = self.header;
            let length = u32::from_be_bytes(length);
            if !(4..=LENGTH_MAX).contains(&length) {
                return Err(broken("a message has a length that cannot be"));
            }
            self.left = length as usize - 4;
            self.keeping = self.left <= KEPT_MAX && self.keeps.contains(&tag);
            self.kept.clear();
            step.began = Some(tag);
        }
        let body = self.left.min(bytes.len() - step.used);
        if self.keeping {
            self.kept.extend_from_slice(&bytes[step.used..step.used + body]);
        }
        self.left -= body;
        step.used += body;
        if self.left == 0 {
            self.have = 0;
            step.ended = Some(self.header[0]);
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests;
