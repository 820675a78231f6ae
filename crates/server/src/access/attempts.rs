//! How often somebody may show no or a wrong token. Guessing 256 bits takes for ever at any speed; the bound keeps
//! the log readable and the processor free.

use crate::listen::Share;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Failures that are free, and the time in which one more becomes so.
const FREE: u32 = 20;
const AGAIN: Duration = Duration::from_secs(1);
/// Callers that are remembered. When there are more, all that are not known share one bound.
const CALLERS_MAX: usize = 4096;

/// Counts failures by caller.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    failed: Mutex<HashMap<Option<Share>, Failed>>,
}

#[derive(Debug, Clone, Copy)]
struct Failed {
    count: u32,
    /// When `count` was right.
    at: Instant,
}

impl Failed {
    /// What is left of the count by now.
    fn left(&self, now: Instant) -> u32 {
        let forgiven = now.duration_since(self.at).as_secs() / AGAIN.as_secs();
        self.count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }
}

impl Attempts {
    /// Counts a failure; whether it is within the bound.
    pub(crate) fn allow(&self, who: Share) -> bool {
        self.allow_at(who, Instant::now())
    }

    fn allow_at(&self, who: Share, now: Instant) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= CALLERS_MAX && !failed.contains_key(&Some(who)) {
            failed.retain(|_, one| one.left(now) > 0);
        }
        let known = failed.len() < CALLERS_MAX || failed.contains_key(&Some(who));
        let one = failed.entry(known.then_some(who)).or_insert(Failed { count: 0, at: now });
        let left = one.left(now);
        if left >= FREE {
            return false;
        }
        *one = Failed { count: left + 1, at: now };
        true
    }
}

#[cfg(test)]
mod tests;
