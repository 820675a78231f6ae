//! offshoot-demo
