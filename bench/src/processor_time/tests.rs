use super::*;
use offshoot_os::process::{self, Spec};
use std::time::Duration;

/// A line of a shell whose name has a bracket and blanks.
const LINE: &str = "4711 (a ) b) S 17 4711 4711 0 -1 4194560 1 2 3 4 50 6 700 8 20 0 1 0 99 0 0";

#[test]
fn a_line_has_its_parent_and_its_ticks() {
    let process = parse(LINE).unwrap();
    assert_eq!((process.parent, process.ticks), (17, 50 + 6 + 700 + 8));
    assert!(parse("4711 (cut off) S 17 4711").is_none());
}

#[test]
fn what_a_child_took_counts_after_it_has_ended() {
    let own = std::process::id() as i32;
    let before = processor_seconds([own]);
    let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
    let spec = Spec::new("/bin/sh").arg("-c").arg(busy);
    process::run(&spec, Duration::from_secs(60)).unwrap();
    assert!(processor_seconds([own]) > before);
}
