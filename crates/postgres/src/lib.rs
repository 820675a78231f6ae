//! offshoot-postgres
