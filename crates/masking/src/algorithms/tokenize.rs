//! `tokenize`: a token that the key's holder can turn back.
//!
//! - Gives the value encrypted, in base 64 without padding (RFC 4648, the alphabet for URLs). Equal values get equal
//!   tokens: it is deterministic authenticated encryption as in SIV mode (Rogaway and Shrimpton 2006), with keyed BLAKE3
//!   both as the pseudo-random function and, in its extendable form, as the stream cipher. A token is 22 characters, and
//!   a third of the value's bytes, longer than the value.
//! - Distinct: 128 bits. Texts without a limit of length (elsewhere take `fpe`).
//! - The output tells the value's length in bytes and which rows had the same value. It is as secret as the key: give
//!   the key to nobody who must not see the values.

use crate::algorithm::{Algorithm, Length, Target, Uniqueness};
use crate::facts::TypeClass;
use crate::key::{MaskingKey, Subkey};
use crate::mask::{Mask, Outcome, Row, Unmaskable, ValueMask};
use crate::parameters::Entry;
use std::sync::Arc;

/// The synthetic initialisation vector.
const VECTOR_BYTES: usize = 16;

const BASE_64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

pub(super) const ENTRY: Entry =
    Entry { name: "tokenize", tells: "length", parameters: &[], read: |_| Ok(Arc::new(Tokenize)) };

#[derive(Debug)]
struct Tokenize;

impl Algorithm for Tokenize {
    fn fits(&self, class: &TypeClass) -> bool {
        *class == TypeClass::Text
    }

    fn uniqueness(&self) -> Uniqueness {
        Uniqueness::Distinct
    }

    fn length(&self) -> Length {
        Length::Open
    }

    fn bind(&self, target: &Target<'_>) -> Result<Mask, String> {
        if let Some(max) = target.column.chars_max {
            return Err(format!(
                "a token is longer than its value, and the column takes {max} characters: take `fpe`"
            ));
        }
        Ok(Mask::Values(Arc::new(Tokens::new(target.key))))
    }
}

struct Tokens {
    vector: Subkey,
    stream: Subkey,
}

impl Tokens {
    fn new(key: &MaskingKey) -> Tokens {
        Tokens { vector: key.subkey("tokenize: vector"), stream: key.subkey("tokenize: stream") }
    }

    fn vector(&self, value: &[u8]) -> [u8; VECTOR_BYTES] {
        let mut vector = [0; VECTOR_BYTES];
        self.vector.draw(value).fill(&mut vector);
        vector
    }

    /// Encrypts or decrypts.
    fn apply(&self, vector: &[u8], bytes: &mut [u8]) {
        let mut stream = vec![0; bytes.len()];
        self.stream.draw(vector).fill(&mut stream);
        bytes.iter_mut().zip(stream).for_each(|(byte, mask)| *byte ^= mask);
    }
}

impl ValueMask for Tokens {
    fn mask(&self, value: &str, _: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        let vector = self.vector(value.as_bytes());
        let mut token = [&vector, value.as_bytes()].concat();
        self.apply(&vector, &mut token[VECTOR_BYTES..]);
        for bytes in token.chunks(3) {
            let bits = bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - bytes.len()));
            for place in 0..=bytes.len() {
                out.push(char::from(BASE_64[(bits >> (18 - 6 * place) & 63) as usize]));
            }
        }
        Ok(Outcome::Value)
    }
}

/// The value that `tokenize` made a token of with the same key; none if it did not make it.
pub fn detokenize(key: &MaskingKey, token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    for letters in token.as_bytes().chunks(4) {
        let value = |letter: &u8| BASE_64.iter().position(|known| known == letter);
        let values: Vec<usize> = letters.iter().map(value).collect::<Option<_>>()?;
        let bits =
            values.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - values.len()));
        let count = values.len().checked_sub(1).filter(|count| *count > 0)?;
        bytes.extend((0..count).map(|place| (bits >> (16 - 8 * place)) as u8));
    }
    let tokens = Tokens::new(key);
    let (vector, value) = bytes.split_at_mut_checked(VECTOR_BYTES)?;
    tokens.apply(vector, value);
    (tokens.vector(value) == *vector).then(|| String::from_utf8(value.to_vec()).ok())?
}
