use super::{RequestId, SLOTS, Slots};
use std::collections::HashSet;
use std::sync::mpsc;

fn id(number: u64) -> RequestId {
    RequestId::new(number).unwrap()
}

#[test]
fn requests_under_way_have_slots_of_their_own() {
    let slots = Slots::default();
    let mut under_way: Vec<_> = (1..=SLOTS as u64).map(|number| slots.begin(id(number))).collect();
    let different: HashSet<usize> = under_way.iter().map(|request| request.slot()).collect();
    assert_eq!(different, (0..SLOTS).collect());
    let given_back = under_way.remove(17).slot();
    assert_eq!(slots.begin(id(99)).slot(), given_back);
    assert_eq!(RequestId::new(0), None);
}

#[test]
fn one_too_many_waits_for_an_answer() {
    let slots = Slots::default();
    let mut under_way: Vec<_> = (1..=SLOTS as u64).map(|number| slots.begin(id(number))).collect();
    let (begun, when) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = slots.begin(id(1000));
            begun.send(request.slot()).unwrap();
        });
        assert!(when.recv_timeout(std::time::Duration::from_millis(50)).is_err());
        let answered = under_way.pop().unwrap();
        let slot = answered.slot();
        drop(answered);
        let waited = when.recv_timeout(std::time::Duration::from_secs(20));
        assert_eq!(waited, Ok(slot));
    });
}
