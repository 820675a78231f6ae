//! Chance that repeats with its seed.

/// Numbers that repeat with their seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice of a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % sides.max(1)
    }

    /// True once in `one_in` times.
    pub fn chance(&mut self, one_in: u64) -> bool {
        self.roll(one_in) == 0
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.roll(of.len() as u64) as usize]
    }

    /// Bytes that compress a little.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let byte = self.roll(256) as u8;
            let run = 1 + self.roll(16) as usize;
            bytes.extend(std::iter::repeat_n(byte, run.min(len - bytes.len())));
        }
        bytes
    }
}

/// Number of seeds a test tries: `few` by default, `OFFSHOOT_SEEDS` when set; and the first one,
/// `OFFSHOOT_FIRST_SEED`.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("OFFSHOOT_FIRST_SEED").unwrap_or(1);
    first..first + number("OFFSHOOT_SEEDS").unwrap_or(few)
}
