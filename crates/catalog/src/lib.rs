//! offshoot-catalog
