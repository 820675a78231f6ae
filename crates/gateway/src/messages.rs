//! Messages of the protocol, made and taken apart ("Message Formats" in PostgreSQL's manual).

use std::io;

/// Longest body of a message that either side may send.
pub(crate) const LENGTH_MAX: u32 = 0x3fff_ffff;

/// "admin_shutdown": the session is ended because the server goes.
pub(crate) const ADMIN_SHUTDOWN: &str = "57P01";
/// "cannot_connect_now".
pub(crate) const CANNOT_CONNECT_NOW: &str = "57P03";
/// "invalid_authorization_specification".
pub(crate) const NOT_ALLOWED: &str = "28000";
/// "protocol_violation".
pub(crate) const PROTOCOL_VIOLATION: &str = "08P01";
/// "too_many_connections".
pub(crate) const TOO_MANY: &str = "53300";

/// A whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// With tag and length.
    pub(crate) bytes: Vec<u8>,
}

impl Frame {
    pub(crate) fn tag(&self) -> u8 {
        self.bytes[0]
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[5..]
    }
}

/// Dropped answers may hold proofs.
impl Drop for Frame {
    fn drop(&mut self) {
        if self.bytes.first() == Some(&b'p') {
            zeroize::Zeroize::zeroize(&mut self.bytes);
        }
    }
}

/// The whole frame at the beginning of `bytes`, or how many bytes it needs in all.
pub(crate) fn frame_at(bytes: &[u8], bytes_max: usize) -> io::Result<Result<Frame, usize>> {
    let Some(length) = bytes.get(1..5).and_then(|length| length.try_into().ok()) else {
        return Ok(Err(5));
    };
    let length = u32::from_be_bytes(length) as usize;
    let total = length + 1;
    if length < 4 || total > bytes_max {
        return Err(broken("a message has a length that cannot be"));
    }
    Ok(bytes.get(..total).map(|bytes| Frame { bytes: bytes.to_vec() }).ok_or(total))
}

/// What somebody sent is not the protocol.
pub(crate) fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Adds a message to `to`.
pub(crate) fn put(to: &mut Vec<u8>, tag: u8, parts: &[&[u8]]) {
    let length: usize = 4 + parts.iter().map(|part| part.len()).sum::<usize>();
    debug_assert!(length <= LENGTH_MAX as usize);
    to.push(tag);
    to.extend_from_slice(&(length as u32).to_be_bytes());
    parts.iter().for_each(|part| to.extend_from_slice(part));
}

/// A message.
pub(crate) fn message(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut made = Vec::new();
    put(&mut made, tag, parts);
    made
}

/// What ends a session, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fatal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) detail: String,
}

impl Fatal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Fatal {
        Fatal { code, message: message.into(), detail: String::new() }
    }

    /// The database behind this session is being replaced.
    pub(crate) fn replaced(detail: impl Into<String>) -> Fatal {
        Fatal {
            code: ADMIN_SHUTDOWN,
            message: "terminating connection: the database is being replaced".to_owned(),
            detail: detail.into(),
        }
    }

    /// As an ErrorResponse.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let fields = [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', self.code), (b'M', &self.message)];
        for (field, text) in fields.into_iter().chain([(b'D', &*self.detail)]) {
            if !text.is_empty() {
                body.push(field);
                body.extend(text.bytes().filter(|byte| *byte != 0));
                body.push(0);
            }
        }
        body.push(0);
        message(b'E', &[&body])
    }
}

/// A field of the body of an ErrorResponse; empty if it has none.
pub(crate) fn error_field(body: &[u8], field: u8) -> String {
    let mut parts = body.split(|byte| *byte == 0);
    let found = parts.find(|part| part.first() == Some(&field)).unwrap_or_default();
    String::from_utf8_lossy(found.get(1..).unwrap_or_default()).into_owned()
}

/// What the body of an ErrorResponse says, in a line.
pub(crate) fn error_words(body: &[u8]) -> String {
    let (message, detail) = (error_field(body, b'M'), error_field(body, b'D'));
    if detail.is_empty() { message } else { format!("{message}: {detail}") }
}

/// Name and value of the body of a ParameterStatus.
pub(crate) fn parameter(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = body.split(|byte| *byte == 0);
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests;
