#![allow(clippy::unwrap_used)]

use super::*;

fn seals(byte: u8) -> Seals {
    Seals::new(Some(&DataKey::of([byte; KEY_LEN]))).unwrap()
}

#[test]
fn a_message_opens_for_its_purpose_in_its_context_with_its_key() {
    let seals_of_pool = seals(1);
    let sealed = seals_of_pool.seal(Purpose::Log, b"here", b"a message").unwrap();
    assert_eq!(sealed.len(), 9 + SEAL_LEN);
    // Another opening of the pool.
    let open = |seals: Seals, purpose, context: &[u8]| {
        seals.open(purpose, context, &sealed).map(Cow::into_owned)
    };
    assert_eq!(open(seals(1), Purpose::Log, b"here").unwrap(), b"a message");
    assert!(open(seals(1), Purpose::Log, b"there").is_err());
    assert!(open(seals(1), Purpose::Table, b"here").is_err());
    assert!(open(seals(2), Purpose::Log, b"here").is_err());
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let seals = seals(1);
    let sealed = seals.seal(Purpose::Table, b"", b"records").unwrap().into_owned();
    for bit in 0..sealed.len() * 8 {
        let mut wrong = sealed.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        assert!(seals.open(Purpose::Table, b"", &wrong).is_err(), "bit {bit}");
    }
    for len in 0..sealed.len() {
        assert!(seals.open(Purpose::Table, b"", &sealed[..len]).is_err(), "{len} bytes");
    }
}

#[test]
fn the_same_message_is_never_sealed_the_same_way() {
    let seals = seals(1);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1000 {
        let sealed = seals.seal(Purpose::Block, b"", &[0; 64]).unwrap().into_owned();
        assert!(!sealed.windows(16).any(|window| window == [0; 16]));
        assert!(seen.insert(sealed[SEAL_LEN..].to_vec()));
    }
}

#[test]
fn a_key_is_left_before_it_has_sealed_too_much() {
    let seals = seals(1);
    let keys = seals.0.as_ref().unwrap();
    let number = |keys: &Keys| keys.seal(Purpose::Log, b"", &mut [0]).unwrap().key;
    assert_eq!(number(keys), keys.first);
    keys.messages.store((1 << MESSAGES_BITS) - 1, Ordering::Relaxed);
    assert_eq!(number(keys), keys.first);
    assert_eq!(number(keys), keys.first.wrapping_add(1));
}

#[test]
fn keys_of_damaged_numbers_take_no_memory_for_ever() {
    let seals = seals(1);
    for number in 0..3 * CIPHERS_MAX as u32 {
        let bytes = Seal { key: number, nonce: [0; NONCE_LEN], tag: [0; TAG_LEN] }.encode();
        assert!(seals.open(Purpose::Block, b"", &bytes).is_err());
    }
    assert!(seals.0.unwrap().ciphers.read().len() <= CIPHERS_MAX);
}

#[test]
fn without_a_key_everything_stays_as_it_is() {
    let seals = Seals::default();
    assert_eq!(seals.overhead(), 0);
    assert_eq!(&*seals.seal(Purpose::Root, b"", b"plain").unwrap(), b"plain");
    assert_eq!(&*seals.open(Purpose::Root, b"", b"plain").unwrap(), b"plain");
}

#[test]
fn keys_are_not_printed_and_differ_by_what_they_are_for() {
    let key = DataKey::of([7; KEY_LEN]);
    assert_eq!(format!("{key:?}"), "DataKey");
    assert_ne!(*key.derive("catalog"), *key.derive("another"));
    assert_ne!(*key.derive("catalog"), *DataKey::of([8; KEY_LEN]).derive("catalog"));
}
