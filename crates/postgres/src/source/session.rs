//! A blocking SQL session with a source.
//!
//! The asynchronous client runs on a private current-thread runtime, so a session may be used from
//! any plain thread. Statements go through the simple protocol: every value comes back as text.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use offshoot_types::{ErrorKind, Failure};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, SimpleQueryMessage, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Source, SourceAddress, TlsMode, refusal, tls};

/// How long connecting may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a statement may take by default.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long closing a session may take.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(200);

/// A blocking SQL session; every statement has a deadline.
pub struct Session {
    runtime: Option<Runtime>,
    client: Option<Client>,
    connection: Option<JoinHandle<()>>,
    source: Source,
    broken: Cell<bool>,
}

/// One row, every value as text; `None` is NULL.
pub type TextRow = Vec<Option<String>>;

impl Session {
    pub(super) fn open(source: &Source) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::internal(format!("cannot make a runtime: {error}")))?;
        match runtime.block_on(connect(source)) {
            Ok((client, connection)) => {
                let connection = runtime.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!("the connection to the source ended: {error}");
                    }
                });
                Ok(Session {
                    runtime: Some(runtime),
                    client: Some(client),
                    connection: Some(connection),
                    source: source.clone(),
                    broken: Cell::new(false),
                })
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
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
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
                Err(refusal::of_statement(&error, &self.source))
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

type Connection =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Connects in the ways that the source's `sslmode` allows, one after the other until the server admits
/// one.
async fn connect(source: &Source) -> Result<(Client, Connection), Failure> {
    let tls = tls::connector(&source.address)?;
    let mut refused = None;
    for mode in ways(&source.address) {
        let mut config = configure(source);
        config.ssl_mode(*mode);
        match tokio::time::timeout(CONNECT_TIMEOUT, config.connect(tls.clone())).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(error)) => {
                let failure = refusal::of_connect(&error, source);
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
    config
        .host(&address.host)
        .port(address.port)
        .user(&address.user)
        .dbname(&address.database)
        .application_name("offshoot")
        .connect_timeout(CONNECT_TIMEOUT)
        .keepalives_idle(Duration::from_secs(10))
        .tcp_user_timeout(Duration::from_secs(25));
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
