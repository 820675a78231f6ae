//! Reading and writing of little-endian fields, without panics on bytes from a disk.

use offshoot_types::BlockHash;

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct DecodeError {
    /// What was being decoded.
    pub what: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

impl DecodeError {
    /// A problem found while decoding `what`.
    pub fn new(what: &'static str, problem: impl Into<String>) -> Self {
        DecodeError { what, problem: problem.into() }
    }
}

/// A cursor over bytes that were read from a disk or a wire; every step checks the length.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`; `what` names the structure in errors.
    pub fn new(what: &'static str, bytes: &'a [u8]) -> Self {
        Reader { what, rest: bytes }
    }

    /// The bytes not taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything was taken.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Takes `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        if len > self.rest.len() {
            return Err(self.error(format!("ends {} bytes early", len - self.rest.len())));
        }
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(taken)
    }

    /// Takes an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// Takes one byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    /// Takes a little-endian number of 16 bits.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Takes a little-endian number of 32 bits.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Takes a little-endian number of 64 bits.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Takes a little-endian number of 64 bits that counts something: bytes, files, commits. A number
    /// larger than any real count is refused, so that adding to it cannot overflow.
    pub fn count(&mut self) -> Result<u64, DecodeError> {
        const COUNT_MAX: u64 = 1 << 62;
        match self.u64()? {
            count if count <= COUNT_MAX => Ok(count),
            count => Err(self.error(format!("nothing counts up to {count}"))),
        }
    }

    /// Takes a block's name.
    pub fn hash(&mut self) -> Result<BlockHash, DecodeError> {
        Ok(BlockHash(self.array()?))
    }

    /// An error about the structure being read.
    pub fn error(&self, problem: impl Into<String>) -> DecodeError {
        DecodeError::new(self.what, problem)
    }
}
