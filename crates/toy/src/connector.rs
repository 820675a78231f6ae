//! The toy as a kind of database.

use crate::address::Address;
use crate::checker::Checker;
use crate::conf::{self, Conf, Purpose};
use crate::inquirer::ByKey;
use crate::masker::ByPrefix;
use crate::program;
use crate::received::Received;
use crate::remembered::identity_in;
use crate::server::{self, DATABASE, LOGIN, ToyServer};
use crate::source::ToySource;
use crate::state::{JOURNAL, State};
use offshoot_connector::{
    Connector, DataDir, ImageChecker, Inquirer, Layout, Masker, ReceivedLog, Replay, Replayed,
    Role, Server, ServerSpec, Source, SourceUri, StopMode,
};
use offshoot_domain::{ConnectorState, Secret};
use offshoot_launcher::{Launcher, ThisHost};
use offshoot_os::process::User;
use offshoot_os::{Clock, SystemClock, random_bytes};
use offshoot_types::{ErrorKind, Failure, LogPosition};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// The connector's name.
pub const KIND: &str = "toy";

/// The connector.
#[derive(Debug, Clone)]
pub struct Toy {
    program: PathBuf,
    launcher: Arc<dyn Launcher>,
}

impl Toy {
    /// With the server's program `toyd`, whose servers run as we do.
    pub fn new(program: impl Into<PathBuf>) -> Toy {
        Toy { program: program.into(), launcher: Arc::new(ThisHost::as_ourselves()) }
    }

    fn launch(&self, spec: &ServerSpec, conf: &Conf) -> Result<ToyServer, Failure> {
        conf.write(&*spec.files)?;
        server::start(&*self.launcher, &self.program, spec)
    }

    /// Starts a clone that has its log, and waits until it has replayed it.
    fn replay_placed(
        &self,
        spec: &ServerSpec,
        replay: &mut Replay<'_>,
    ) -> Result<Replayed, Failure> {
        // The settings of the clone's users do not matter to the replay.
        let conf = Conf { purpose: Purpose::Private, copy: true, settings: BTreeMap::new() };
        let started = SystemClock.elapsed();
        let server = self.launch(spec, &conf)?;
        let replayed = server.wait(replay.deadline, replay.tick).and_then(|()| server.position());
        match replayed {
            Ok(end) => {
                let took = SystemClock.elapsed() - started;
                Ok(Replayed { server: Arc::new(server), end, took })
            }
            Err(failure) => {
                server.stop(StopMode::Immediate, Duration::from_secs(10))?;
                Err(failure)
            }
        }
    }
}

impl Connector for Toy {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn layout(&self) -> Layout {
        Layout { data: "data", log: "log", index: "index", vital: &[JOURNAL] }
    }

    fn server_user(&self) -> Option<&User> {
        None
    }

