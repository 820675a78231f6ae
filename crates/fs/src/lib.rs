//! offshoot-fs
