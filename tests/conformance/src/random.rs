//! Random choices that a seed repeats.

/// A sequence of choices (xorshift64*).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A different sequence for each run; the seed is printed, as a failing test shows its output.
    pub fn fresh() -> Random {
        let seed = std::env::var("OFFSHOOT_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from_ne_bytes(offshoot_os::random_bytes()));
        println!("OFFSHOOT_TEST_SEED={seed}");
        Random(seed | 1)
    }

    /// A number below a bound, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}
