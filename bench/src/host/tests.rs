use super::*;

#[test]
fn processor_time_is_split_into_shares() {
    let before = HostCounters { cpu: parse_cpu("cpu  0 0 0 0 0 0 0 0 0 0"), ..Default::default() };
    let now =
        HostCounters { cpu: parse_cpu("cpu  30 10 15 20 10 0 5 10 0 0"), ..Default::default() };
    let shares = now.cpu_since(&before);
    let seen = [shares.user, shares.system, shares.idle, shares.iowait, shares.steal];
    for (seen, want) in seen.iter().zip([0.4, 0.2, 0.2, 0.1, 0.1]) {
        assert!((seen - want).abs() < 1e-9, "{shares:?}");
    }
}

#[test]
fn a_device_is_read_in_sectors_and_milliseconds() {
    let of = |counts| HostCounters { devices: [("sda".to_owned(), counts)].into(), cpu: [0; 8] };
    let before = of([10, 0, 80, 5, 20, 0, 160, 40]);
    let now = of([110, 0, 80 + 2_000_000 / 512, 205, 20, 0, 160, 40]);
    let work = now.devices_since(&before);
    assert_eq!(work.len(), 1);
    assert_eq!((work[0].reads, work[0].writes), (100, 0));
    assert!((work[0].read_mb - 2.0).abs() < 0.001, "{work:?}");
    assert!((work[0].read_mean_ms - 2.0).abs() < 1e-9, "{work:?}");
    assert!(before.devices_since(&before).is_empty(), "what did nothing is left out");
}

#[test]
fn the_filesystem_of_a_path_is_the_innermost_mount() {
    let proc = filesystem_of(Path::new("/proc/self")).unwrap();
    assert_eq!(proc.kind, "proc");
}

#[test]
fn memory_is_read_in_bytes() {
    assert_eq!(status_bytes("Name:\tx\nVmRSS:\t   12 kB\nPss: 3 kB\n", "VmRSS:"), Some(12_288));
    assert_eq!(status_bytes("Name:\tx\n", "VmRSS:"), None);
    assert!(resident_bytes(std::process::id() as i32).unwrap() > 1 << 20);
}
