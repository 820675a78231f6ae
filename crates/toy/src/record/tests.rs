use super::*;
use proptest::prelude::*;

fn record(number: u64, key: &str, value: &str) -> Record {
    Record { number, time_us: -5, kind: Kind::Data, key: key.to_owned(), value: value.to_owned() }
}

#[test]
fn a_record_reads_back_only_at_its_own_position() {
    let bytes = record(7, "key", "a value").encode(4711, 4000).unwrap();
    let header = Header::decode(4711, &bytes).unwrap();
    assert_eq!((header.previous, header.body_bytes + HEADER_BYTES), (4000, bytes.len()));
    assert_eq!(Record::decode(&header, &bytes[HEADER_BYTES..]), Some(record(7, "key", "a value")));
    assert_eq!(Header::decode(4712, &bytes), None);
    assert_eq!(Header::decode(4711, &bytes[..HEADER_BYTES - 1]), None);
}

#[test]
fn zeros_are_no_record() {
    assert_eq!(Header::decode(65536, &[0; 64]), None);
}

#[test]
fn a_record_that_is_too_long_is_refused() {
    assert_eq!(record(1, "k", &"x".repeat(BODY_BYTES_MAX)).encode(1, 0), None);
}

proptest! {
    #[test]
    fn a_flipped_bit_is_always_noticed(value in ".{0,60}", at in 0_usize..1_000_000, bit in 0..8) {
        let good = record(3, "key", &value).encode(99, 1).unwrap();
        let mut bytes = good.clone();
        let at = at % bytes.len();
        bytes[at] ^= 1_u8 << bit;
        let read = Header::decode(99, &bytes)
            .and_then(|header| Record::decode(&header, &bytes[HEADER_BYTES..]));
        prop_assert_eq!(read, None);
    }
}
