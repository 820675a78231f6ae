//! Codecs of everything on disk and on the wire: versioned, without I/O.
//!
//! The byte maps are in `docs/on-disk-format.md`.

mod decode;
pub mod encryption;
pub mod label;
pub mod links;
pub mod log;
pub mod root;
pub mod seal;
pub mod segment;
pub mod table;

pub use decode::{DecodeError, Reader};
pub mod directory;
pub mod inode;
pub mod operation;
pub mod tree;
