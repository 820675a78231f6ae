//! The key, and what is drawn from it.

use zeroize::Zeroize;

/// What all masks of a ruleset depend on. Whoever has it can tell which value a mask stands for, by trying.
pub struct MaskingKey([u8; 32]);

impl MaskingKey {
    /// A key from a secret of any length.
    pub fn new(secret: &[u8]) -> MaskingKey {
        MaskingKey(blake3::derive_key("offshoot 2026-11 masking: the key of a ruleset", secret))
    }

    /// A key for one purpose. Algorithms with different purposes give the same value unrelated masks; a purpose
    /// never names a table or a column, or joins would not hold.
    pub(crate) fn subkey(&self, purpose: &str) -> Subkey {
        Subkey(*blake3::keyed_hash(&self.0, purpose.as_bytes()).as_bytes())
    }
}

impl Drop for MaskingKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A key for one purpose.
pub(crate) struct Subkey([u8; 32]);

impl Subkey {
    /// Bytes that follow from a value: as good as random to whoever lacks the key.
    pub fn draw(&self, value: &[u8]) -> Draw {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(value);
        Draw { bytes: hasher.finalize_xof(), block: [0; BLOCK], used: BLOCK }
    }

    /// As [`Subkey::draw`], of a value and a number beside it.
    pub fn draw_with(&self, number: u64, value: &[u8]) -> Draw {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&number.to_le_bytes());
        hasher.update(value);
        Draw { bytes: hasher.finalize_xof(), block: [0; BLOCK], used: BLOCK }
    }

    /// The key's bytes, for a cipher.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for Subkey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

const BLOCK: usize = 64;

/// An endless row of bytes.
pub(crate) struct Draw {
    bytes: blake3::OutputReader,
    block: [u8; BLOCK],
    used: usize,
}

impl Draw {
    /// The next number of 64 bits.
    pub fn number(&mut self) -> u64 {
        if self.used + 8 > BLOCK {
            self.bytes.fill(&mut self.block);
            self.used = 0;
        }
        let mut number = [0; 8];
        number.copy_from_slice(&self.block[self.used..self.used + 8]);
        self.used += 8;
        u64::from_le_bytes(number)
    }

    /// The next number below `bound`, which is not 0. How far it is from even is below `bound` in 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below 0");
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// One of several, at least one.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// Fills a buffer.
    pub fn fill(&mut self, buffer: &mut [u8]) {
        self.bytes.fill(buffer);
    }
}
