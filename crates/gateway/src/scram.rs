//! SCRAM-SHA-256 (RFC 5802 and RFC 7677) and MD5, as seen from between client and server.
//!
//! A client proves that it has the key that its password gives by `proof = key XOR HMAC(stored, exchange)`. The server knows
//! `stored = SHA-256(key)`. Who has seen proof and exchange, and is told `stored`, has the key: that is how a gateway can log
//! in again as a client did, and why it forgets the key at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use offshoot_os::random_bytes;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use zeroize::Zeroizing;

/// The mechanism's name.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// PostgreSQL's own number of rounds.
const ITERATIONS: u32 = 4096;
/// Longest message of an exchange that is kept, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// A password as PostgreSQL stores it (`pg_authid.rolpassword`). The password is used as it is: one that is not ASCII
/// would have to be normalised first.
pub fn verifier(password: &str, salt: &[u8; 16]) -> String {
    let salted = stretch(password.as_bytes(), salt, ITERATIONS);
    let stored = sha256(&*hmac(&*salted, b"Client Key"));
    let server = hmac(&*salted, b"Server Key");
    format!(
        "{MECHANISM}${ITERATIONS}:{}${}:{}",
        STANDARD.encode(salt),
        STANDARD.encode(stored),
        STANDARD.encode(*server)
    )
}

/// What a stored password says.
pub(crate) struct Verifier {
    stored: Zeroizing<[u8; 32]>,
    server: Zeroizing<[u8; 32]>,
}

impl Verifier {
    /// Reads one; none if it is of another kind.
    pub(crate) fn parse(text: &str) -> Option<Verifier> {
        let (_, keys) = text.strip_prefix(MECHANISM)?.strip_prefix('$')?.split_once('$')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Verifier { stored: decode(stored)?, server: decode(server)? })
    }
}

/// How a client logged in.
#[derive(Default)]
pub(crate) struct Exchange {
    client_first_bare: Vec<u8>,
    server_first: Vec<u8>,
    client_final_bare: Vec<u8>,
    proof: Zeroizing<Vec<u8>>,
}

impl Exchange {
    /// The client began. Its message is kept from where its binding ends.
    pub(crate) fn client_first(&mut self, message: &[u8]) -> Option<()> {
        let mut parts = message.splitn(3, |byte| *byte == b',');
        let (_binding, _authority, bare) = (parts.next()?, parts.next()?, parts.next()?);
        self.client_first_bare = short(bare)?;
        Some(())
    }

    /// The server answered.
    pub(crate) fn server_first(&mut self, message: &[u8]) -> Option<()> {
        self.server_first = short(message)?;
        Some(())
    }

    /// The client proved itself.
    pub(crate) fn client_final(&mut self, message: &[u8]) -> Option<()> {
        let at = message.windows(3).rposition(|part| part == b",p=")?;
        self.client_final_bare = short(&message[..at])?;
        let proof: Zeroizing<[u8; 32]> = decode(std::str::from_utf8(&message[at + 3..]).ok()?)?;
        self.proof = Zeroizing::new(proof.to_vec());
        Some(())
    }

    /// The client's key, if the password is still the one it logged in with.
    fn key(&self, verifier: &Verifier) -> Option<Zeroizing<[u8; 32]>> {
        let said = [&*self.client_first_bare, &*self.server_first, &*self.client_final_bare];
        let signature = hmac(&*verifier.stored, &said.join(&b","[..]));
        let mut key = Zeroizing::new([0; 32]);
        if self.proof.len() != key.len() {
            return None;
        }
        for (byte, (proof, mask)) in key.iter_mut().zip(self.proof.iter().zip(signature.iter())) {
            *byte = proof ^ mask;
        }
        (sha256(&*key) == *verifier.stored).then_some(key)
    }
}

/// A login of the gateway's own, in the place of a client.
pub(crate) struct Login {
    key: Zeroizing<[u8; 32]>,
    verifier: Verifier,
    client_first_bare: String,
    /// What the server will have to say last.
    expected: Option<Zeroizing<[u8; 32]>>,
}

impl Login {
    /// Begins one; none if the password is another one by now.
    pub(crate) fn new(exchange: &Exchange, verifier: Verifier) -> Option<Login> {
        let key = exchange.key(&verifier)?;
        let client_first_bare = format!("n=,r={}", STANDARD.encode(random_bytes::<18>()));
        Some(Login { key, verifier, client_first_bare, expected: None })
    }

    /// The first message.
    pub(crate) fn first(&self) -> String {
        format!("n,,{}", self.client_first_bare)
    }

    /// The answer to the server's first message; none if that is not one.
    pub(crate) fn answer(&mut self, server_first: &[u8]) -> Option<String> {
        let server_first = std::str::from_utf8(server_first).ok()?;
        let nonce = server_first.strip_prefix("r=")?.split(',').next()?;
        let own = self.client_first_bare.strip_prefix("n=,r=")?;
        if !nonce.starts_with(own) || nonce.len() == own.len() {
            return None;
        }
        let bare = format!("c=biws,r={nonce}");
        let said = format!("{},{server_first},{bare}", self.client_first_bare);
        let mut proof = hmac(&*self.verifier.stored, said.as_bytes());
        proof.iter_mut().zip(self.key.iter()).for_each(|(byte, key)| *byte ^= key);
        self.expected = Some(hmac(&*self.verifier.server, said.as_bytes()));
        Some(format!("{bare},p={}", STANDARD.encode(*proof)))
    }

    /// Whether the server proved that it knows the verifier, too.
    pub(crate) fn is_server(&self, server_final: &[u8]) -> bool {
        let said = std::str::from_utf8(server_final).ok().and_then(|text| text.strip_prefix("v="));
        let said = said.and_then(|text| text.split(',').next()).and_then(decode);
        matches!((said, &self.expected), (Some(said), Some(expected)) if said == *expected)
    }
}

/// What a client answers to a salt, by what PostgreSQL stores for its password (`md5…`). None if that is of another kind.
pub(crate) fn md5_answer(stored: &str, salt: &[u8]) -> Option<Zeroizing<String>> {
    let digits = stored.strip_prefix("md5").filter(|digits| digits.len() == 32)?;
    let digest = Md5::new().chain_update(digits).chain_update(salt).finalize();
    let mut answer = Zeroizing::new(String::from("md5"));
    // Writing to a string does not fail.
    digest.iter().for_each(|byte| _ = write!(answer, "{byte:02x}"));
    Some(answer)
}

fn stretch(password: &[u8], salt: &[u8], iterations: u32) -> Zeroizing<[u8; 32]> {
    let mut block = hmac(password, &[salt, &1_u32.to_be_bytes()].concat());
    let mut sum = block.clone();
    for _ in 1..iterations {
        block = hmac(password, &*block);
        sum.iter_mut().zip(block.iter()).for_each(|(byte, more)| *byte ^= more);
    }
    sum
}

fn hmac(key: &[u8], message: &[u8]) -> Zeroizing<[u8; 32]> {
    let mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    Zeroizing::new(mac.chain_update(message).finalize().into_bytes().into())
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn decode(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
    Some(Zeroizing::new(bytes.as_slice().try_into().ok()?))
}

fn short(message: &[u8]) -> Option<Vec<u8>> {
    (message.len() <= MESSAGE_BYTES_MAX).then(|| message.to_vec())
}

#[cfg(test)]
mod tests;
