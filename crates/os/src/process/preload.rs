//! A library that is loaded into a program, with descriptors that it finds by a variable.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// The variable by which the program that builds a cell knows the library that is for the program in it.
pub const PRELOAD: &str = "OFFSHOOT_PRELOAD";

/// A library to load into a program before its own (`LD_PRELOAD`), and what it needs.
#[derive(Debug, Clone)]
pub struct Preload {
    /// The library, where the program finds it.
    pub library: PathBuf,
    /// The variable that has the numbers of the descriptors, as `5,6`.
    pub variable: &'static str,
    /// Descriptors that the program inherits.
    pub descriptors: Vec<Arc<OwnedFd>>,
}

impl Preload {
    /// The descriptors' numbers, which are the same in the program.
    pub(super) fn numbers(&self) -> String {
        let numbers: Vec<_> =
            self.descriptors.iter().map(|fd| fd.as_raw_fd().to_string()).collect();
        numbers.join(",")
    }
}
