use super::fake::{Fake, PASSWORD, Peer};
use super::memory::assert_bounded;
use crate::server::installations;
use offshoot_postgres::slot::slot_state;
use offshoot_postgres::source::{CONNECT_TIMEOUT, Session, precheck, read_facts};
use offshoot_types::{ErrorKind, Failure};
use std::io;
use std::time::{Duration, Instant};

/// A machine that is busy takes longer.
const SLACK: Duration = Duration::from_secs(20);

fn failure_of<T>(result: Result<T, Failure>) -> Failure {
    let failure = result.err().expect("the source had its way");
    let text = format!("{} {}", failure.message, failure.hint);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
    assert!(text.len() < 10_000, "{} bytes", text.len());
    assert!(!text.contains(PASSWORD), "{text}");
    failure
}

/// The failure of a statement that the server answers so.
fn asked(answer: impl Fn(&mut Peer) -> io::Result<()> + Send + Sync + 'static) -> Failure {
    let fake = Fake::start(move |peer| {
        peer.admit_session()?;
        peer.query()?;
        answer(peer)
    });
    let session = fake.source().connect().unwrap();
    let began = Instant::now();
    let failure = failure_of(session.rows("SELECT 1"));
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    assert_bounded();
    failure
}

#[test]
fn a_password_is_not_told_in_the_clear() {
    for method in [&[0, 0, 0, 3][..], &[0, 0, 0, 5, 1, 2, 3, 4]] {
        let fake = Fake::start(move |peer| {
            peer.send(b'R', method)?;
            peer.next().map(drop)
        });
        for query in ["", "?sslmode=disable", "?sslmode=allow"] {
            let failure = failure_of(fake.source_with(query).connect());
            assert_eq!(failure.code, ErrorKind::SourceRefused, "{failure}");
            assert!(failure.message.contains("in the clear"), "{failure}");
            assert!(failure.hint.contains("scram-sha-256"), "{}", failure.hint);
        }
        std::thread::sleep(Duration::from_millis(100));
        assert!(!fake.heard(PASSWORD.as_bytes()) && !fake.heard(b"p\0\0\0"), "{method:?}");
    }
}

#[test]
fn tls_that_is_asked_for_is_not_given_up() {
    let fake = Fake::start(|peer| {
        peer.send(b'R', &[0, 0, 0, 3])?;
        peer.next().map(drop)
    });
    let failure = failure_of(fake.source_with("?sslmode=require").connect());
    assert!(failure.hint.contains("ssl = on"), "{failure} {}", failure.hint);
    assert!(!fake.heard(PASSWORD.as_bytes()));
}

#[test]
fn rows_end() {
    let failure = asked(|peer| {
        peer.columns(1)?;
        loop {
            peer.row(&[Some(&[b'x'; 5000])])?;
        }
    });
    assert_eq!(failure.code, ErrorKind::SourceRefused, "{failure}");
    assert!(failure.message.contains("does not end"), "{failure}");
    let failure = asked(|peer| {
        peer.columns(0)?;
        loop {
            peer.row(&[])?;
        }
    });
    assert!(failure.message.contains("does not end"), "{failure}");
}

#[test]
fn a_message_has_no_size_that_it_names() {
    for length in [0x7fff_ffff_u32, 0xffff_ffff, 0, 3] {
        let failure = asked(move |peer| {
            peer.columns(1)?;
            peer.raw(&[&b"D"[..], &length.to_be_bytes()].concat())?;
            peer.query().map(drop)
        });
        assert_eq!(failure.code, ErrorKind::SourceRefused, "{length}: {failure}");
    }
}

