use super::*;

fn remote(text: &str) -> Peer {
    Peer::Remote(text.parse().unwrap())
}

#[test]
fn nobody_takes_the_last_place_from_others() {
    let places = Places::of(8, 3);
    let one = remote("192.0.2.1:1");
    let mut held: Vec<Place> = (0..8).filter_map(|_| places.take(&one)).collect();
    assert_eq!(held.len(), 3);
    assert!(places.take(&remote("192.0.2.2:1")).is_some(), "another one finds a place");
    held.pop();
    assert!(places.take(&one).is_some(), "a place that was given back is taken again");
}

#[test]
fn there_is_an_end_also_for_many() {
    let places = Places::of(4, 2);
    let all: Vec<Place> =
        (1..9).filter_map(|n| places.take(&remote(&format!("192.0.2.{n}:1")))).collect();
    assert_eq!(all.len(), 4);
    drop(all);
    assert!(places.taken.lock().unwrap().by.is_empty(), "nothing is kept of those who left");
}

#[test]
fn the_engine_s_own_user_may_take_all_that_the_group_left() {
    let places = Places::of(6, 2);
    let (own, other) = (Peer::Local { uid: 0, pid: 1 }, Peer::Local { uid: 4_000_000, pid: 2 });
    let others: Vec<Place> = (0..6).filter_map(|_| places.take(&other)).collect();
    let owns: Vec<Place> = (0..6).filter_map(|_| places.take(&own)).collect();
    assert_eq!((others.len(), owns.len()), (2, 4));
}
