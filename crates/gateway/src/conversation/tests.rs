use super::*;
use crate::messages::message;

fn fresh() -> Conversation {
    Conversation::new(Parameters::new())
}

/// The client sends these; all of it passes.
fn up(conversation: &mut Conversation, tags: &[u8]) {
    for tag in tags {
        let bytes = message(*tag, &[b"named\0"]);
        assert_eq!(conversation.pass_up(&bytes, false).unwrap(), bytes.len());
    }
}

fn down(conversation: &mut Conversation, tags: &[u8]) {
    for tag in tags {
        conversation.pass_down(&message(*tag, &[b"I"])).unwrap();
    }
}

fn ready(conversation: &mut Conversation, status: u8) {
    conversation.pass_down(&message(b'Z', &[&[status]])).unwrap();
}

#[test]
fn a_query_is_under_way_until_the_server_is_ready() {
    let mut it = fresh();
    assert!(it.is_quiet());
    up(&mut it, b"QQ");
    down(&mut it, b"TDCZ");
    assert!(!it.is_quiet(), "the second is not answered");
    down(&mut it, b"TDC");
    ready(&mut it, b'T');
    assert!(!it.is_quiet(), "a transaction is open");
    up(&mut it, b"Q");
    ready(&mut it, b'E');
    assert!(!it.is_quiet());
    up(&mut it, b"Q");
    ready(&mut it, b'I');
    assert!(it.is_quiet());
}

#[test]
fn a_batch_is_under_way_from_its_first_message() {
    let mut it = fresh();
    for tag in b"PBDEC" {
        up(&mut it, &[*tag]);
        assert!(!it.is_quiet());
        up(&mut it, b"HS");
        assert!(!it.is_quiet());
        down(&mut it, b"Z");
        assert!(it.is_quiet());
    }
}

#[test]
fn a_part_of_a_message_is_under_way() {
    let mut it = fresh();
    let bytes = message(b'N', &[b"words"]);
    it.pass_down(&bytes[..7]).unwrap();
    assert!(!it.is_quiet() && !it.is_whole_down());
    it.pass_down(&bytes[7..]).unwrap();
    assert!(it.is_quiet());
    it.pass_up(b"Q", false).unwrap();
    assert!(!it.is_quiet() && !it.is_whole_up());
}

#[test]
fn copy_in_by_a_query_ends_with_its_data() {
    let mut it = fresh();
    up(&mut it, b"Q");
    down(&mut it, b"G");
    up(&mut it, b"ddSHdc");
    down(&mut it, b"C");
    assert!(!it.is_quiet());
    down(&mut it, b"Z");
    assert!(it.is_quiet());
}

#[test]
fn a_sync_among_the_data_of_a_copy_is_skipped() {
    // As libpq and tokio-postgres do it: the first Sync is read as part of the data.
    let mut it = fresh();
    up(&mut it, b"BES");
    down(&mut it, b"2G");
    up(&mut it, b"ddcS");
    down(&mut it, b"CZ");
    assert!(it.is_quiet());
    // All at once, before the server says anything.
    up(&mut it, b"BESddcS");
    down(&mut it, b"2GC");
    assert!(!it.is_quiet());
    down(&mut it, b"Z");
    assert!(it.is_quiet());
}

#[test]
fn a_copy_that_fails_is_answered_once() {
    let mut it = fresh();
    up(&mut it, b"Q");
    down(&mut it, b"GEZ");
    up(&mut it, b"dc");
    assert!(it.is_quiet(), "what comes too late is skipped");
    up(&mut it, b"Q");
    assert!(!it.is_quiet());
    down(&mut it, b"Z");
    assert!(it.is_quiet());
}

#[test]
fn at_rest_only_once_an_unnamed_statement_was_used() {
    let mut it = fresh();
    let unnamed = message(b'P', &[b"\0SELECT 1\0\0\0"]);
    it.pass_up(&unnamed, false).unwrap();
    up(&mut it, b"DS");
    down(&mut it, b"1tTZ");
    assert!(it.is_quiet() && !it.is_at_rest());
    up(&mut it, b"BES");
    down(&mut it, b"2DCZ");
    assert!(it.is_at_rest());
}

#[test]
fn what_is_new_waits_while_it_is_brought_to_rest() {
    let mut it = fresh();
    let query = message(b'Q', &[b"SELECT 1\0"]);
    let two = [query.clone(), query.clone()].concat();
    assert_eq!(it.pass_up(&two, true).unwrap(), 0, "nothing is under way");
    // A query that passed in part passes whole, the one behind it waits.
    it.pass_up(&two[..3], false).unwrap();
    assert_eq!(it.pass_up(&two[3..], true).unwrap(), query.len() - 3);
    // What a transaction needs passes, one at a time.
    ready(&mut it, b'T');
    assert_eq!(it.pass_up(&two, true).unwrap(), query.len());
    ready(&mut it, b'I');
    assert_eq!(it.pass_up(&two, true).unwrap(), 0);
    assert!(it.is_at_rest());
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut it = fresh();
    for number in 0..2 * PARAMETERS_MAX {
        let name = number.to_string();
        it.pass_down(&message(b'S', &[name.as_bytes(), b"\0value\0"])).unwrap();
    }
    it.pass_down(&message(b'S', &[&[b'x'; 5000], b"\0\0"])).unwrap();
    assert_eq!(it.told.len(), PARAMETERS_MAX);
    let sync = message(b'S', &[]);
    for _ in 0..2 * PENDING_MAX {
        it.pass_up(&sync, false).unwrap();
    }
    for _ in 0..2 * PENDING_MAX {
        ready(&mut it, b'I');
    }
    assert!(!it.is_quiet(), "what was lost count of is never quiet");
}

#[test]
fn a_session_is_untouched_until_anything_is_sent() {
    let mut it = fresh();
    down(&mut it, b"NSA");
    let query = message(b'Q', &[b"SELECT 1\0"]);
    assert_eq!(it.pass_up(&query, true).unwrap(), 0);
    assert!(it.is_untouched(), "what waits has not been sent");
    it.pass_up(&query[..1], false).unwrap();
    assert!(!it.is_untouched());
}
