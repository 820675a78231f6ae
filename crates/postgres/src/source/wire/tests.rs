use super::*;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind][..], &length, body].concat()
}

/// Sees the bytes in pieces of every size up to 12.
fn see(exposed: bool, bytes: &[u8]) -> Result<(), Breach> {
    let results = (1..12).map(|piece| {
        let mut watch = Watch { exposed, ..Watch::default() };
        bytes.chunks(piece).try_for_each(|chunk| watch.see(chunk))
    });
    let results: Vec<_> = results.collect();
    assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    results[0]
}

fn asks_for(method: u32) -> Vec<u8> {
    message(b'R', &method.to_be_bytes())
}

#[test]
fn only_scram_is_answered_where_others_may_listen() {
    for method in [3, 5] {
        assert_eq!(see(false, &asks_for(method)), Err(Breach::Exposed), "{method}");
        assert_eq!(see(true, &asks_for(method)), Ok(()));
    }
    let scram = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    assert_eq!(see(false, &[scram, asks_for(0)].concat()), Ok(()));
}

#[test]
fn a_message_without_a_method_is_none() {
    assert_eq!(see(true, &message(b'R', b"\0\0")), Err(Breach::Garbled));
    assert_eq!(see(true, b"D\0\0\0\x03"), Err(Breach::Garbled));
    let late = [message(b'Z', b"I"), asks_for(3)].concat();
    assert_eq!(see(true, &late), Err(Breach::Garbled));
}

#[test]
fn answers_end() {
    assert_eq!(see(true, b"D\x7f\xff\xff\xff"), Err(Breach::Endless));
    let mut watch = Watch::default();
    watch.see(&message(b'Z', b"I")).unwrap();
    let row = message(b'D', &[0; 100]);
    let rows = |watch: &mut Watch, count: u64| (0..count).try_for_each(|_| watch.see(&row));
    rows(&mut watch, ROWS_MAX).unwrap();
    // Another statement begins another answer.
    watch.begin();
    rows(&mut watch, ROWS_MAX).unwrap();
    assert_eq!(watch.see(&row), Err(Breach::Endless));
    let mut watch = Watch::default();
    let notice = message(b'N', &[0; 1000]);
    let told = (0..1000).try_for_each(|_| watch.see(&notice));
    assert_eq!(told, Err(Breach::Endless));
}

#[test]
fn parameters_are_counted_over_the_whole_session() {
    let mut watch = Watch::default();
    watch.see(&message(b'Z', b"I")).unwrap();
    let set = message(b'S', b"a\0b\0");
    let endless = (0..PARAMETERS_MAX + 1).try_for_each(|_| {
        watch.begin();
        watch.see(&set)
    });
    assert_eq!(endless, Err(Breach::Endless));
}