    fn login(&self) -> &'static str {
        LOGIN
    }

    fn check_programs(&self, version: &str) -> Result<(), Failure> {
        program::check(&self.program, version)
    }

    fn parse_source(&self, uri: &str, secret: Option<Secret>) -> Result<SourceUri, Failure> {
        let mut parsed = parse(uri)?;
        let inside = parsed.password().map(Secret::new);
        if parsed.set_password(None).is_err() {
            return Err(bad_uri(uri));
        }
        Ok(SourceUri { uri: parsed.to_string(), secret: secret.or(inside) })
    }

    fn source(&self, uri: &SourceUri) -> Result<Box<dyn Source>, Failure> {
        let parsed = parse(&uri.uri)?;
        let (Some(host), Some(port)) = (parsed.host_str(), parsed.port()) else {
            return Err(bad_uri(&uri.uri));
        };
        let (host, login) = (host.to_owned(), parsed.username().to_owned());
        let address = Address { host, port, login, secret: uri.secret.clone() };
        Ok(Box::new(ToySource::new(self.program.clone(), address)))
    }

    fn open_log(
        &self,
        state: &ConnectorState,
        log: Arc<dyn DataDir>,
        _index: Arc<dyn DataDir>,
    ) -> Result<Arc<dyn ReceivedLog>, Failure> {
        identity_in(state)?;
        Ok(Arc::new(Received::new(log)))
    }

    fn write_position(&self, _state: &ConnectorState, position: LogPosition) -> String {
        format!("j{}", position.0)
    }

    fn read_position(&self, _state: &ConnectorState, text: &str) -> Result<LogPosition, Failure> {
        let number = text.strip_prefix('j').and_then(|digits| digits.parse().ok());
        number.map(LogPosition).ok_or_else(|| {
            let message = format!("'{text}' is no position of a journal");
            Failure::new(ErrorKind::InvalidInput, message, "write it as j1234")
        })
    }

    fn validate_settings(
        &self,
        version: &str,
        settings: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        self.check_programs(version)?;
        conf::validate(settings)
    }

    fn check_network(&self, _version: &str) -> Result<(), Failure> {
        let message = "this kind of database listens on loopback alone";
        Err(Failure::new(ErrorKind::InvalidInput, message, "leave --listen out"))
    }

    fn replay_begins(&self, spec: &ServerSpec) -> Result<LogPosition, Failure> {
        Ok(LogPosition(State::read(&*spec.files)?.position))
    }

    fn start(&self, spec: ServerSpec, role: Role) -> Result<Arc<dyn Server>, Failure> {
        let mut conf = Conf { copy: true, ..Conf::default() };
        conf.purpose = match role {
            Role::Staging { .. } => Purpose::Staging,
            Role::Private => Purpose::Private,
            Role::Vdb(options) => {
                conf.settings = Conf::read(&*spec.files)?.settings;
                conf.settings.extend(options.settings);
                Purpose::Users
            }
        };
        let spec = match conf.purpose {
            Purpose::Users => spec,
            _ => ServerSpec { tcp_port: None, ..spec },
        };
        Ok(Arc::new(self.launch(&spec, &conf)?))
    }

    fn replay(&self, spec: ServerSpec, mut replay: Replay<'_>) -> Result<Replayed, Failure> {
        let state = State::read(&*spec.files)?;
        let spec = ServerSpec { tcp_port: None, ..spec };
        if state.diverged {
            let message = format!("the clone of {} was opened before", spec.name);
            return Err(Failure::new(
                ErrorKind::WrongState,
                message,
                "make a new clone of the image",
            ));
        }
        if replay.to.0 < state.position {
            return Err(Failure::new(
                ErrorKind::MomentUnavailable,
                format!("the moment is before that of the snapshot, j{}", state.position),
                "start from an earlier snapshot, or choose a later moment",
            ));
        }
        replay.log.place(replay.target, LogPosition(state.position), replay.to)?;
        self.replay_placed(&spec, &mut replay)
    }

    fn finish_image(&self, files: &dyn DataDir) -> Result<(), Failure> {
        Conf { copy: true, ..Conf::default() }.write(files)
    }

    fn adopt(&self, spec: ServerSpec) -> Result<Option<Arc<dyn Server>>, Failure> {
        Ok(server::adopt(&*self.launcher, &spec)?.map(|server| Arc::new(server) as Arc<dyn Server>))
    }

    fn stop_leftover(&self, runtime_dir: &Path, deadline: Duration) -> Result<(), Failure> {
        server::stop_leftover(&*self.launcher, runtime_dir, deadline)
    }

    fn new_password(&self) -> String {
        random_bytes::<16>().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn vdb_uri(&self, port: u16, password: &Secret, database: &str) -> String {
        format!("toy://{LOGIN}:{}@127.0.0.1:{port}/{database}", password.reveal())
    }

    fn database_of(&self, source: &str) -> Option<String> {
        let path = Url::parse(source).ok()?.path().trim_start_matches('/').to_owned();
        (path == DATABASE).then_some(path)
    }

    fn image_checker(&self) -> Option<&dyn ImageChecker> {
        Some(&Checker)
    }

    fn masker(&self) -> Option<&dyn Masker> {
        Some(&ByPrefix)
    }

    fn inquirer(&self) -> Option<&dyn Inquirer> {
        Some(&ByKey)
    }
}

fn parse(uri: &str) -> Result<Url, Failure> {
    let parsed = Url::parse(uri).map_err(|_| bad_uri(uri))?;
    let whole = parsed.scheme() == KIND && parsed.host_str().is_some() && parsed.port().is_some();
    if whole && !parsed.username().is_empty() { Ok(parsed) } else { Err(bad_uri(uri)) }
}

/// Does not repeat the text, which may hold a secret.
fn bad_uri(_uri: &str) -> Failure {
    Failure::new(
        ErrorKind::InvalidInput,
        "the text is no URI of a toy database",
        "write toy://LOGIN@HOST:PORT/main",
    )
}
