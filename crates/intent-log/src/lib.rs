//! offshoot-intent-log
