use super::{CAPACITY, OPEN_MAX, VolatileLog};
use crate::Error;
use crate::requests::{Request, RequestId, Slots};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// The log as the next engine finds it.
fn taken_over(log: &VolatileLog) -> VolatileLog {
    VolatileLog::open(log.as_fd().try_clone_to_owned().unwrap()).unwrap()
}

fn append(log: &VolatileLog, number: u64, bytes: &[u8]) {
    let (left, right) = bytes.split_at(bytes.len() / 2);
    log.append(number, [left, right].into_iter(), None);
}

/// As asked for by a request, which is answered.
fn append_asked(log: &VolatileLog, request: &Request<'_>, number: u64) {
    log.append(number, std::iter::once(&[number as u8; 10][..]), Some((request, number * 10)));
}

fn id(number: u64) -> RequestId {
    RequestId::new(number).unwrap()
}

fn numbers(log: &VolatileLog) -> Vec<u64> {
    let mut numbers = Vec::new();
    log.replay::<Error>(|number, bytes| {
        assert!(bytes.iter().all(|byte| *byte == number as u8), "{number}");
        numbers.push(number);
        Ok(())
    })
    .unwrap();
    numbers
}

#[test]
fn the_next_engine_finds_what_is_not_committed() {
    let log = VolatileLog::create().unwrap();
    for number in 1..=9_u64 {
        append(&log, number, &vec![number as u8; 1000 * number as usize]);
    }
    log.trim(4);
    let next = taken_over(&log);
    assert_eq!(numbers(&next), [5, 6, 7, 8, 9]);
    assert_eq!(next.last_number(), 9);
    append(&next, 10, &[10; 77]);
    next.trim(9);
    assert_eq!(numbers(&taken_over(&next)), [10]);
    next.trim(10);
    assert_eq!(next.used(), 0);
}

#[test]
fn it_goes_round_many_times() {
    let log = VolatileLog::create().unwrap();
    let payload_len = 1 << 20;
    for number in 1..=600_u64 {
        append(&log, number, &vec![number as u8; payload_len]);
        log.trim(number.saturating_sub(3));
    }
    assert_eq!(numbers(&taken_over(&log)), [598, 599, 600]);
}

#[test]
fn a_copy_cut_short_does_not_count() {
    let log = VolatileLog::create().unwrap();
    append(&log, 1, &[1; 500]);
    let head = log.memory.counter(super::AT_HEAD).load(Ordering::Acquire);
    // As if killed before the head moved.
    append(&log, 2, &[2; 500]);
    log.memory.counter(super::AT_HEAD).store(head, Ordering::Release);
    assert_eq!(numbers(&taken_over(&log)), [1]);
    // Memory that was scribbled over is not believed.
    log.memory.write(16, &[7]);
    assert!(taken_over(&log).replay::<Error>(|_, _| Ok(())).is_err());
}

#[test]
fn what_is_not_kept_is_known_to_be_missing_until_it_is_committed() {
    let log = VolatileLog::create().unwrap();
    append(&log, 1, &[1; 10]);
    log.skip(2);
    assert_eq!((numbers(&log), log.last_number()), (vec![], 2));
    append(&log, 3, &[3; 10]);
    assert_eq!((numbers(&log), log.last_number()), (vec![3], 3));
    // One that does not fit.
    let large = vec![4; CAPACITY as usize - 32];
    append(&log, 4, &large);
    assert_eq!((log.used(), log.last_number()), (0, 4));
}

#[test]
fn a_request_is_finished_when_its_operation_was_recovered() {
    let log = VolatileLog::create().unwrap();
    append_asked(&log, &Slots::default().begin(id(77)), 1);
    append(&log, 2, &[2; 10]);
    let next = taken_over(&log);
    next.settle(2);
    assert_eq!(next.finished().get(&id(77)), Some(&10));
    // The next engine's requests leave those of the one before.
    append_asked(&next, &Slots::default().begin(id(99)), 3);
    let last = taken_over(&next);
    assert_eq!(last.finished().len(), 2);
    // An operation that is not there will be somebody else's.
    last.settle(2);
    assert_eq!(last.finished().into_iter().collect::<Vec<_>>(), [(id(77), 10)]);
}

#[test]
fn one_thread_works_for_many_datasets_and_clients_at_a_time() {
    // Of many datasets in turn, more than there are slots.
    let logs: Vec<_> = (0..3).map(|_| (VolatileLog::create().unwrap(), Slots::default())).collect();
    for number in 1..=200_u64 {
        for (log, slots) in &logs {
            append_asked(log, &slots.begin(id(1000 + number)), number);
        }
    }
    // Two clients' requests of one dataset, neither answered yet when the engine ends.
    let (log, slots) = &logs[0];
    let (first, second) = (slots.begin(id(5)), slots.begin(id(6)));
    append_asked(log, &second, 201);
    append_asked(log, &first, 202);
    let next = taken_over(log);
    next.settle(202);
    let finished = next.finished();
    assert_eq!((finished.get(&id(5)), finished.get(&id(6))), (Some(&2020), Some(&2010)));
    for (log, _) in &logs[1..] {
        assert_eq!(log.finished().get(&id(1200)), Some(&2000));
    }
}

/// The engine before this one, and the one after it, may be of another release.
#[test]
fn a_finished_request_stands_where_it_always_stood() {
    let log = VolatileLog::create().unwrap();
    let slots = Slots::default();
    let _first = slots.begin(id(1));
    append_asked(&log, &slots.begin(id(77)), 1);
    let word = |at: usize| log.memory.counter(at).load(Ordering::Acquire);
    // The second slot of the first bank.
    assert_eq!([4128, 4136, 4144].map(word), [77, 1, 10]);
    let next = taken_over(&log);
    append_asked(&next, &Slots::default().begin(id(78)), 2);
    assert_eq!([4096, 4104, 4112].map(word), [0, 0, 0], "the bank of before is left alone");
    assert_eq!([6144, 6152, 6160].map(word), [78, 2, 20]);
}

/// Inode, count, synchronous.
fn open_files(log: &VolatileLog) -> Vec<(u64, u64, bool)> {
    let open = taken_over(log).open_files().unwrap();
    let mut open: Vec<_> =
        open.iter().map(|file| (file.ino, file.count, file.synchronous)).collect();
    open.sort_unstable();
    open
}

#[test]
fn open_files_are_counted_across_engines() {
    let log = VolatileLog::create().unwrap();
    for (ino, synchronous) in [(5, false), (6, true), (5, true), (7, true), (7, false)] {
        log.opened(ino, synchronous);
    }
    log.closed(6);
    assert_eq!(open_files(&log), [(5, 2, true), (7, 2, true)]);
    let next = taken_over(&log);
    next.closed(5);
    next.closed(7);
    next.closed(7);
    next.opened(8, false);
    next.opened(7, false);
    assert_eq!(open_files(&next), [(5, 1, true), (7, 1, false), (8, 1, false)]);
    for ino in 0..OPEN_MAX as u64 {
        next.opened(100 + ino, false);
    }
    assert!(taken_over(&next).open_files().is_none(), "too many to count");
}
