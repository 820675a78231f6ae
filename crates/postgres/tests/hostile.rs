//! Sources that mean harm: a server that speaks just enough of the protocol to misbehave, and a real one whose
//! owner has laid traps.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, dead_code)]

mod hostile {
    mod backup;
    mod fake;
    mod memory;
    mod sessions;
    mod traps;
}
#[path = "link/server.rs"]
mod server;
