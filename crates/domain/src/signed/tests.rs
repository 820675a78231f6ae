//! What is signed, and what is refused.

use super::*;

fn key(digit: char) -> SigningKey {
    SigningKey::new(&Secret::new(digit.to_string().repeat(64))).unwrap()
}

fn document(key: &SigningKey) -> String {
    let table = "offshoot-ed25519:not-the-signature";
    key.sign(|signature| format!("{{\"table\": \"{table}\", \"signature\": \"{signature}\"}}\n"))
        .unwrap()
}

#[test]
fn a_document_is_accepted_as_it_was_signed() {
    let key = key('7');
    verify(&document(&key), &key.public()).unwrap();
}

#[test]
fn any_changed_removed_or_added_byte_is_noticed() {
    let key = key('7');
    let document = document(&key);
    for at in 0..document.len() {
        for byte in [b'0', b'1', b'A', b' '] {
            let mut changed = document.clone().into_bytes();
            if changed[at] == byte {
                continue;
            }
            changed[at] = byte;
            let changed = String::from_utf8(changed).unwrap();
            verify(&changed, &key.public()).expect_err(&changed);
        }
        let (before, after) = document.split_at(at);
        verify(&format!("{before}{}", &after[1..]), &key.public()).unwrap_err();
        verify(&format!("{before} {after}"), &key.public()).unwrap_err();
    }
    verify(&format!("{document}\n"), &key.public()).unwrap_err();
    verify(&format!("{document}{document}"), &key.public()).unwrap_err();
}

#[test]
fn another_key_signs_nothing_for_this_one() {
    let document = document(&key('7'));
    verify(&document, &key('8').public()).unwrap_err();
    verify(&document, "").unwrap_err();
    verify(&document, &"0".repeat(64)).unwrap_err();
    verify("no signature", &key('7').public()).unwrap_err();
    verify("offshoot-ed25519:é", &key('7').public()).unwrap_err();
}

/// RFC 8032, section 7.1, test 1: the public key of a secret.
#[test]
fn keys_are_those_of_the_specification() {
    let secret =
        Secret::new("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60".to_owned());
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!(SigningKey::new(&secret).unwrap().public(), public);
}

#[test]
fn the_hash_is_sha_256() {
    let of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256("abc"), of_abc);
}
