//! Toy databases in production.

use crate::VERSION;
use crate::client::{Client, Refused};
use crate::conf::Conf;
use crate::connector::{STATE_VERSION, Toy};
use crate::journal::damaged;
use crate::state::{FILE, JOURNAL, State};
use crate::stream::{Shared, Stream};
use jiff::Timestamp;
use offshoot_connector::{
    CheckedSource, Connector, Copied, CopyRequest, LogStream, ServerSpec, Source, StreamRequest,
};
use offshoot_domain::{ConnectorState, Secret};
use offshoot_types::{ErrorKind, Failure, LogPosition};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a source is.
#[derive(Clone)]
pub(crate) struct Address {
    host: String,
    port: u16,
    login: String,
    secret: Option<Secret>,
}

impl Address {
    pub(crate) fn connect(&self) -> Result<Client, Refused> {
        let secret = self.secret.as_ref().map_or("", |secret| secret.reveal());
        Client::remote(&self.host, self.port, &self.login, secret, CONNECT_TIMEOUT)
    }

    /// For messages.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// A source.
pub(crate) struct ToySource {
    toy: Toy,
    address: Address,
}

/// What a source says of itself.
pub(crate) struct Info {
    pub(crate) identity: String,
    pub(crate) version: String,
    pub(crate) clock: Timestamp,
}

/// Asks a source what it is.
pub(crate) fn info(client: &mut Client) -> Result<Info, Refused> {
    let unclear = || Refused::Error("the source does not say what it is".to_owned());
    let answer = client.ask("INFO")?;
    let (identity, version, clock_us): (String, String, i64) =
        serde_json::from_str(&answer).map_err(|_| unclear())?;
    let clock = Timestamp::from_microsecond(clock_us).map_err(|_| unclear())?;
    Ok(Info { identity, version, clock })
}

impl ToySource {
    pub(crate) fn new(
        toy: Toy,
        host: &str,
        port: u16,
        login: &str,
        secret: Option<Secret>,
    ) -> ToySource {
        let (host, login) = (host.to_owned(), login.to_owned());
        ToySource { toy, address: Address { host, port, login, secret } }
    }

    fn connect(&self) -> Result<Client, Failure> {
        self.address.connect().map_err(|refused| self.failure(refused))
    }

    fn failure(&self, refused: Refused) -> Failure {
        refused.of_source(&self.address.place())
    }

    fn ask(&self, line: &str) -> Result<String, Failure> {
        self.connect()?.ask(line).map_err(|refused| self.failure(refused))
    }
}

impl Source for ToySource {
    fn check(&self) -> Result<CheckedSource, Failure> {
        let info = info(&mut self.connect()?).map_err(|refused| self.failure(refused))?;
        if info.version != VERSION {
            return Err(Failure::new(
                ErrorKind::SourceRefused,
                format!("{} is of version {}", self.address.place(), info.version),
                "only version 1.0 can be linked",
            ));
        }
        self.toy.check_programs(&info.version)?;
        let data = serde_json::json!({ "identity": info.identity });
        Ok(CheckedSource {
            state: ConnectorState { version: STATE_VERSION, data },
            identity: info.identity,
            version: info.version,
            clock: info.clock,
            warnings: Vec::new(),
            facts: serde_json::Value::Null,
        })
    }

    fn reservation_name(&self, unique: &str) -> Option<String> {
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        Some(format!("offshoot_{}", unique.chars().map(plain).collect::<String>()))
    }

    fn reserve_log(&self, name: &str) -> Result<(), Failure> {
        self.ask(&format!("RESERVE {name}")).map(drop)
    }

    fn release_log(&self, name: &str) -> Result<(), Failure> {
        self.ask(&format!("RELEASE {name}")).map(drop)
    }

    fn release_hint(&self, name: &str) -> String {
        format!("on the source, send: RELEASE {name}")
    }

    fn copies_by_path(&self, _checked: &CheckedSource) -> bool {
        false
    }

    fn copy(&self, request: &CopyRequest<'_>) -> Result<Copied, Failure> {
        let mut client = self.connect()?;
        let info = info(&mut client).map_err(|refused| self.failure(refused))?;
        if info.identity != request.checked.identity {
            let message = format!("{} is another database than was checked", self.address.place());
            return Err(Failure::new(ErrorKind::SourceRefused, message, "link it anew"));
        }
        let (numbers, bytes) = client.ask_bytes("COPY").map_err(|refused| self.failure(refused))?;
        let unclear = || Failure::internal("the copy does not say where it begins");
        let start =
            numbers.get(1).and_then(|start| u64::try_from(*start).ok()).ok_or_else(unclear)?;
        let cancelled = || Failure::new(ErrorKind::Cancelled, "the copy was cancelled", "");
        let files = &request.target.files;
        let total = bytes.len() as u64;
        (|| {
            files.remove_all(JOURNAL)?;
            files.create_dir(JOURNAL, 0o700)?;
            files.remove_all(FILE)?;
            let mut file = files.create(FILE, 0o600)?;
            let mut done = 0;
            for part in bytes.chunks(32 << 10) {
                if (request.cancelled)() {
                    return Ok(Err(cancelled()));
                }
                file.write_all(part)?;
                done += part.len() as u64;
                (request.progress)(done, total);
            }
            file.flush()?;
            Ok(Ok(()))
        })()
        .map_err(|error: io::Error| {
            Failure::internal(format!("cannot write the copy: {error}")).or_pool_full(&error)
        })??;
        // What was committed meanwhile: the copy is not older than the end of its making.
        let end = client.ask("POSITION").map_err(|refused| self.failure(refused))?;
        let end = end.parse().map_err(|_| unclear())?;
        Ok(Copied { start: LogPosition(start), end: LogPosition(end), verified: false })
    }

    fn verify(&self, target: &ServerSpec, _cancelled: &dyn Fn() -> bool) -> Result<(), Failure> {
        let state = State::read(&*target.files)?;
        let info = info(&mut self.connect()?).map_err(|refused| self.failure(refused))?;
        if state.identity == info.identity {
            return Ok(());
        }
        Err(damaged(FILE, "it is of another database"))
    }

    fn adopt_settings(&self, target: &ServerSpec) -> Result<Vec<(String, String)>, Failure> {
        type Settings = BTreeMap<String, String>;
        let answer = self.ask("SETTINGS")?;
        let (_, settings): (Settings, Settings) = serde_json::from_str(&answer)
            .map_err(|_| Failure::internal("the source's settings cannot be read"))?;
        let (kept, left): (Settings, Settings) =
            settings.into_iter().partition(|(name, _)| name != "read_only");
        Conf { settings: kept, copy: true, ..Conf::default() }.write(&*target.files)?;
        Ok(left.into_keys().map(|name| (name, "copies take writes".to_owned())).collect())
    }

    fn stream(&self, request: StreamRequest) -> Result<Arc<dyn LogStream>, Failure> {
        let shared = Shared::new(self.address.clone(), request)?;
        Ok(Arc::new(Stream::start(Arc::new(shared))?))
    }
}
