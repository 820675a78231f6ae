//! What certificates engines of other hosts are known by: a file of lines `HOST:PORT sha256:…`, mode 0600.

use offshoot_os::files;
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// An engine, and what it is known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownEngine {
    /// Host and port.
    pub host: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub fingerprint: String,
}

/// The file.
#[derive(Debug, Clone)]
pub struct KnownEngines {
    file: PathBuf,
}

impl KnownEngines {
    /// That at this path, which need not be there.
    pub fn new(file: PathBuf) -> KnownEngines {
        KnownEngines { file }
    }

    /// What an engine is known by.
    ///
    /// # Errors
    /// `invalid_input` if the file cannot be read.
    pub fn find(&self, host: &str) -> Result<Option<String>, Failure> {
        let text = self.text()?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        Ok(lines.find(|(one, _)| *one == host).map(|(_, known)| known.trim().to_owned()))
    }

    /// Remembers an engine in place of what was known of it.
    ///
    /// # Errors
    /// `invalid_input` if the file cannot be written.
    pub fn put(&self, engine: &KnownEngine) -> Result<(), Failure> {
        let mut text: String = self
            .text()?
            .lines()
            .filter(|line| line.split_once(' ').is_some_and(|(host, _)| host != engine.host))
            .map(|line| format!("{line}\n"))
            .collect();
        text.push_str(&format!("{} {}\n", engine.host, engine.fingerprint));
        self.replace(&text).map_err(|error| self.unusable(&error))
    }

    fn text(&self) -> Result<String, Failure> {
        match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            read => read.map_err(|error| self.unusable(&error)),
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        if let Some(dir) = self.file.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        files::replace(&self.file, 0o600, |new| new.write_all(text.as_bytes()))
    }

    fn unusable(&self, error: &io::Error) -> Failure {
        Failure::new(
            ErrorKind::InvalidInput,
            format!("{} cannot be used: {error}", self.file.display()),
            "check that file and the directories above it",
        )
    }
}

#[cfg(test)]
mod tests;
