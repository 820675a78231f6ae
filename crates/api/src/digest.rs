//! How certificates and tokens are named: by SHA-256 (FIPS 180-4), in hexadecimal digits.

use sha2::{Digest, Sha256};

/// SHA-256, as 64 hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What clients pin of a certificate (DER): `sha256:` and 64 hexadecimal digits.
pub fn fingerprint(certificate: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(certificate))
}
