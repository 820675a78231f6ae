//! The source database server: its address, its credentials, what it is, and whether it can be
//! linked.

use crate::installation::{Tools, program_dirs};
use offshoot_os::process::{Reach, Spec};
use offshoot_types::Failure;
use std::fmt;
use std::path::Path;

mod address;
mod credentials;
pub(crate) mod facts;
mod password;
mod precheck;
pub(crate) mod refusal;
pub(crate) mod session;
mod tls;
pub(crate) mod wire;

pub use address::{SourceAddress, TlsFiles, TlsMode};
pub use facts::{SourceFacts, SourceTablespace, read_facts};
pub use password::Password;
pub use precheck::{Precheck, precheck};
pub use session::{CONNECT_TIMEOUT, Session, TextRow};

/// Memory of a program that talks to a source, in bytes: several times what one takes.
const TOOL_MEMORY_BYTES_MAX: u64 = 1 << 30;

/// A source: where it is and with which password to log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// Host, port, user, database; without a password.
    pub address: SourceAddress,
    /// The password, when one is needed.
    pub password: Option<Password>,
}

impl Source {
    /// Parses a `postgresql://` URI. The password is the first one found of: `given`, the URI's
    /// own, `PGPASSWORD`, `~/.pgpass`. It is no error if there is none, as the source may not ask
    /// for one.
    ///
    /// # Errors
    /// `InvalidInput` that says what is wrong with the URI.
    pub fn parse(uri: &str, given: Option<Password>) -> Result<Self, Failure> {
        let (address, in_uri) = SourceAddress::parse(uri)?;
        let password = given.or(in_uri).or_else(|| credentials::from_surroundings(&address));
        Ok(Source { address, password })
    }

    /// One of the database's own programs, to log in to this source: its password in the environment, and
    /// only such ways to give it away as the URI allows; bounded memory, as libpq keeps whatever a server
    /// sends. It reaches nothing but the source, its own programs, and the directories that it `writes`.
    pub(crate) fn tool(&self, tools: &Tools, program: &str, writes: &[&Path]) -> Spec {
        let files = self.address.tls_files.named().map(|(_, file)| file.clone());
        let reach = Reach {
            reads: files.chain(program_dirs(&tools.installation.bin_dir)).collect(),
            writes: writes.iter().map(|path| path.to_path_buf()).collect(),
            ports: vec![self.address.port],
        };
        let spec = tools
            .source_spec(program)
            .env("PGREQUIREAUTH", self.address.allowed_methods())
            .memory_bytes_max(TOOL_MEMORY_BYTES_MAX)
            .reaches_only(reach)
            .die_with_parent(true);
        match &self.password {
            Some(password) => spec.env("PGPASSWORD", password.expose()),
            None => spec,
        }
    }

    /// Connects with SQL; fails within [`CONNECT_TIMEOUT`].
    ///
    /// # Errors
    /// `SourceUnreachable`, or `SourceRefused` with the statement that fixes it.
    pub fn connect(&self) -> Result<Session, Failure> {
        Session::open(self)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("address", &self.address.to_string()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
