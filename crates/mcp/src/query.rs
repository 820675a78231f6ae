//! SQL in a VDB.

use futures_util::TryStreamExt;
use offshoot_api::{Vdb, VdbState};
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// How long SQL may take.
const TIME_LIMIT_MS: u64 = 30_000;
/// A value that is longer is cut.
const VALUE_BYTES_MAX: usize = 4 << 10;
/// All values of an answer together.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// What SQL returned.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Answer {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The values as text; null is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows the last statement wrote, or returned.
    pub row_count: u64,
    /// Whether rows or values are left out.
    pub cut: bool,
}

/// Runs one statement that cannot write, and returns its first rows.
///
/// The server takes a prepared statement only if it is one alone, so nothing ends the transaction before it runs; and a
/// transaction that has begun to read never becomes one that writes.
pub(crate) async fn read(vdb: &Vdb, sql: &str, rows_max: usize) -> Result<Answer, Failure> {
    let mut client = connect(vdb).await?;
    let transaction = client.build_transaction().read_only(true).start().await.map_err(refused)?;
    // Fixes the snapshot: `SET TRANSACTION READ WRITE` and its functions are refused from here on.
    transaction.query_one("SELECT 1", &[]).await.map_err(refused)?;
    let statement = transaction.prepare(sql).await.map_err(refused)?;
    let columns: Vec<String> =
        statement.columns().iter().map(|column| column.name().to_owned()).collect();
    if columns.is_empty() {
        let message = "this statement returns no rows";
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            message,
            "ask with SELECT, WITH, SHOW or EXPLAIN",
        ));
    }
    drop(statement);
    let client = transaction.client();
    if !can_be_fetched(sql) {
        return collect(client.simple_query_raw(sql).await.map_err(refused)?, rows_max).await;
    }
    let declare = format!("DECLARE mcp NO SCROLL CURSOR FOR {sql}");
    transaction.batch_execute(&declare).await.map_err(refused)?;
    let fetch = format!("FETCH {} FROM mcp", rows_max + 1);
    collect(client.simple_query_raw(&fetch).await.map_err(refused)?, rows_max).await
}

/// Whether a statement is a query, whose rows need not all be made: `SHOW` and `EXPLAIN` are not.
fn can_be_fetched(sql: &str) -> bool {
    let word: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    word.is_empty() || ["select", "with", "values", "table"].contains(&&*word.to_lowercase())
}

/// Runs SQL, several statements too, each by itself unless it says otherwise.
pub(crate) async fn write(vdb: &Vdb, sql: &str, rows_max: usize) -> Result<Answer, Failure> {
    let client = connect(vdb).await?;
    collect(client.simple_query_raw(sql).await.map_err(refused)?, rows_max).await
}

/// Rows as they come; what is over the limits is read and dropped.
async fn collect(
    messages: tokio_postgres::SimpleQueryStream,
    rows_max: usize,
) -> Result<Answer, Failure> {
    let mut messages = pin!(messages);
    let (mut answer, mut bytes) = (Answer::default(), 0);
    while let Some(message) = messages.try_next().await.map_err(refused)? {
        match message {
            SimpleQueryMessage::RowDescription(columns) => {
                let columns = columns.iter().map(|column| column.name().to_owned()).collect();
                answer = Answer { columns, ..Answer::default() };
                bytes = 0;
            }
            SimpleQueryMessage::Row(row) => {
                let row: Vec<_> = (0..row.len()).map(|at| row.get(at).map(shortened)).collect();
                bytes += row.iter().flatten().map(|(text, _)| text.len()).sum::<usize>();
                if answer.rows.len() == rows_max || bytes > ANSWER_BYTES_MAX {
                    answer.cut = true;
                    continue;
                }
                answer.cut |= row.iter().flatten().any(|(_, cut)| *cut);
                answer
                    .rows
                    .push(row.into_iter().map(|value| value.map(|(text, _)| text)).collect());
            }
            SimpleQueryMessage::CommandComplete(count) => answer.row_count = count,
            _ => {}
        }
    }
    answer.row_count = answer.row_count.max(answer.rows.len() as u64);
    Ok(answer)
}

fn shortened(value: &str) -> (String, bool) {
    let end = value.floor_char_boundary(VALUE_BYTES_MAX);
    (value[..end].to_owned(), end < value.len())
}

async fn connect(vdb: &Vdb) -> Result<Client, Failure> {
    if vdb.state != VdbState::Running {
        let message = format!("'{}' does not run", vdb.name);
        let hint = format!("start it: offshoot vdb start {}", vdb.name);
        return Err(Failure::new(ErrorKind::WrongState, message, hint));
    }
    let unreadable = |_| Failure::internal(format!("the engine gave no URI of {}", vdb.name));
    let mut config: Config = vdb.uri.parse().map_err(unreadable)?;
    if config.get_password().is_none() {
        let message = format!("the password of '{}' is shown to its owner alone", vdb.name);
        let hint = "provision a VDB of your own from it, or from its dSource";
        return Err(Failure::new(ErrorKind::Forbidden, message, hint));
    }
    config
        .application_name("offshoot mcp")
        .connect_timeout(CONNECT)
        .options(format!("-c statement_timeout={TIME_LIMIT_MS}"));
    let (client, connection) = config.connect(NoTls).await.map_err(|error| {
        let message = format!("'{}' does not answer: {error}", vdb.name);
        let hint = "see its log with the tool vdb_log; a VDB is reached from the engine's host";
        Failure::new(ErrorKind::WrongState, message, hint)
    })?;
    // It ends with its client.
    tokio::spawn(connection);
    Ok(client)
}

fn refused(error: tokio_postgres::Error) -> Failure {
    let Some(answer) = error.as_db_error() else {
        return Failure::new(ErrorKind::WrongState, format!("the VDB: {error}"), "");
    };
    let place = match answer.position() {
        Some(tokio_postgres::error::ErrorPosition::Original(at)) => format!(" at character {at}"),
        _ => String::new(),
    };
    let message = format!("{}{place} ({})", answer.message(), answer.code().code());
    Failure::new(ErrorKind::InvalidInput, message, answer.hint().unwrap_or_default())
}
