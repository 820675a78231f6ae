//! A blocking SQL session with a source.
//!
//! The asynchronous client runs on a private current-thread runtime, so a session may be used from
//! any plain thread. Statements go through the simple protocol: every value comes back as text.
//!
//! Nothing that a source sets may change what a statement means: settings of the role, of the database
//! and of login triggers are overridden by the first statement ([`OVERRIDES`]), and statements name
//! everything by its schema. [`wire`] bounds what comes back.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use offshoot_types::{ErrorKind, Failure};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::wire::{self, Guard, Noted, TlsBelow, Wire};
use super::{Source, SourceAddress, TlsMode, refusal, tls};

/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a statement may take by default.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// What is said first. `SET` finds its names without any schema. The server's own limits are above those
/// of this side: they end what a broken connection left.
const OVERRIDES: &str = "
    SET search_path = pg_catalog, pg_temp;
    SET client_encoding = 'UTF8';
    SET standard_conforming_strings = on;
    SET client_min_messages = error;
    SET DateStyle = ISO;
    SET statement_timeout = '90s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s'";

/// How long closing a session may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// A blocking SQL session; every statement has a deadline.
pub struct Session {
    runtime: Option<Runtime>,
    client: Option<Client>,
    connection: Option<JoinHandle<()>>,
    source: Source,
    broken: Cell<bool>,
    noted: Noted,
}

/// One row, every value as text; `None` is NULL.
pub type TextRow = Vec<Option<String>>;

impl Session {
    pub(super) fn open(source: &Source) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::internal(format!("cannot make a runtime: {error}")))?;
        let noted = Noted::default();
        match runtime.block_on(connect(source, &noted)) {
            Ok((client, connection)) => {
                let session = Session {
                    connection: Some(runtime.spawn(drive(connection))),
                    runtime: Some(runtime),
                    client: Some(client),
                    source: source.clone(),
                    broken: Cell::new(false),
                    noted,
                };
                session.rows(OVERRIDES)?;
                Ok(session)
            }
            Err(failure) => {
                // A name look-up that hangs must not hold us.
                runtime.shutdown_background();
                Err(failure)
            }
        }
    }

    /// Runs one statement and returns its rows.
    ///
    /// # Errors
    /// `SourceUnreachable` when the connection is lost or the statement takes longer than 10 s,
    /// `SourceRefused` when the server refuses it.
    pub fn rows(&self, sql: &str) -> Result<Vec<TextRow>, Failure> {
        self.rows_within(sql, STATEMENT_TIMEOUT)
    }

    /// As [`Session::rows`], for statements that may take longer.
    ///
    /// # Errors
    /// As [`Session::rows`].
    pub fn rows_within(&self, sql: &str, timeout: Duration) -> Result<Vec<TextRow>, Failure> {
        let messages = self.wait(timeout, async |client| client.simple_query(sql).await)?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(text_row(&row)),
            _ => None,
        });
        rows.collect::<Result<_, _>>()
            .map_err(|error| refusal::of_statement(&error, &self.source, self.noted.get()))
    }

    /// Runs one statement and returns its first row.
    ///
    /// # Errors
    /// As [`Session::rows`], and `SourceRefused` when there is no row.
    pub fn row(&self, sql: &str) -> Result<TextRow, Failure> {
        self.rows(sql)?.into_iter().next().ok_or_else(|| {
            Failure::new(
                ErrorKind::SourceRefused,
                format!("{} gave no row for: {sql}", self.source.address),
                "",
            )
        })
    }

    /// Whether the connection can no longer be used.
    pub fn is_broken(&self) -> bool {
        self.broken.get() || self.client.as_ref().is_none_or(Client::is_closed)
    }

    /// Where the session leads.
    pub fn source(&self) -> &Source {
        &self.source
    }

    fn wait<'a, T, F>(
        &'a self,
        timeout: Duration,
        start: impl FnOnce(&'a Client) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, tokio_postgres::Error>>,
    {
        let lost = |why: &str| {
            Failure::new(
                ErrorKind::SourceUnreachable,
                format!("lost the connection to {}: {why}", self.source.address),
                "check that the source runs and can be reached",
            )
        };
        let (Some(runtime), Some(client)) = (&self.runtime, &self.client) else {
            return Err(lost("it was closed"));
        };
        if self.broken.get() {
            return Err(lost("an earlier statement was not answered"));
        }
        let answer = runtime.block_on(async { tokio::time::timeout(timeout, start(client)).await });
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                if error.as_db_error().is_none() {
                    self.broken.set(true);
                }
                Err(refusal::of_statement(&error, &self.source, self.noted.get()))
            }
            Err(_) => {
                self.broken.set(true);
                Err(lost(&format!("no answer within {} s", timeout.as_secs())))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Dropping the client makes the connection close properly.
        self.client = None;
        if let Some(runtime) = self.runtime.take() {
            if let Some(connection) = self.connection.take()
                && !self.broken.get()
            {
                let _ = runtime
                    .block_on(async { tokio::time::timeout(CLOSE_TIMEOUT, connection).await });
            }
            runtime.shutdown_background();
        }
    }
}

