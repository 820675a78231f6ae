//! offshoot-engine
