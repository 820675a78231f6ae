//! The name of a block.

use std::fmt;

/// Size of a data block in bytes.
pub const BLOCK_SIZE: usize = 8192;

/// The BLAKE3 hash of a block's uncompressed content.
///
/// It is the block's name, its checksum, its key in the deduplication index and its key in the
/// cache. [`BlockHash::ZERO`] stands for a block of zeros (a hole), which is never stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHash(pub [u8; 32]);

impl BlockHash {
    /// A hole: a block of zeros.
    pub const ZERO: BlockHash = BlockHash([0; 32]);

    /// All of it in hexadecimal digits; `Display` shows only the first sixteen.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<BlockHash> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (index, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok()?;
        }
        Some(BlockHash(hash))
    }

    /// Whether this names a hole.
    pub fn is_zero(&self) -> bool {
        *self == BlockHash::ZERO
    }
}

impl fmt::Debug for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0[..8] {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for BlockHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_digits_are_read_back() {
        let mut hash = BlockHash::ZERO;
        hash.0[0] = 0x0f;
        hash.0[31] = 0xa1;
        let text = hash.to_hex();
        assert!(text.starts_with("0f00") && text.ends_with("00a1"), "{text}");
        assert_eq!(BlockHash::from_hex(&text), Some(hash));
        for wrong in [&text[1..], "é", &format!("+{}", &text[1..])] {
            assert_eq!(BlockHash::from_hex(wrong), None);
        }
    }
}
