//! offshoot-dataset
