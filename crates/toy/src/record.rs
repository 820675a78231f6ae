//! Records of the journal.
//!
//! ```text
//! ┌─────────────┬─────────────┬─────────────┬─────────────┬──────────┐
//! │ body length │ start of the│ checksum of │ checksum of │ body     │
//! │ u32         │ one before, │ the body u32│ position and│          │
//! │             │ u64         │             │ header u32  │          │
//! └─────────────┴─────────────┴─────────────┴─────────────┴──────────┘
//!  body: number u64 · time µs i64 · kind u8 · length of the key u16 · key · value
//! ```
//! The position is in the checksum, so bytes from elsewhere never pass for a record, and a reader that starts
//! in the middle of a journal can find the first record.

/// Bytes before the body.
pub(crate) const HEADER_BYTES: usize = 20;
/// Longest body; a record is shorter than a file of the journal.
pub(crate) const BODY_BYTES_MAX: usize = 32 << 10;
const BODY_FIXED_BYTES: usize = 19;

/// What a record changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A key of the users'.
    Data,
    /// A login: its name and its state.
    Login,
    /// A setting of the database; an empty value removes it.
    Setting,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) number: u64,
    pub(crate) time_us: i64,
    pub(crate) kind: Kind,
    pub(crate) key: String,
    pub(crate) value: String,
}

/// The part of a record that says how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) body_bytes: usize,
    /// Where the previous record begins; 0 for the first.
    pub(crate) previous: u64,
    body_checksum: u32,
}

impl Record {
    /// Its bytes at a position; none if it would be too long.
    pub(crate) fn encode(&self, position: u64, previous: u64) -> Option<Vec<u8>> {
        let mut body = Vec::with_capacity(BODY_FIXED_BYTES + self.key.len() + self.value.len());
        body.extend_from_slice(&self.number.to_le_bytes());
        body.extend_from_slice(&self.time_us.to_le_bytes());
        body.push(match self.kind {
            Kind::Data => 0,
            Kind::Login => 1,
            Kind::Setting => 2,
        });
        body.extend_from_slice(&u16::try_from(self.key.len()).ok()?.to_le_bytes());
        body.extend_from_slice(self.key.as_bytes());
        body.extend_from_slice(self.value.as_bytes());
        if body.len() > BODY_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::with_capacity(HEADER_BYTES + body.len());
        bytes.extend_from_slice(&u32::try_from(body.len()).ok()?.to_le_bytes());
        bytes.extend_from_slice(&previous.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        let checksum = header_checksum(position, &bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&body);
        Some(bytes)
    }

    /// Reads a body; none if it does not match the header.
    pub(crate) fn decode(header: &Header, body: &[u8]) -> Option<Record> {
        if body.len() != header.body_bytes || crc32c::crc32c(body) != header.body_checksum {
            return None;
        }
        let key_bytes = usize::from(u16::from_le_bytes(body.get(17..19)?.try_into().ok()?));
        let rest = body.get(BODY_FIXED_BYTES..)?;
        Some(Record {
            number: u64::from_le_bytes(body.get(..8)?.try_into().ok()?),
            time_us: i64::from_le_bytes(body.get(8..16)?.try_into().ok()?),
            kind: match body.get(16)? {
                0 => Kind::Data,
                1 => Kind::Login,
                2 => Kind::Setting,
                _ => return None,
            },
            key: String::from_utf8(rest.get(..key_bytes)?.to_vec()).ok()?,
            value: String::from_utf8(rest.get(key_bytes..)?.to_vec()).ok()?,
        })
    }
}

impl Header {
    /// Reads the header of a record that begins at a position; none if there is none.
    pub(crate) fn decode(position: u64, bytes: &[u8]) -> Option<Header> {
        let (fields, checksum) = bytes.get(..HEADER_BYTES)?.split_at(HEADER_BYTES - 4);
        if header_checksum(position, fields).to_le_bytes() != checksum {
            return None;
        }
        let body_bytes = u32::from_le_bytes(fields.get(..4)?.try_into().ok()?) as usize;
        (body_bytes <= BODY_BYTES_MAX).then_some(Header {
            body_bytes,
            previous: u64::from_le_bytes(fields.get(4..12)?.try_into().ok()?),
            body_checksum: u32::from_le_bytes(fields.get(12..16)?.try_into().ok()?),
        })
    }
}

fn header_checksum(position: u64, fields: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&position.to_le_bytes()), fields)
}

#[cfg(test)]
mod tests;
