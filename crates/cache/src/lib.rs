//! offshoot-cache
