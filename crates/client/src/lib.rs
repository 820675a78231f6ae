//! offshoot-client
