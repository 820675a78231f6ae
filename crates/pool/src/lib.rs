//! offshoot-pool
