//! offshoot-workflow
