//! The promises, by what makes them.

pub mod image;
pub mod log;
pub mod masking;
pub mod moment;
pub mod point;
pub mod server;
pub mod source;
pub mod staging;
pub mod stream;
