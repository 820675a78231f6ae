use super::*;
use aes::cipher::{BlockCipherEncrypt, KeyInit};

const DIGITS: &str = "0123456789";
const LETTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

fn hex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(byte).collect()
}

fn numerals(text: &str) -> FlexibleNumeralString {
    let numeral = |c| LETTERS.find(c).unwrap() as u16;
    text.chars().map(numeral).collect::<Vec<u16>>().into()
}

fn text(numerals: FlexibleNumeralString) -> String {
    Vec::from(numerals).into_iter().map(|n| LETTERS.as_bytes()[usize::from(n)] as char).collect()
}

fn check<C: BlockCipherEncrypt<BlockSize = aes::cipher::consts::U16> + KeyInit + Clone>(
    key: &str,
    alphabet: &str,
    tweak: &str,
    plain: &str,
    encrypted: &str,
) {
    let cipher = FF1::<C>::new(&hex(key), alphabet.len() as u32).unwrap();
    let tweak = hex(tweak);
    assert_eq!(text(cipher.encrypt(&tweak, &numerals(plain)).unwrap()), encrypted);
    assert_eq!(text(cipher.decrypt(&tweak, &numerals(encrypted)).unwrap()), plain);
}

/// The nine samples that NIST publishes with SP 800-38G.
#[test]
fn samples_of_the_standard() {
    let ten = "39383736353433323130";
    let eleven = "3737373770717273373737";
    let nineteen = "0123456789abcdefghi";
    let key = "2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f7f036d6f04fc6a94";
    let digits = "0123456789";
    check::<aes::Aes128>(&key[..32], DIGITS, "", digits, "2433477484");
    check::<aes::Aes128>(&key[..32], DIGITS, ten, digits, "6124200773");
    check::<aes::Aes128>(&key[..32], LETTERS, eleven, nineteen, "a9tv40mll9kdu509eum");
    check::<aes::Aes192>(&key[..48], DIGITS, "", digits, "2830668132");
    check::<aes::Aes192>(&key[..48], DIGITS, ten, digits, "2496655549");
    check::<aes::Aes192>(&key[..48], LETTERS, eleven, nineteen, "xbj3kv35jrawxv32ysr");
    check::<Aes256>(key, DIGITS, "", digits, "6657667009");
    check::<Aes256>(key, DIGITS, ten, digits, "1001623463");
    check::<Aes256>(key, LETTERS, eleven, nineteen, "xs8a0azh2avyalyzuwd");
}
