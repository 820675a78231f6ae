//! offshoot-bench
