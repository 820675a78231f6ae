//! offshoot-testbed
