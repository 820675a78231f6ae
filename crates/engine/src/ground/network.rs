//! Other engines, as the network reaches them. How is for whoever opens the engine to say.

use offshoot_domain::Secret;
use offshoot_replication::talk::Wire;
use offshoot_types::{ErrorKind, Failure};

/// What an engine proves itself with to other engines, in PEM.
#[derive(Debug, Clone)]
pub struct PeerKey {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: Secret,
}

/// An engine that was called.
pub struct Reached {
    /// The connection.
    pub wire: Box<dyn Wire>,
    /// Of the certificate that it has shown.
    pub fingerprint: String,
}

/// The way to other engines.
pub trait Network: Send + Sync {
    /// What others pin of a certificate: `sha256:` and 64 hexadecimal digits.
    ///
    /// # Errors
    /// `Internal` if it is none.
    fn fingerprint(&self, certificate: &str) -> Result<String, Failure>;

    /// Calls the engine at an address, `HOST:PORT`. What is there proved to have the key of a certificate of one of these
    /// fingerprints, of which it is asked for the first one, and was shown ours.
    ///
    /// # Errors
    /// `EngineUnreachable`; `Forbidden` if something else answers.
    fn call(&self, address: &str, fingerprints: &[&str], own: &PeerKey)
    -> Result<Reached, Failure>;
}

/// No network: there is no other engine.
pub struct NoNetwork;

impl Network for NoNetwork {
    fn fingerprint(&self, _: &str) -> Result<String, Failure> {
        Err(absent())
    }

    fn call(&self, _: &str, _: &[&str], _: &PeerKey) -> Result<Reached, Failure> {
        Err(absent())
    }
}

fn absent() -> Failure {
    Failure::new(
        ErrorKind::HostUnprepared,
        "this engine reaches no other ones",
        "run it by 'offshoot serve'",
    )
}
