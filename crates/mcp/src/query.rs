//! SQL in a VDB.

use futures_util::TryStreamExt;
use offshoot_api::{Vdb, VdbState};
use offshoot_types::{ErrorKind, Failure};
use serde::Serialize;
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::{CancelToken, Client, Config, NoTls, SimpleQueryMessage};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// The server ends SQL by itself, should nobody tell it to, so much later than its limit.
const LATER: Duration = Duration::from_secs(5);
/// How often SQL is told to end, and how long that may take each time.
const CANCELS: usize = 3;
const CANCEL: Duration = Duration::from_secs(1);
/// A value that is longer is cut.
const VALUE_BYTES_MAX: usize = 4 << 10;
/// An answer as it is written, in JSON; so much of it is around columns and rows.
const ANSWER_BYTES_MAX: usize = 256 << 10;
const AROUND_BYTES: usize = 128;

/// What an answer may be, and take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The most rows.
    pub rows: usize,
    /// For all statements together.
    pub time: Duration,
}

/// What SQL returned.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Answer {
    /// The columns' names.
    pub columns: Vec<String>,
    /// The values as text; null is NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows the last statement wrote, or returned; of [`read`], how many are here.
    pub row_count: u64,
    /// Whether rows or values are left out.
    pub cut: bool,
}

/// Runs one statement that cannot write, and returns its first rows. `stop` ends it.
///
/// The server takes a prepared statement only if it is one alone, so nothing ends the transaction before it runs; and a
/// transaction that has begun to read never becomes one that writes. It is rolled back. What functions do beside it stays: end
/// a session of the same user, or hold an advisory lock until then.
pub(crate) async fn read(
    vdb: &Vdb,
    sql: &str,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<Answer, Failure> {
    let mut client = connect(vdb, limits).await?;
    let cancel = client.cancel_token();
    within(limits, stop, cancel, read_rows(&mut client, sql, limits.rows)).await
}

async fn read_rows(client: &mut Client, sql: &str, rows_max: usize) -> Result<Answer, Failure> {
    let transaction = client.build_transaction().read_only(true).start().await.map_err(refused)?;
    // Fixes the snapshot: `SET TRANSACTION READ WRITE` and its functions are refused from here on.
    transaction.query_one("SELECT 1", &[]).await.map_err(refused)?;
    let statement = transaction.prepare(sql).await.map_err(refused)?;
    if statement.columns().is_empty() {
        let message = "this statement returns no rows";
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            message,
            "ask with SELECT, WITH, SHOW or EXPLAIN",
        ));
    }
    drop(statement);
    let client = transaction.client();
    let rows = if can_be_fetched(sql) {
        let declare = format!("DECLARE mcp NO SCROLL CURSOR FOR {sql}");
        transaction.batch_execute(&declare).await.map_err(refused)?;
        // One more says whether there are more.
        client.simple_query_raw(&format!("FETCH {} FROM mcp", rows_max + 1)).await
    } else {
        client.simple_query_raw(sql).await
    };
    let mut answer = collect(rows.map_err(refused)?, rows_max).await?;
    answer.row_count = answer.rows.len() as u64;
    Ok(answer)
}

/// Whether a statement is a query, whose rows need not all be made: `SHOW` and `EXPLAIN` are not.
fn can_be_fetched(sql: &str) -> bool {
    let word: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    word.is_empty() || ["select", "with", "values", "table"].contains(&&*word.to_lowercase())
}

/// Runs SQL, several statements too, each by itself unless it says otherwise. `stop` ends it.
pub(crate) async fn write(
    vdb: &Vdb,
    sql: &str,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<Answer, Failure> {
    let client = connect(vdb, limits).await?;
    let rows =
        async { collect(client.simple_query_raw(sql).await.map_err(refused)?, limits.rows).await };
    within(limits, stop, client.cancel_token(), rows).await
}

/// Waits for SQL, and tells its server to end it when its time is up, or nobody wants it any more.
async fn within(
    limits: Limits,
    stop: impl Future<Output = ()>,
    cancel: CancelToken,
    sql: impl Future<Output = Result<Answer, Failure>>,
) -> Result<Answer, Failure> {
    let mut sql = pin!(sql);
    let why = tokio::select! {
        done = &mut sql => return done,
        () = stop => Failure::new(ErrorKind::Cancelled, "it was ended, as nobody waits for it", ""),
        () = tokio::time::sleep(limits.time) => {
            let message = format!("it was ended after {} s", limits.time.as_secs());
            Failure::new(ErrorKind::InvalidInput, message, "ask for less, or give it more `seconds`")
        }
    };
    for _ in 0..CANCELS {
        let told = tokio::time::timeout(CANCEL, cancel.cancel_query(NoTls));
        let (_, ended) = tokio::join!(told, tokio::time::timeout(CANCEL, &mut sql));
        if let Ok(done) = ended {
            return done.or(Err(why));
        }
    }
    Err(why)
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
                bytes = AROUND_BYTES + written(&answer.columns)?;
                if bytes > ANSWER_BYTES_MAX {
                    (answer.columns, answer.cut) = (Vec::new(), true);
                }
            }
            SimpleQueryMessage::Row(row) => {
                if answer.rows.len() == rows_max || bytes > ANSWER_BYTES_MAX {
                    answer.cut = true;
                    continue;
                }
                let row: Vec<_> = (0..row.len()).map(|at| row.get(at).map(shortened)).collect();
                let cut = row.iter().flatten().any(|(_, cut)| *cut);
                let row: Vec<_> =
                    row.into_iter().map(|value| value.map(|(text, _)| text)).collect();
                // With the comma behind it.
                bytes += written(&row)? + 1;
                if bytes > ANSWER_BYTES_MAX {
                    answer.cut = true;
                    continue;
                }
                answer.cut |= cut;
                answer.rows.push(row);
            }
            SimpleQueryMessage::CommandComplete(count) => answer.row_count = count,
            _ => {}
        }
    }
    answer.row_count = answer.row_count.max(answer.rows.len() as u64);
    Ok(answer)
}

/// The bytes of a document in an answer.
fn written(document: &impl Serialize) -> Result<usize, Failure> {
    let text = serde_json::to_vec(document);
    text.map(|text| text.len()).map_err(|error| Failure::internal(format!("a row: {error}")))
}

fn shortened(value: &str) -> (String, bool) {
    let end = value.floor_char_boundary(VALUE_BYTES_MAX);
    (value[..end].to_owned(), end < value.len())
}

async fn connect(vdb: &Vdb, limits: Limits) -> Result<Client, Failure> {
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
        .options(format!("-c statement_timeout={}", (limits.time + LATER).as_millis()));
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
    let (said, _) = shortened(answer.message());
    let (hint, _) = shortened(answer.hint().unwrap_or_default());
    let message = format!("{said}{place} ({})", answer.code().code());
    Failure::new(ErrorKind::InvalidInput, message, hint)
}
