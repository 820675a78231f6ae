//! Where a source is, and what it reports about itself.

use crate::client::{Client, Refused};
use jiff::Timestamp;
use offshoot_domain::Secret;
use std::time::Duration;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a source is.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) login: String,
    pub(crate) secret: Option<Secret>,
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
