//! What a source promises.

use crate::{Harness, Linked, PATIENCE};
use offshoot_connector::Source;
use offshoot_domain::{ConnectorState, Secret};
use offshoot_types::{ErrorKind, Failure};

fn at(linked: &Linked<'_>, uri: &str) -> Box<dyn Source> {
    let uri = linked.connector.parse_source(uri, None).unwrap();
    linked.connector.source(&uri).unwrap()
}

fn is_told(failure: &Failure) {
    assert!(!failure.message.is_empty() && !failure.hint.is_empty(), "{failure:?} has no hint");
}

/// The same source has the same identity, another one a different one.
pub fn a_source_is_named_alike_each_time(harness: &dyn Harness) {
    let (one, other) = (Linked::new(harness), Linked::new(harness));
    let again = one.source().check().unwrap();
    assert_eq!(again.identity, one.checked.identity);
    assert_eq!(again.state, one.checked.state);
    assert!(again.clock > one.checked.clock);
    assert_ne!(other.checked.identity, one.checked.identity);
}

/// A wrong secret is a refusal of the source, not a source that is not there.
pub fn a_wrong_secret_is_refused_with_a_hint(harness: &dyn Harness) {
    let linked = Linked::new(harness);
    let failure = at(&linked, &linked.production.wrong_uri()).check().unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceRefused, "{failure}");
    is_told(&failure);
}

/// Nobody listens.
pub fn a_source_that_is_not_there_is_said_to_be(harness: &dyn Harness) {
    let linked = Linked::new(harness);
    let port = offshoot_os::unused_port().unwrap();
    let failure = at(&linked, &linked.production.uri(Some(port))).check().unwrap_err();
    assert_eq!(failure.code, ErrorKind::SourceUnreachable, "{failure}");
    is_told(&failure);
}

/// A version that no host has programs of.
pub fn a_version_without_programs_is_named(harness: &dyn Harness) {
    let linked = Linked::new(harness);
    linked.connector.check_programs(&linked.checked.version).unwrap();
    let failure = linked.connector.check_programs("4711.1").unwrap_err();
    assert_eq!(failure.code, ErrorKind::HostUnprepared, "{failure}");
    assert!(failure.message.contains("4711"), "{failure}");
    is_told(&failure);
}

/// What is stored and shown has no secret in it; a separately given one wins.
pub fn a_uri_is_kept_without_its_secret(harness: &dyn Harness) {
    let linked = Linked::new(harness);
    let connector = &linked.connector;
    let whole = linked.production.uri(None);
    let parsed = connector.parse_source(&whole, None).unwrap();
    let secret = parsed.secret.clone().expect("the URI has a secret");
    assert!(!parsed.uri.contains(secret.reveal()), "{}", parsed.uri);
    let again = connector.parse_source(&parsed.uri, Some(Secret::new("given"))).unwrap();
    assert_eq!((again.uri, again.secret), (parsed.uri.clone(), Some(Secret::new("given"))));
    let failure = at(&linked, &parsed.uri).check().unwrap_err();
    assert!(!format!("{failure:?}").contains(secret.reveal()));
    let bad = connector.parse_source("this is no URI of anything", None).unwrap_err();
    assert_eq!(bad.code, ErrorKind::InvalidInput);
    is_told(&bad);
}

/// Both steps are repeated after a crash of the engine.
pub fn a_reservation_is_made_and_released_twice(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    let source = linked.source();
    let (Some(one), Some(other)) =
        (source.reservation_name("job 17"), source.reservation_name("job 18"))
    else {
        return assert_eq!(linked.production.reservations(), Vec::<String>::new());
    };
    assert_ne!(one, other);
    for _ in 0..2 {
        source.reserve_log(&one).unwrap();
    }
    assert!(linked.production.reservations().contains(&one));
    for _ in 0..2 {
        source.release_log(&one).unwrap();
    }
    assert!(!linked.production.reservations().contains(&one));
    source.release_log(&other).unwrap();
    assert!(source.release_hint(&one).contains(&one));
}

/// A copy that the user cancelled ends as cancelled; what it left is removed, and the next one
/// opens.
pub fn a_cancelled_copy_is_made_again(harness: &dyn Harness) {
    let linked = Linked::new(harness);
    let target = linked.empty();
    let failure = linked.copy_to(&target, &|| true).unwrap_err();
    assert_eq!(failure.code, ErrorKind::Cancelled, "{failure}");
    let target = linked.empty();
    let copied = linked.copy_to(&target, &|| false).unwrap();
    assert!(copied.start <= copied.end);
    let spec = linked.spec(&target);
    if !copied.verified {
        linked.source().verify(&spec, &|| false).unwrap();
    }
    linked.source().adopt_settings(&spec).unwrap();
    let end = linked.receive();
    let server = linked.replay(&target, end).unwrap().server;
    assert_eq!(linked.content(&target), linked.before);
    server.stop(offshoot_connector::StopMode::Immediate, PATIENCE).unwrap();
}

/// Records of a later release are refused, whatever they hold.
pub fn an_unknown_state_is_an_error(harness: &dyn Harness) {
    let linked = Linked::new(harness);
    let known = &linked.checked.state;
    let states = [
        ConnectorState { version: known.version + 1000, data: known.data.clone() },
        ConnectorState { version: known.version, data: serde_json::json!(["no", "record"]) },
        ConnectorState::default(),
    ];
    for state in states {
        let (log, index) = (linked.path("log"), linked.path("index"));
        let (log, index) = (crate::files::plain(&log), crate::files::plain(&index));
        let opened = linked.connector.open_log(&state, log, index);
        let failure = opened.err().expect("an unknown state is refused");
        assert_eq!(failure.code, ErrorKind::WrongState, "{failure}");
        assert!(!failure.hint.is_empty(), "{failure}");
        let request =
            offshoot_connector::StreamRequest { state: state.clone(), ..linked.stream_request() };
        let failure = linked.source().stream(request).err().expect("an unknown state is refused");
        assert_eq!(failure.code, ErrorKind::WrongState, "{failure}");
        // What cannot fail must not panic.
        let end = offshoot_types::LogPosition::END;
        let written = linked.connector.write_position(&state, end);
        let _ = linked.connector.read_position(&state, &written);
    }
}
