//! What the programs of this host wait for, as the kernel counts it (pressure stall information).

/// A resource of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Its processors.
    Processor,
    /// Its disks.
    Disk,
}

/// The share of the last minute, in percent, in which at least one program waited for a resource; none where the kernel
/// does not count it.
pub fn waited(resource: Resource) -> Option<f64> {
    let path = match resource {
        Resource::Processor => "/proc/pressure/cpu",
        Resource::Disk => "/proc/pressure/io",
    };
    minute(&std::fs::read_to_string(path).ok()?)
}

fn minute(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("avg60="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::minute;

    #[test]
    fn the_last_minute_is_read() {
        let text = "some avg10=1.00 avg60=42.75 avg300=15.41 total=61\nfull avg10=0.00 avg60=3.00";
        assert_eq!(minute(text), Some(42.75));
        assert_eq!(minute("full avg60=3.00"), None);
        assert_eq!(minute("some avg60=x"), None);
    }
}
