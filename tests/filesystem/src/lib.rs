//! Real mounts of datasets, for tests by programs that know nothing of Offshoot.
