//! What a test may have cost at most.

/// The most memory that this process has used, in bytes.
pub fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// A source cannot make this process use more than some tens of MiB; a debug build has as many itself.
pub fn assert_bounded() {
    let peak = peak();
    assert!(peak < 256 << 20, "{} MiB", peak >> 20);
}
