use super::*;

#[test]
fn a_key_is_read_as_it_was_stored_and_one_without_a_version_as_it_is() {
    let made_at = "2026-11-21T14:03:27.5Z".parse().unwrap();
    let key = StoredKey::new(7, made_at);
    let read = StoredKey::read(&key.stored());
    assert_eq!((read.version, read.made_at), (7, Some(made_at)));
    assert_eq!(read.secret.reveal(), key.secret.reveal());
    let old = random_key();
    let read = StoredKey::read(&old);
    assert_eq!((read.version, read.made_at), (1, None));
    assert_eq!((read.secret.reveal(), read.stored().reveal()), (old.reveal(), old.reveal()));
    assert_ne!(random_key().reveal(), old.reveal());
}
