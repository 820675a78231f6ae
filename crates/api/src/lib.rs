//! offshoot-api
