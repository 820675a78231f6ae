//! offshoot-connector
