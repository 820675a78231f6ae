//! Permutations of texts that keep their form.
//!
//! A text's letters and digits are read as digits of mixed bases: a decimal digit has base 10, a capital letter 26.
//! A Feistel network permutes them: the digits are split into two halves, and in each of ten rounds one half gets
//! digits added that are drawn from the other half, each modulo its own base. Every round can be undone, so different
//! texts of one form get different masks. It is built as FF1 is (NIST SP 800-38G), whose ten rounds it takes, with
//! keyed BLAKE3 for AES and digit by digit for numbers of one base.

use crate::key::Subkey;

const ROUNDS: u64 = 10;

/// A digit of a base of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digit {
    /// Below `base`.
    pub value: u32,
    /// At least 1.
    pub base: u32,
}

/// A permutation for each key, tweak and list of bases.
pub(crate) struct Permutation(Subkey);

impl Permutation {
    /// The permutations of a key.
    pub fn new(key: Subkey) -> Permutation {
        Permutation(key)
    }

    /// Replaces digits by others of the same bases. Different tweaks give unrelated permutations.
    pub fn permute(&self, tweak: u64, digits: &mut [Digit]) {
        let (left, right) = digits.split_at_mut(digits.len() / 2);
        let mut input = Vec::with_capacity(16 + 4 * right.len());
        for round in 0..ROUNDS {
            // The longer half is drawn from the shorter one first, which is right for a single digit.
            let (from, to): (&[Digit], &mut [Digit]) =
                if round % 2 == 0 { (left, right) } else { (right, left) };
            input.clear();
            input.extend_from_slice(&tweak.to_le_bytes());
            input.extend_from_slice(&(to.len() as u64).to_le_bytes());
            for digit in from {
                input.extend_from_slice(&digit.value.to_le_bytes());
            }
            let mut draw = self.0.draw_with(round, &input);
            for digit in to {
                let added = u64::from(digit.value) + draw.below(u64::from(digit.base));
                digit.value = (added % u64::from(digit.base)) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests;
