use super::{format_duration, format_size, parse_duration, parse_size};
use std::time::Duration;

#[test]
fn sizes_are_read_as_people_write_them() {
    let cases = [
        ("0", 0),
        ("8192", 8192),
        ("512MiB", 512 << 20),
        (" 4 GiB ", 4 << 30),
        ("4gb", 4 << 30),
        ("1.5k", 1536),
        ("0.5 TiB", 1 << 39),
        ("12B", 12),
    ];
    for (text, bytes) in cases {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
    for text in ["", "GiB", "-1", "1.2.3k", "1..k", "1.k", "1 x", "99999999999P", "1e3", "½"] {
        let failure = parse_size(text).expect_err(text);
        assert!(failure.message.contains("is not a size") && failure.hint.contains("MiB"));
    }
}

#[test]
fn durations_need_a_unit() {
    let cases = [
        ("10min", 600_000),
        ("1.5h", 5_400_000),
        ("30 s", 30_000),
        ("7d", 604_800_000),
        ("2w", 1_209_600_000),
        ("1y", 31_536_000_000),
        ("250ms", 250),
        ("2 Hours", 7_200_000),
    ];
    for (text, ms) in cases {
        assert_eq!(parse_duration(text), Ok(Duration::from_millis(ms)), "{text}");
    }
    for text in ["", "10", "min", "-5s", "99999999999999999999s", "18446744073709551615d"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

#[test]
fn sizes_and_durations_are_written_for_people() {
    for (bytes, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1 << 20, "1.0 MiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (1_610_612_736, "1.5 GiB"),
        (u64::MAX, "16.0 EiB"),
    ] {
        assert_eq!(format_size(bytes), text);
    }
    for (ms, text) in [
        (0, "0 ms"),
        (350, "350 ms"),
        (2_500, "2.5 s"),
        (2_040, "2 s"),
        (600_000, "10 min"),
        (61_000, "1 min 1 s"),
        (3_900_000, "1 h 5 min"),
        (266_400_000, "3 d 2 h"),
    ] {
        assert_eq!(format_duration(Duration::from_millis(ms)), text);
    }
}
