//! Random numbers that depend only on a seed, the same on every machine and in every version.

/// A stream of numbers by SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014): small, quick to make, and separate for every row.
#[derive(Debug, Clone)]
pub struct Stream(u64);

/// The increment of SplitMix64, 2⁶⁴ over the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream that belongs to a seed and a path of numbers, as (table, row).
    pub fn of(seed: u64, path: &[u64]) -> Self {
        let state = path.iter().fold(mix(seed.wrapping_add(GAMMA)), |state, part| {
            mix(state ^ mix(part.wrapping_add(GAMMA)).rotate_left(17))
        });
        Stream(state)
    }

    /// The next 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }

    /// A number from 0 to `count` - 1. `count` must not be 0.
    pub fn below(&mut self, count: u64) -> u64 {
        assert!(count > 0, "a choice among nothing");
        // The high half of the product: uniform to within count / 2⁶⁴.
        ((u128::from(self.next_bits()) * u128::from(count)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// A number in [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }

    /// One of them, the first ones far more often: words of a language are used like that.
    pub fn pick_early<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let at = self.share() * self.share() * all.len() as f64;
        &all[at as usize]
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests;
