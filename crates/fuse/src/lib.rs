//! offshoot-fuse
