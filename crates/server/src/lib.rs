//! offshoot-server
