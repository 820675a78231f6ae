//! What this host offers: PostgreSQL installations and the user that servers run as.

use offshoot_os::process::User;
use offshoot_postgres::installation::{
    Installation, Tools, choose_installation, find_installations,
};
use offshoot_types::Failure;
use std::path::PathBuf;

/// The PostgreSQL programs of this host.
pub struct Host {
    configured: Vec<PathBuf>,
    user: Option<User>,
}

impl Host {
    /// Looks at this host; `configured` directories of programs come first.
    ///
    /// # Errors
    /// `HostUnprepared` when this process is root and there is no user for servers.
    pub fn new(configured: Vec<PathBuf>) -> Result<Host, Failure> {
        Ok(Host { configured, user: offshoot_postgres::server::server_user()? })
    }

    /// Who servers run as; `None`: this process's user.
    pub fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Owner of what servers use: user id and group id.
    pub fn owner(&self) -> (u32, u32) {
        match &self.user {
            Some(user) => (user.uid, user.gid),
            None => Host::own(),
        }
    }

    /// The engine's own user id and group id: owner of what servers have no business with.
    pub fn own() -> (u32, u32) {
        // SAFETY: geteuid and getegid have no preconditions and cannot fail.
        unsafe { (libc::geteuid(), libc::getegid()) }
    }

    /// All installations; looked up anew, so that one installed meanwhile is found.
    pub fn installations(&self) -> Vec<Installation> {
        find_installations(&self.configured)
    }

    /// The programs of a major version.
    ///
    /// # Errors
    /// `HostUnprepared` that names what is missing and the package.
    pub fn tools(&self, major: u32) -> Result<Tools, Failure> {
        Tools::new(choose_installation(&self.installations(), major)?.clone())
    }
}
