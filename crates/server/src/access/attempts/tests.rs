use super::*;
use std::net::{IpAddr, Ipv4Addr};

fn caller(number: u32) -> Share {
    Share::Address(IpAddr::V4(Ipv4Addr::from(number)))
}

#[test]
fn who_fails_often_is_refused_until_time_has_passed_and_others_are_not() {
    let (attempts, begun) = (Attempts::default(), Instant::now());
    let allowed = |at| (0..100).filter(|_| attempts.allow_at(caller(1), at)).count();
    assert_eq!(allowed(begun), FREE as usize);
    assert!(attempts.allow_at(caller(2), begun));
    assert!(!attempts.allow_at(caller(1), begun));
    assert_eq!(allowed(begun + 3 * AGAIN), 3);
}

#[test]
fn memory_is_bounded_and_a_bound_holds_for_those_it_does_not_know() {
    let (attempts, begun) = (Attempts::default(), Instant::now());
    let callers = 2 * CALLERS_MAX as u32;
    let allowed = (0..callers).filter(|one| attempts.allow_at(caller(*one), begun)).count();
    assert_eq!(allowed, CALLERS_MAX + FREE as usize);
    assert_eq!(attempts.failed.lock().unwrap().len(), CALLERS_MAX + 1);
    assert!(attempts.allow_at(caller(callers), begun + AGAIN * FREE));
    assert_eq!(attempts.failed.lock().unwrap().len(), 1, "who did nothing since is forgotten");
}
