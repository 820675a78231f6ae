//! Time.

use std::time::{Duration, SystemTime};

/// A clock that a simulation can replace.
pub trait Clock: Send + Sync {
    /// The time of day.
    fn now(&self) -> SystemTime;
    /// Time since an arbitrary fixed moment; never goes back.
    fn elapsed(&self) -> Duration;
    /// Lets the calling thread sleep.
    fn sleep(&self, duration: Duration);
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // the one place that reads the time of day
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    fn elapsed(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.max(0) as u32)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
