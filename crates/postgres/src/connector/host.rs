//! PostgreSQL on this host: its programs, and who runs them.

use crate::config;
use crate::control::{self, Control};
use crate::installation::{Installation, Tools, choose_installation, find_installations};
use crate::server::ServerSpec as LaunchSpec;
use offshoot_connector::ServerSpec;
use offshoot_launcher::Launcher;
use offshoot_types::Failure;
use std::path::PathBuf;
use std::sync::Arc;

/// PostgreSQL on this host.
#[derive(Debug, Clone)]
pub struct Postgres {
    pub(super) configured: Vec<PathBuf>,
    pub(super) launcher: Arc<dyn Launcher>,
    /// The program whose subcommand `gateway` becomes a gateway.
    pub(super) gateway_program: Option<PathBuf>,
}

impl Postgres {
    /// With programs of this host, those in `configured` directories first; `launcher` runs its servers.
    pub fn new(launcher: Arc<dyn Launcher>, configured: Vec<PathBuf>) -> Postgres {
        Postgres { configured, launcher, gateway_program: None }
    }

    /// Names the program whose subcommand `gateway` becomes a gateway ([`offshoot_gateway::run`]).
    #[must_use]
    pub fn with_gateways(self, program: Option<PathBuf>) -> Postgres {
        Postgres { gateway_program: program, ..self }
    }

    /// All installations; looked up anew, so that one installed meanwhile is found.
    pub(super) fn installations(&self) -> Vec<Installation> {
        find_installations(&self.configured)
    }

    pub(super) fn tools(&self, version: &str) -> Result<Tools, Failure> {
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        let major = digits
            .parse()
            .map_err(|_| Failure::internal(format!("'{version}' is no version of PostgreSQL")))?;
        let installation = choose_installation(&self.installations(), major)?.clone();
        Ok(Tools { installation, user: self.launcher.user().cloned() })
    }

    pub(super) fn launch(&self, spec: ServerSpec) -> Result<LaunchSpec, Failure> {
        let tools = self.tools(&spec.version)?;
        Ok(LaunchSpec {
            name: spec.name,
            // Up to 14 a server sends statistics to itself.
            udp: tools.installation.major < 15,
            bin_dir: tools.installation.bin_dir,
            data_dir: spec.data_dir,
            runtime_dir: spec.runtime_dir,
            log_file: spec.log_file,
            launcher: self.launcher.clone(),
            memory_bytes: None,
            processes_max: config::PROCESSES_MAX,
            share: spec.share,
            preload: spec.preload.filter(|_| self.launcher.confines()),
            tcp_port: spec.tcp_port,
            exposure: None,
            reaches: Vec::new(),
            superusers: Vec::new(),
            forced: Vec::new(),
        })
    }

    /// Tools that work on the files of a data directory.
    pub(super) fn tools_on(&self, spec: &ServerSpec) -> Result<Tools, Failure> {
        let user = self.launcher.user_of(&spec.data_dir)?;
        Ok(Tools { user, ..self.tools(&spec.version)? })
    }

    pub(super) fn control(&self, spec: &ServerSpec) -> Result<Control, Failure> {
        let tools = self.tools_on(spec)?;
        control::read(&tools.installation.bin_dir, &spec.data_dir, tools.user.as_ref())
    }
}
