use super::{Keyring, SecretKey};
use crate::{Error, KeyId};
use offshoot_domain::Secret;

fn key(byte: u8) -> SecretKey {
    SecretKey::of([byte; 32])
}

#[test]
fn a_value_opens_under_its_name_and_key_only() {
    let (ring, secret) = (Keyring::from(key(1)), Secret::new("swordfish"));
    let (id, value) = ring.seal("vdb-1/password", &secret).expect("sealed");
    assert_eq!(ring.open("vdb-1/password", &id, &value).expect("opens"), secret);

    let swapped = ring.open("vdb-2/password", &id, &value);
    assert!(matches!(swapped, Err(Error::Damaged(_))), "{swapped:?}");
    let other = key(2).open("vdb-1/password", &value);
    assert!(matches!(other, Err(Error::Damaged(_))), "{other:?}");
    let missing = Keyring::from(key(2)).open("vdb-1/password", &id, &value);
    assert!(matches!(missing, Err(Error::NoKey(found)) if found == id));
}

#[test]
fn any_change_of_a_value_is_noticed() {
    let ring = Keyring::from(key(1));
    let (id, value) = ring.seal("name", &Secret::new("x")).expect("sealed");
    for bit in 0..value.len() * 8 {
        let mut changed = value.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(ring.open("name", &id, &changed), Err(Error::Damaged(_))), "bit {bit}");
    }
    for length in 0..value.len() {
        let cut = &value[..length];
        assert!(matches!(ring.open("name", &id, cut), Err(Error::Damaged(_))), "cut to {length}");
    }
}

#[test]
fn the_same_secret_is_sealed_differently_each_time() {
    let (ring, secret) = (Keyring::from(key(1)), Secret::new("swordfish"));
    let (_, one) = ring.seal("name", &secret).expect("sealed");
    let (_, two) = ring.seal("name", &secret).expect("sealed");
    assert_ne!(one, two);
    assert!(!one.windows(9).any(|part| part == b"swordfish"));
}

#[test]
fn the_first_key_seals_and_all_open() {
    let before = Keyring::from(key(1));
    let (id, value) = before.seal("name", &Secret::new("x")).expect("sealed");
    let both = Keyring::new(key(2), vec![key(1)]);
    assert_eq!(both.open("name", &id, &value).expect("opens").reveal(), "x");
    let (id, _) = both.seal("name", &Secret::new("x")).expect("sealed");
    assert_eq!(id, *key(2).id());
}

#[test]
fn a_key_survives_its_text_and_shows_only_its_id() {
    let key = SecretKey::random();
    let text = key.reveal();
    assert_eq!(text.len(), 64);
    assert_eq!(SecretKey::parse(&text).expect("a key").id(), key.id());
    assert_eq!(SecretKey::parse(&text.to_uppercase()).expect("a key").id(), key.id());
    assert_eq!(format!("{key:?}"), format!("SecretKey({})", key.id()));
    assert_eq!(key.id().as_str().len(), 16);
    assert!(!text.contains(key.id().as_str()));
    for broken in ["", "00", &"0".repeat(63), &"0".repeat(65), &"é".repeat(32), &"g".repeat(64)] {
        assert!(SecretKey::parse(broken).is_none(), "{broken}");
    }
}

#[test]
fn ids_do_not_change_with_releases() {
    // Values in pools name them.
    assert_eq!(*key(0).id(), KeyId::stored("371c5242b4ad4fe5"));
}
