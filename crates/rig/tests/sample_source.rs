//! The sample source is a real server whose writes are recorded truthfully and which leaves nothing.
#![allow(clippy::unwrap_used)]

use offshoot_rig::{Scratch, Source, SourceOptions, find_newest};
use std::time::Duration;

fn options(scale: u32) -> SourceOptions {
    SourceOptions { bin_dir: find_newest().unwrap(), scale, settings: vec![] }
}

#[test]
fn what_the_history_says_is_what_the_source_holds() {
    let scratch = Scratch::new("source-test").unwrap();
    let source = Source::start(&scratch, options(1)).unwrap();
    let writer = source.start_writes(Duration::from_millis(5));
    assert!(writer.wait_for(20, Duration::from_secs(120)));
    let history = writer.stop();
    let database = source.connect("postgres").unwrap();
    let last = history.last_value();
    assert_eq!(database.number("SELECT max(value) FROM ticks").unwrap(), last);
    assert_eq!(database.number("SELECT count(*) FROM ticks").unwrap(), last);
    assert_eq!(database.number("SELECT value FROM tick_now").unwrap(), last);
    assert_eq!(database.number("SELECT count(*) FROM pgbench_accounts").unwrap(), 100_000);
    // The row's own clock is within what the writer recorded.
    for tick in history.ticks() {
        let micros = database
            .number(&format!(
                "SELECT (extract(epoch FROM at) * 1000000)::bigint FROM ticks WHERE value = {}",
                tick.value
            ))
            .unwrap();
        assert!(tick.before.as_microsecond() <= micros, "{tick:?} {micros}");
        assert!(micros <= tick.after.as_microsecond(), "{tick:?} {micros}");
    }
}

#[test]
fn writes_go_on_when_the_source_comes_back() {
    let scratch = Scratch::new("source-test").unwrap();
    let mut source = Source::start(&scratch, options(0)).unwrap();
    let writer = source.start_writes(Duration::from_millis(5));
    assert!(writer.wait_for(10, Duration::from_secs(120)));
    source.kill_server();
    let before = writer.history().last_value();
    source.start_server().unwrap();
    assert!(writer.wait_for(before + 10, Duration::from_secs(120)));
    let history = writer.stop();
    let database = source.connect("postgres").unwrap();
    assert_eq!(database.number("SELECT max(value) FROM ticks").unwrap(), history.last_value());
    let values: Vec<i64> = history.ticks().iter().map(|tick| tick.value).collect();
    assert_eq!(values, (1..=history.last_value()).collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_of_a_scratch_directory() {
    let scratch = Scratch::new("source-test").unwrap();
    let path = scratch.path().to_owned();
    let source = Source::start(&scratch, options(0)).unwrap();
    assert!(!scratch.processes().is_empty());
    let port = source.port();
    std::mem::forget(source);
    drop(scratch);
    assert!(!path.exists());
    assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
