//! Root slots: which tree and which block table are the pool's state.

use crate::log::SECTOR_LEN;
use crate::seal::{Purpose, SEAL_LEN, Seals};
use crate::{DecodeError, Reader};
use offshoot_types::{BlockHash, Txg};
use std::borrow::Cow;

/// Length of a copy of a slot in bytes.
pub const LEN: usize = 4096;
/// Copies of a slot, one after the other in its file.
pub const COPIES: usize = 2;
/// The longest extra bytes.
pub const EXTRA_LEN_MAX: usize = 128;
/// The most log files a slot can name.
pub const LOGS_MAX: usize = 16;
/// What comes before the names of the logs.
const FIXED_LEN: usize = 80;
/// Where what is sealed begins: after magic number and checksum.
const BODY: usize = 12;
// Everything in a copy that can be other than zeros is in one sector, with its seal: overwriting a root
// cannot tear it.
const _: () = assert!(FIXED_LEN + LOGS_MAX * 16 + EXTRA_LEN_MAX + SEAL_LEN <= SECTOR_LEN);

const MAGIC: &[u8; 8] = b"OFSROOT1";
const SEALED_MAGIC: &[u8; 8] = b"OFSROOTS";

/// A delta log and how much of it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogExtent {
    /// The file's number.
    pub number: u64,
    /// Committed bytes; whatever follows is left over from a commit that was cut off.
    pub len: u64,
}

/// What one slot says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootSlot {
    /// Counts commits; of two valid slots the higher one wins.
    pub txg: Txg,
    /// The root node.
    pub hash: BlockHash,
    /// The table's checkpoint file; 0 for none.
    pub checkpoint: u64,
    /// Delta logs to apply after the checkpoint, in order.
    pub logs: Vec<LogExtent>,
    /// Bytes of zero blocks written since the pool was created.
    pub zero_saved: u64,
    /// Bytes of writes that were already stored, since the pool was created.
    pub dedup_saved: u64,
    /// Bytes of the pool's user.
    pub extra: Vec<u8>,
}

impl RootSlot {
    /// The slot's bytes.
    ///
    /// # Errors
    /// When the extra bytes or the logs are too many.
    pub fn encode(&self) -> Result<Vec<u8>, DecodeError> {
        if self.extra.len() > EXTRA_LEN_MAX || self.logs.len() > LOGS_MAX {
            return Err(DecodeError::new("root slot", "more than a slot holds"));
        }
        let mut bytes = Vec::with_capacity(SECTOR_LEN);
        bytes.extend_from_slice(&self.txg.0.to_le_bytes());
        bytes.extend_from_slice(&self.hash.0);
        bytes.extend_from_slice(&self.checkpoint.to_le_bytes());
        bytes.extend_from_slice(&self.zero_saved.to_le_bytes());
        bytes.extend_from_slice(&self.dedup_saved.to_le_bytes());
        bytes.extend_from_slice(&(self.logs.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&(self.extra.len() as u16).to_le_bytes());
        for log in &self.logs {
            bytes.extend_from_slice(&log.number.to_le_bytes());
            bytes.extend_from_slice(&log.len.to_le_bytes());
        }
        bytes.extend_from_slice(&self.extra);
        Ok(encode_copy(MAGIC, &bytes))
    }

    /// Reads a slot.
    pub fn decode(bytes: &[u8]) -> Result<RootSlot, DecodeError> {
        let mut reader = Reader::new("root slot", check_copy(bytes, MAGIC)?);
        let mut slot = RootSlot {
            txg: Txg(reader.count()?),
            hash: reader.hash()?,
            checkpoint: reader.count()?,
            zero_saved: reader.count()?,
            dedup_saved: reader.count()?,
            logs: Vec::new(),
            extra: Vec::new(),
        };
        let (logs, extra_len) = (reader.u16()?, reader.u16()?);
        for _ in 0..logs {
            slot.logs.push(LogExtent { number: reader.count()?, len: reader.count()? });
        }
        slot.extra = reader.bytes(usize::from(extra_len))?.to_vec();
        Ok(slot)
    }
}

/// A slot's bytes as the pool has them on its device: all but magic number and checksum is sealed.
pub fn seal(seals: &Seals, slot: Vec<u8>) -> Result<Vec<u8>, DecodeError> {
    if !seals.are_on() {
        return Ok(slot);
    }
    let body = slot.get(BODY..SECTOR_LEN - SEAL_LEN).unwrap_or_default();
    let sealed = seals.seal(Purpose::Root, SEALED_MAGIC, body)?;
    Ok(encode_copy(SEALED_MAGIC, &sealed))
}

/// The bytes that [`RootSlot::decode`] reads.
pub fn open<'a>(seals: &Seals, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, DecodeError> {
    if !seals.are_on() {
        return Ok(Cow::Borrowed(bytes));
    }
    let sealed = check_copy(bytes, SEALED_MAGIC)?.get(..SECTOR_LEN - BODY).unwrap_or_default();
    let body = seals.open(Purpose::Root, SEALED_MAGIC, sealed)?;
    Ok(Cow::Owned(encode_copy(MAGIC, &body)))
}

fn encode_copy(magic: &[u8; 8], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; BODY];
    bytes[..8].copy_from_slice(magic);
    bytes.extend_from_slice(body);
    bytes.resize(LEN, 0);
    let crc = crc32c::crc32c(&bytes[BODY..]);
    bytes[8..BODY].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// What follows magic number and checksum, if these are right.
fn check_copy<'a>(bytes: &'a [u8], magic: &[u8; 8]) -> Result<&'a [u8], DecodeError> {
    let mut reader = Reader::new("root slot", bytes);
    if bytes.len() != LEN {
        return Err(reader.error(format!("{} bytes instead of {LEN}", bytes.len())));
    }
    if &reader.array()? != magic {
        return Err(reader.error(format!("it does not begin with {}", magic.escape_ascii())));
    }
    if reader.u32()? != crc32c::crc32c(&bytes[BODY..]) {
        return Err(reader.error("wrong checksum"));
    }
    Ok(reader.rest())
}

#[cfg(test)]
mod tests;
