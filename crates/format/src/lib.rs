//! offshoot-format
