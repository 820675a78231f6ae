use super::*;
use crate::process::{Sink, Spec};
use std::io::Write;
use std::time::Duration;

fn append(log: &Path, text: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(log).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn the_end_of_a_large_log_moves_and_writing_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("vdb-1.log");
    assert!(!cut(&log, 10).unwrap());
    let mut writer = OpenOptions::new().create(true).append(true).open(&log).unwrap();
    writer.write_all(b"0123456789").unwrap();
    assert!(!cut(&log, 10).unwrap());
    writer.write_all(b"abc").unwrap();
    assert!(cut(&log, 10).unwrap());
    assert_eq!(std::fs::read_to_string(earlier(&log)).unwrap(), "3456789abc");
    writer.write_all(b"next").unwrap();
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "next");
    remove(&log).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    remove(&log).unwrap();
}

#[test]
fn a_place_is_found_again_after_any_number_of_cuts() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    append(&log, "earlier start\n");
    let place = LogPlace::end_of(&log);
    append(&log, "first\n");
    assert_eq!(tail(&log, place.offset(&log), 100), "first\n");
    // However much has been written since.
    for text in ["short\n", "longer than everything before it was\n"] {
        assert!(cut(&log, 3).unwrap());
        append(&log, text);
        assert_eq!(tail(&log, place.offset(&log), 100), text);
    }
    let place = LogPlace::end_of(&log);
    append(&log, "another start\n");
    assert_eq!(tail(&log, place.offset(&log), 100), "another start\n");
    assert_eq!(tail(&log, 0, 6), "start\n");
}

#[test]
fn a_reader_that_comes_back_reads_each_line_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (none, mut place) = lines_since(&log, &LogPlace::default(), 100);
    assert_eq!(none, "");
    // Without an earlier part, and with one.
    for _ in 0..2 {
        append(&log, "first\nsec");
        let (read, next) = lines_since(&log, &place.to_string().parse().unwrap(), 100);
        assert_eq!(read, "first\n");
        append(&log, "ond\n");
        let (read, next) = lines_since(&log, &next.to_string().parse().unwrap(), 100);
        assert_eq!(read, "second\n");
        assert_eq!(lines_since(&log, &next, 100), (String::new(), next.clone()));
        assert!(cut(&log, 3).unwrap());
        place = next;
    }
    append(&log, "one\ntwo\n");
    assert_eq!(lines_since(&log, &place, 4).0, "two\n", "of much the end");
    for bad in ["", "x", "1.2", "1.2.3", "1.2.3.x", "1.2.3.4.5", "-1"] {
        assert!(bad.parse::<LogPlace>().is_err(), "{bad}");
    }
}

#[test]
fn a_child_that_writes_as_fast_as_it_can_stays_within_bounds() {
    const BYTES_MAX: u64 = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let spec = Spec::new("/bin/sh").args(["-c", "exec yes >&2"]).stderr(Sink::File(log.clone()));
    let mut child = spec.die_with_parent(true).spawn().unwrap();
    let mut cuts = 0;
    while cuts < 50 {
        cuts += u32::from(cut(&log, BYTES_MAX).unwrap());
        let kept = std::fs::metadata(earlier(&log)).map(|file| file.len()).unwrap_or(0);
        assert!(kept <= BYTES_MAX);
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill_group();
    cut(&log, BYTES_MAX).unwrap();
    assert!(std::fs::metadata(&log).unwrap().len() <= BYTES_MAX);
    assert!(tail(&earlier(&log), 0, 100).ends_with("y\ny\n"));
}
