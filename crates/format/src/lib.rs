//! Codecs of everything on disk and on the wire: versioned, without I/O.

mod decode;

pub use decode::{DecodeError, Reader};
