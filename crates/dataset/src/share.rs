//! How much of what all datasets have together one of them may take.
//!
//! Memory for unwritten data and the intent log are one for all. A dataset may hold so many times what is
//! still free (a *dynamic threshold*, Choudhury and Hahne 1998): one alone may have three quarters, and
//! however many take all they can, something is left for one that needs little.

/// A dataset may hold this many times what is free.
const SHARE: u64 = 3;

/// Whether a dataset that holds `held` bytes may take more, of `total` of which all hold `used`.
pub(crate) fn may_take_more(held: u64, used: u64, total: u64) -> bool {
    held <= SHARE * total.saturating_sub(used)
}

#[cfg(test)]
mod tests;
