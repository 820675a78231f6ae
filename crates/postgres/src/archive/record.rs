//! Records of the write-ahead log.
