//! A blocking connection to a database, for a handful of plain statements.

use anyhow::{Context, Result, bail};
use std::future::poll_fn;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage};

/// Longest a connection may take to be made.
const CONNECT_SECONDS_MAX: u64 = 30;
/// Longest a statement may take.
const STATEMENT_SECONDS_MAX: u64 = 120;

/// A connection. Every call ends within a limit: a server that hangs is an error.
pub struct Database {
    runtime: Runtime,
    client: Client,
    /// The payloads of notifications.
    heard: UnboundedReceiver<String>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Database")
    }
}

impl Database {
    /// Connects by URI.
    ///
    /// # Errors
    /// When the URI is wrong or the server does not answer within thirty seconds.
    pub fn connect(uri: &str) -> Result<Self> {
        let config: Config = uri.parse().context("the URI of a database")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (told, heard) = unbounded_channel();
        let client = runtime.block_on(async {
            let limit = Duration::from_secs(CONNECT_SECONDS_MAX);
            let (client, mut connection) = tokio::time::timeout(limit, config.connect(NoTls))
                .await
                .context("the database does not answer")?
                .map_err(|error| describe(&error))?;
            tokio::spawn(async move {
                while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                    if let AsyncMessage::Notification(notification) = message {
                        let _ = told.send(notification.payload().to_owned());
                    }
                }
            });
            anyhow::Ok(client)
        })?;
        Ok(Database { runtime, client, heard })
    }

    /// The payload of the next notification of a channel that it listens to. Nothing is sent.
    ///
    /// # Errors
    /// When none comes in time, or the connection has ended.
    pub fn hear(&mut self, limit: Duration) -> Result<String> {
        let next = async { tokio::time::timeout(limit, self.heard.recv()).await };
        let heard = self.runtime.block_on(next).context("nothing is heard")?;
        heard.context("the connection has ended")
    }

    /// Runs statements and returns the rows of all of them, every value as text; NULL is empty.
    ///
    /// # Errors
    /// What the server says, or that it did not answer in time.
    pub fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        let messages = self.runtime.block_on(async {
            let limit = Duration::from_secs(STATEMENT_SECONDS_MAX);
            tokio::time::timeout(limit, self.client.simple_query(sql)).await
        });
        let messages = match messages {
            Ok(Ok(messages)) => messages,
            Ok(Err(error)) => return Err(describe(&error).context(format!("running: {sql}"))),
            Err(_) => bail!("no answer within {STATEMENT_SECONDS_MAX} s: {sql}"),
        };
        let mut rows = Vec::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                let values = (0..row.len()).map(|i| row.get(i).unwrap_or_default().to_owned());
                rows.push(values.collect());
            }
        }
        Ok(rows)
    }

    /// Runs statements for their effect.
    ///
    /// # Errors
    /// As [`Database::rows`].
    pub fn execute(&self, sql: &str) -> Result<()> {
        self.rows(sql).map(|_| ())
    }

    /// The first value of the first row, as text.
    ///
    /// # Errors
    /// As [`Database::rows`], or when there is no row.
    pub fn text(&self, sql: &str) -> Result<String> {
        let first = self.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next());
        first.with_context(|| format!("no row from: {sql}"))
    }

    /// The first value of the first row, as a whole number.
    ///
    /// # Errors
    /// As [`Database::text`], or if it is not a number.
    pub fn number(&self, sql: &str) -> Result<i64> {
        let text = self.text(sql)?;
        text.parse().with_context(|| format!("'{text}' is no number, from: {sql}"))
    }
}

/// What the server said, which the library's own text leaves out.
fn describe(error: &tokio_postgres::Error) -> anyhow::Error {
    match error.as_db_error() {
        Some(said) => anyhow::anyhow!("{}: {}", said.code().code(), said.message()),
        None => match std::error::Error::source(error) {
            Some(cause) => anyhow::anyhow!("{error}: {cause}"),
            None => anyhow::anyhow!("{error}"),
        },
    }
}
