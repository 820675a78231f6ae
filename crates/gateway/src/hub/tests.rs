use super::*;
use crate::control::Backend;
use std::time::Duration;

fn target() -> Target {
    let backend = Backend { port: 1, tls: None, allow: Vec::new(), logins: BTreeMap::new() };
    Target::new(backend).unwrap()
}

#[tokio::test]
async fn no_connection_is_opened_while_it_holds() {
    let hub = Hub::new("shop".to_owned());
    assert!(hub.open().is_none());
    hub.serve(target());
    let (open, _) = hub.open().unwrap();
    hub.hold(Why::Change, Instant::now() + Duration::from_secs(1));
    assert!(hub.open().is_none());
    assert_eq!(*hub.open_count().borrow(), 1);
    drop(open);
    assert_eq!(*hub.open_count().borrow(), 0);
    hub.hold(Why::Asleep, Instant::now());
    assert_eq!(hub.status().state, State::Asleep);
    hub.end();
    hub.serve(target());
    assert!(matches!(hub.phase_now(), Phase::Ended), "what ends has ended");
}

#[tokio::test]
async fn what_is_counted_is_counted_as_long_as_it_lives() {
    let hub = Hub::new("shop".to_owned());
    let first = hub.enter(1).unwrap();
    assert!(hub.enter(1).is_none());
    drop(first);
    let _second = hub.enter(1).unwrap();
    let parked = (hub.begin(), hub.park("b"), hub.begin(), hub.park("a"), hub.park("b"));
    let waiting = hub.wait();
    let status = hub.status();
    assert_eq!((status.sessions, status.parked, status.waiting), (2, 3, 1));
    assert_eq!(status.parked_roles, ["a", "b"]);
    drop((parked, waiting));
    let status = hub.status();
    assert_eq!((status.sessions, status.parked, status.waiting), (0, 0, 0));
}

#[tokio::test]
async fn keys_stand_for_those_of_servers() {
    let hub = Hub::new("shop".to_owned());
    let (one, other) = (hub.make_key(b"12345678").unwrap(), hub.make_key(b"12345678").unwrap());
    assert_ne!(one.made(), other.made());
    assert_eq!(one.made().len(), 8);
    assert_eq!(hub.server_key(one.made()).unwrap(), b"12345678");
    one.stands_for(None);
    assert_eq!(hub.server_key(one.made()), None);
    one.stands_for(Some(b"87654321"));
    assert_eq!(hub.server_key(one.made()).unwrap(), b"87654321");
    let made = one.made().to_vec();
    drop(one);
    assert_eq!(hub.server_key(&made), None);
    assert_eq!(hub.make_key(&[1; 36]).unwrap().made().len(), 36);
    assert!(hub.make_key(b"1234567").is_none());
    assert!(hub.make_key(&[1; KEY_BYTES_MAX + 1]).is_none());
}