fn text_row(row: &tokio_postgres::SimpleQueryRow) -> Result<TextRow, tokio_postgres::Error> {
    (0..row.len()).map(|column| Ok(row.try_get(column)?.map(str::to_owned))).collect()
}

type Plain = Guard<Box<dyn Wire>>;
type Encrypted = Guard<<tls::Connector as MakeTlsConnect<Box<dyn Wire>>>::Stream>;
type Connection = tokio_postgres::Connection<Plain, Encrypted>;

/// Moves bytes until the session ends. Notices and the like are dropped: nobody asked for them.
async fn drive(mut connection: Connection) {
    while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await
    {
        if let Err(error) = message {
            tracing::debug!("the connection to the source ended: {error}");
            return;
        }
    }
}

/// Connects in the ways that the source's `sslmode` allows, one after the other until the server admits
/// one.
async fn connect(source: &Source, noted: &Noted) -> Result<(Client, Connection), Failure> {
    let mut tls = tls::connector(&source.address)?;
    let mut refused = None;
    for mode in ways(&source.address) {
        match tokio::time::timeout(CONNECT_TIMEOUT, connect_by(source, *mode, &mut tls, noted))
            .await
        {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(Attempt::Unreachable(why))) => {
                return Err(refusal::unreachable(&source.address, &why));
            }
            Ok(Err(Attempt::Refused(error))) => {
                let failure = refusal::of_connect(&error, source, noted.get());
                if error.code() != Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) {
                    return Err(failure);
                }
                refused.get_or_insert(failure);
            }
            Err(_) => return Err(silent(&source.address)),
        }
    }
    Err(refused.unwrap_or_else(|| silent(&source.address)))
}

/// Why an attempt to connect failed.
enum Attempt {
    Unreachable(String),
    Refused(tokio_postgres::Error),
}

async fn connect_by(
    source: &Source,
    mode: SslMode,
    tls: &mut tls::Connector,
    noted: &Noted,
) -> Result<(Client, Connection), Attempt> {
    let address = &source.address;
    let unreachable = |error: std::io::Error| Attempt::Unreachable(error.to_string());
    let stream = wire::dial(address).await.map_err(unreachable)?;
    let exposed = address.may_expose_password();
    let guard = Guard::new(stream, mode != SslMode::Disable, exposed, noted.clone());
    let tls = MakeTlsConnect::<Box<dyn Wire>>::make_tls_connect(tls, &address.host);
    let tls = tls.map_err(|error| Attempt::Unreachable(error.to_string()))?;
    let mut config = configure(source);
    config.ssl_mode(mode);
    config.connect_raw(guard, TlsBelow(tls)).await.map_err(Attempt::Refused)
}

/// With or without TLS, in the order of libpq.
fn ways(address: &SourceAddress) -> &'static [SslMode] {
    if address.host.starts_with('/') {
        return &[SslMode::Disable];
    }
    match address.tls {
        TlsMode::Disable => &[SslMode::Disable],
        TlsMode::Allow => &[SslMode::Disable, SslMode::Require],
        TlsMode::Prefer => &[SslMode::Prefer, SslMode::Disable],
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => &[SslMode::Require],
    }
}

fn silent(address: &SourceAddress) -> Failure {
    Failure::new(
        ErrorKind::SourceUnreachable,
        format!("{address} does not answer within {} s", CONNECT_TIMEOUT.as_secs()),
        "check host and port, that the server listens there (listen_addresses), and the firewalls \
         between",
    )
}

fn configure(source: &Source) -> tokio_postgres::Config {
    let address = &source.address;
    let mut config = tokio_postgres::Config::new();
    config.user(&address.user).dbname(&address.database).application_name("offshoot");
    if let Some(password) = &source.password {
        config.password(password.expose());
    }
    config
}

/// Quotes a text as an SQL literal.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') {
        format!(" E'{}'", quoted.replace('\\', "\\\\"))
    } else {
        format!("'{quoted}'")
    }
}
