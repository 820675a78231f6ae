//! Certificates that the engine makes itself. Nobody vouches for them: whoever knows one pins it.

use offshoot_domain::Secret;
use offshoot_types::Failure;

/// A new certificate with these names, and its key, both in PEM.
pub fn make(names: Vec<String>) -> Result<(String, Secret), Failure> {
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| Failure::internal(format!("no certificate can be made: {error}")))?;
    Ok((made.cert.pem(), Secret::new(made.signing_key.serialize_pem())))
}
