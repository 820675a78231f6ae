//! What the programs of this host wait for, as the kernel counts it (pressure stall information).

/// A resource of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Its processors.
    Processor,
    /// Its disks.
    Disk,
}

/// Percent of the time in which programs wait, above which a resource counts as short.
const SHORT_PERCENT: f64 = 20.0;

/// Whether programs of this host waited for a resource for a fifth of the last minute; not where the kernel does not count it.
pub fn is_short(resource: Resource) -> bool {
    waited(resource).is_some_and(|percent| percent >= SHORT_PERCENT)
}

/// The share of the last minute, in percent, in which at least one program waited for a resource; none where the kernel
/// does not count it.
fn waited(resource: Resource) -> Option<f64> {
    let path = match resource {
        Resource::Processor => "/proc/pressure/cpu",
        Resource::Disk => "/proc/pressure/io",
    };
    minute(&std::fs::read_to_string(path).ok()?)
}

/// How many threads of the host want a processor now: those that run and those that wait for one.
pub fn ready_threads() -> Option<usize> {
    ready(&std::fs::read_to_string("/proc/loadavg").ok()?)
}

/// The fourth field is "of that many there are", in proc_loadavg(5).
fn ready(text: &str) -> Option<usize> {
    text.split_ascii_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

fn minute(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("avg60="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{minute, ready, ready_threads};

    #[test]
    fn the_last_minute_is_read() {
        let text = "some avg10=1.00 avg60=42.75 avg300=15.41 total=61\nfull avg10=0.00 avg60=3.00";
        assert_eq!(minute(text), Some(42.75));
        assert_eq!(minute("full avg60=3.00"), None);
        assert_eq!(minute("some avg60=x"), None);
    }

    #[test]
    fn threads_that_want_a_processor_are_counted() {
        assert_eq!(ready("0.20 0.18 0.12 17/534 11206\n"), Some(17));
        assert_eq!(ready("0.20 0.18 0.12"), None);
        assert!(ready_threads() >= Some(1), "the one that asks");
    }
}
