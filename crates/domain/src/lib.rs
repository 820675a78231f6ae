//! offshoot-domain
