//! Which kernel this is.

/// Major and minor version, as `(6, 12)`; zeros where the kernel does not say.
pub fn kernel_version() -> (u32, u32) {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut next = || numbers.next().and_then(|text| text.parse().ok()).unwrap_or(0);
    (next(), next())
}
