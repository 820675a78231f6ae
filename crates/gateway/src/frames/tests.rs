use super::*;
use crate::messages::message;

/// Steps through the bytes in pieces of so many.
fn tags(bytes: &[u8], piece: usize) -> io::Result<(Vec<u8>, Vec<Vec<u8>>, bool)> {
    let mut frames = Frames::new(b"Z");
    let (mut tags, mut kept) = (Vec::new(), Vec::new());
    for mut bytes in bytes.chunks(piece) {
        while !bytes.is_empty() {
            let step = frames.step(bytes)?;
            bytes = &bytes[step.used..];
            tags.extend(step.ended);
            if step.ended.is_some() {
                kept.extend(frames.kept().map(<[u8]>::to_vec));
            }
        }
    }
    Ok((tags, kept, frames.at_boundary()))
}

#[test]
fn messages_are_found_in_pieces_of_any_size() {
    let bytes = [
        message(b'D', &[&[1; 1000]]),
        message(b'Z', &[b"I"]),
        message(b'n', &[]),
        message(b'Z', &[b"T"]),
    ]
    .concat();
    for piece in [1, 2, 3, 4, 5, 6, 7, 100, 1006, 10_000] {
        let (found, kept, whole) = tags(&bytes, piece).unwrap();
        assert_eq!(found, b"DZnZ", "in pieces of {piece}");
        assert_eq!(kept, [b"I", b"T"]);
        assert!(whole);
        let (_, _, whole) = tags(&bytes[..bytes.len() - 1], piece).unwrap();
        assert!(!whole);
    }
}

#[test]
fn a_long_message_is_not_kept() {
    let bytes = [message(b'Z', &[&[1; KEPT_MAX + 1]]), message(b'Z', &[b"I"])].concat();
    let (found, kept, _) = tags(&bytes, 777).unwrap();
    assert_eq!((&found[..], &kept[..]), (&b"ZZ"[..], &[b"I".to_vec()][..]));
}

#[test]
fn lengths_that_cannot_be_are_errors() {
    for header in [*b"Q\0\0\0\x03", *b"Q\xff\xff\xff\xff", *b"Q\x40\0\0\0"] {
        for piece in [1, 5] {
            assert!(tags(&header, piece).is_err());
        }
    }
    assert!(tags(b"Q\x3f\xff\xff\xff", 5).is_ok());
}
