//! How a client on the same host finds the engine of a pool: two files in the pool directory.

use offshoot_types::Failure;
use std::net::SocketAddr;
use std::path::Path;

/// The bearer token that clients of an engine must show.
#[derive(Clone)]
pub struct Token(#[allow(dead_code)] String);

impl Token {
    /// Reads the pool's token, or makes one (file `token`, mode 0600) where there is none.
    pub fn load_or_create(_pool: &Path) -> Result<Self, Failure> {
        todo!()
    }
}

/// Tells clients where the engine of a pool answers: file `engine.address`, replaced atomically.
pub fn publish_address(_pool: &Path, _address: SocketAddr) -> Result<(), Failure> {
    todo!()
}

/// Takes the address back when the engine stops.
pub fn withdraw_address(_pool: &Path) -> Result<(), Failure> {
    todo!()
}
