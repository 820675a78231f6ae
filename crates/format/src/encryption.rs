//! The file `encryption`: the pool's data key, wrapped by a key that is kept elsewhere.

use crate::seal::KEY_LEN;
use crate::{DecodeError, Reader};

/// Length of the file in bytes: one sector.
pub const LEN: usize = 512;
/// Length of the id of a key, in characters.
pub const KEY_ID_LEN: usize = 16;
/// Length of the wrapped data key: nonce, key, tag.
pub const WRAPPED_LEN: usize = 12 + KEY_LEN + 16;

const MAGIC: &[u8; 8] = b"OFSCRYPT";
const VERSION: u32 = 1;
/// AES-256-GCM, both for the pool and for the wrapping.
const CIPHER: u32 = 1;
const CRC_AT: usize = LEN - 4;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// The id of the key that the data key is wrapped by: hexadecimal digits.
    pub key_id: [u8; KEY_ID_LEN],
    /// The data key, wrapped.
    pub wrapped: [u8; WRAPPED_LEN],
}

impl Encryption {
    /// The bytes of the file.
    pub fn encode(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let fields = [
            &MAGIC[..],
            &VERSION.to_le_bytes(),
            &CIPHER.to_le_bytes(),
            &self.key_id,
            &self.wrapped,
        ]
        .concat();
        bytes[..fields.len()].copy_from_slice(&fields);
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        bytes[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the file.
    pub fn decode(bytes: &[u8]) -> Result<Encryption, DecodeError> {
        let mut reader = Reader::new("encryption", bytes);
        if bytes.len() != LEN {
            return Err(reader.error(format!("{} bytes instead of {LEN}", bytes.len())));
        }
        if &reader.array()? != MAGIC {
            return Err(reader.error("it does not begin with OFSCRYPT"));
        }
        if crc32c::crc32c(&bytes[..CRC_AT]).to_le_bytes() != bytes[CRC_AT..] {
            return Err(reader.error("wrong checksum"));
        }
        let (version, cipher) = (reader.u32()?, reader.u32()?);
        if (version, cipher) != (VERSION, CIPHER) {
            return Err(reader.error(format!("unknown version {version} or cipher {cipher}")));
        }
        let key_id: [u8; KEY_ID_LEN] = reader.array()?;
        if !key_id.iter().all(u8::is_ascii_hexdigit) {
            return Err(reader.error("the id of its key is none"));
        }
        Ok(Encryption { key_id, wrapped: reader.array()? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_written_is_read_and_every_flipped_bit_is_noticed() {
        let file = Encryption { key_id: *b"0123456789abcdef", wrapped: [7; WRAPPED_LEN] };
        let bytes = file.encode();
        assert_eq!(Encryption::decode(&bytes).unwrap(), file);
        for bit in 0..LEN * 8 {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(Encryption::decode(&wrong).is_err(), "bit {bit}");
        }
        assert!(Encryption::decode(&bytes[..LEN - 1]).is_err());
    }
}
