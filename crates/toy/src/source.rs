//! Toy databases in production.

use crate::address::{Address, info};
use crate::client::{Client, Refused};
use crate::conf::Conf;
use crate::journal::damaged;
use crate::program;
use crate::remembered::state_of;
use crate::state::{FILE, JOURNAL, State, VERSION};
use crate::stream::{Shared, Stream};
use offshoot_connector::{
    CheckedSource, Copied, CopyRequest, LogStream, ServerSpec, Source, StreamRequest,
};
use offshoot_types::{ErrorKind, Failure, LogPosition};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A source.
pub(crate) struct ToySource {
    program: PathBuf,
    address: Address,
}

impl ToySource {
    pub(crate) fn new(program: PathBuf, address: Address) -> ToySource {
        ToySource { program, address }
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
        program::check(&self.program, &info.version)?;
        Ok(CheckedSource {
            state: state_of(&info.identity),
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
            return Err(Failure::new(ErrorKind::SourceRefused, message, "link it again"));
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
        // What was committed in the meantime: the copy is not older than the end of copying.
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