#[test]
fn what_ends_early_or_is_none_of_the_protocol_is_a_failure() {
    let failure = asked(|peer| peer.raw(b"T\0\0\0\x40half"));
    assert_eq!(failure.code, ErrorKind::SourceUnreachable, "{failure}");
    asked(|peer| peer.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\x1b[31m"));
    asked(|peer| {
        peer.send(b'T', b"\xff\xff\0\0")?;
        peer.ready()
    });
    // A row without a description, a row of another width, copies in both directions.
    asked(|peer| peer.row(&[Some(b"1")]));
    asked(|peer| {
        peer.columns(3)?;
        peer.row(&[Some(b"1")])
    });
    asked(|peer| peer.send(b'H', &[0; 3]));
    asked(|peer| peer.send(b'W', &[0; 3]));
}

#[test]
fn errors_come_without_a_terminal_s_commands() {
    let failure = asked(|peer| {
        peer.error(b'E', "\u{1b}[2J\u{1b}]0;owned\u{7}denied\u{9b}5m", "\u{202e}rm -rf\r\u{8}")?;
        peer.ready()
    });
    assert_eq!(failure.code, ErrorKind::SourceRefused);
    assert!(failure.message.contains("denied"), "{failure}");
    // However much it says.
    asked(|peer| {
        peer.error(b'E', &"very ".repeat(1 << 20), &"sorry ".repeat(1 << 20))?;
        peer.ready()
    });
    let at_once = Fake::start(|peer| peer.error(b'E', "\u{1b}[2J no", ""));
    failure_of(at_once.source().connect());
}

#[test]
fn notices_end() {
    let failure = asked(|peer| {
        loop {
            peer.error(b'N', "look at me", "")?;
        }
    });
    assert!(failure.message.contains("does not end"), "{failure}");
    for kind in [b'N', b'S'] {
        let greeting = Fake::start(move |peer| {
            peer.send(b'R', &[0; 4])?;
            for count in 0_u64.. {
                match kind {
                    b'N' => peer.error(b'N', "welcome", "")?,
                    _ => peer.send(b'S', format!("p{count}\0v\0").as_bytes())?,
                }
            }
            Ok(())
        });
        let failure = failure_of(greeting.source().connect());
        assert!(failure.message.contains("does not end"), "{failure}");
    }
    assert_bounded();
}

#[test]
fn a_drip_does_not_hold_a_session() {
    let greeting = Fake::start(|peer| peer.drip(b"R\0\0\0\x08\0\0\0\0N\0\0\0\x05\0"));
    let began = Instant::now();
    failure_of(greeting.source().connect());
    assert!(began.elapsed() < CONNECT_TIMEOUT * 2 + SLACK, "{:?}", began.elapsed());

    let fake = Fake::start(|peer| {
        peer.admit_session()?;
        peer.query()?;
        peer.columns(1)?;
        peer.drip(b"D\0\0\0\x0a\0\x01\0\0\0\0")
    });
    let session = fake.source().connect().unwrap();
    let began = Instant::now();
    let failure = failure_of(session.rows_within("SELECT 1", Duration::from_secs(3)));
    assert_eq!(failure.code, ErrorKind::SourceUnreachable, "{failure}");
    assert!(began.elapsed() < Duration::from_secs(3) + SLACK, "{:?}", began.elapsed());
    assert!(session.is_broken());
}

/// Answers every query with one row of such values.
fn parrot(values: &'static [Option<&'static [u8]>]) -> Fake {
    Fake::start(move |peer| {
        peer.admit_session()?;
        loop {
            peer.query()?;
            peer.answer(values)?;
        }
    })
}

#[test]
fn values_of_other_kinds_are_failures() {
    let facts = |session: &Session| failure_of(read_facts(session));
    const KINDS: [&[Option<&[u8]>]; 6] = [
        &[],
        &[None; 12],
        &[Some(b"\xff\xfe\x80".as_slice()); 12],
        &[Some(b"\x1b[2J".as_slice()); 12],
        &[Some(b"99999999999999999999999".as_slice()); 12],
        &[Some(b"-1".as_slice()); 12],
    ];
    for values in KINDS {
        let fake = parrot(values);
        let session = fake.source().connect().unwrap();
        facts(&session);
        let _ =
            slot_state(&session, "offshoot_x").map_err(|failure| failure_of::<()>(Err(failure)));
        failure_of(precheck(&fake.source(), &installations()).into_result());
    }
    assert_bounded();
}
