//! A connection to a database for loads: without locks, without blocking a thread.

use anyhow::{Context, Result, anyhow};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// Longest a connection may take to be made.
const CONNECT_SECONDS_MAX: u64 = 30;

/// A connection and the task that serves it.
#[derive(Debug)]
pub struct Connection {
    /// What statements go to.
    pub client: Client,
    server: tokio::task::JoinHandle<()>,
}

/// The runtime that a benchmark's connections share.
///
/// # Errors
/// When the operating system gives no threads.
pub fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

impl Connection {
    /// Connects by URI.
    ///
    /// # Errors
    /// When the URI is wrong or the server does not answer within half a minute.
    pub async fn open(uri: &str) -> Result<Self> {
        let mut config: Config = uri.parse().context("the URI of a database")?;
        config.application_name("offshoot-bench");
        let limit = Duration::from_secs(CONNECT_SECONDS_MAX);
        let (client, connection) = tokio::time::timeout(limit, config.connect(NoTls))
            .await
            .context("the database does not answer")?
            .map_err(|error| anyhow!(reason(&error)))?;
        let server = tokio::spawn(async move {
            // Those who wait for an answer get the error.
            let _ = connection.await;
        });
        Ok(Connection { client, server })
    }

    /// Runs statements for their effect.
    ///
    /// # Errors
    /// What the server says.
    pub async fn batch(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.map_err(|error| anyhow!(reason(&error)))
    }

    /// The rows of a statement as text; NULL is empty.
    ///
    /// # Errors
    /// What the server says.
    pub async fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        let messages =
            self.client.simple_query(sql).await.map_err(|error| anyhow!(reason(&error)))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let value = |index| row.get(index).unwrap_or_default().to_owned();
                Some((0..row.len()).map(value).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    /// The first value of the first row as text.
    ///
    /// # Errors
    /// What the server says, or that there is no row.
    pub async fn text(&self, sql: &str) -> Result<String> {
        let first = self.rows(sql).await?.into_iter().next();
        first.and_then(|row| row.into_iter().next()).with_context(|| format!("no row from: {sql}"))
    }

    /// The first value of the first row as a whole number.
    ///
    /// # Errors
    /// As [`Connection::text`], or when it is no number.
    pub async fn number(&self, sql: &str) -> Result<i64> {
        let text = self.text(sql).await?;
        text.parse().with_context(|| format!("'{text}' is no number, from: {sql}"))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Why a statement failed, in one line: the server's code and message if there is one.
pub fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{}: {}", said.code().code(), said.message()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}
