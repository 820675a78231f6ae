//! The files in a pool directory by which a client on the same host finds the pool's engine.

/// Holds the address the engine answers on, as `127.0.0.1:7640`; exists while the engine runs.
pub const ADDRESS_FILE: &str = "engine.address";
/// The Unix socket that the engine answers on; exists while the engine runs.
pub const SOCKET_FILE: &str = "engine.socket";
/// The certificate that an engine made for clients of other hosts, in PEM.
pub const TLS_CERTIFICATE_FILE: &str = "tls.cert";
/// Its key; readable by the engine's user alone.
pub const TLS_KEY_FILE: &str = "tls.key";
/// Holds the bearer token, in visible ASCII; readable by the engine's user alone.
pub const TOKEN_FILE: &str = "token";
