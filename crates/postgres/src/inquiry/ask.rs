//! One question to a running server.

use super::{FIRST_OF_USERS, place};
use crate::server::Server;
use crate::source::wire::{Breach, Guard, Noted};
use crate::vdb_role::{self, VDB_ROLE};
use offshoot_connector::{Question, Reads, Reply};
use offshoot_domain::{ANSWER_BYTES_MAX, Answer, format_duration};
use offshoot_types::{ErrorKind, Failure};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How much longer than the server is waited for before it is given up.
const GRACE: Duration = Duration::from_secs(5);
/// How long a statement of the engine's own may take.
const OWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Only the first row is needed, so only that is computed.
const DECLARE: &str = "DECLARE offshoot_answer NO SCROLL CURSOR FOR ";
const FETCH: &str = "FETCH FORWARD 1 FROM offshoot_answer";

/// How a question ended.
enum Ended {
    /// The server refused it.
    Refused(tokio_postgres::Error),
    /// It is no question that any moment can answer.
    Failed(Failure),
}

impl From<tokio_postgres::Error> for Ended {
    fn from(error: tokio_postgres::Error) -> Ended {
        Ended::Refused(error)
    }
}

/// Asks a server whose VDB role may log in.
///
/// # Errors
/// As [`offshoot_connector::Inquirer::ask`].
pub(crate) fn ask(server: &Server, question: &Question) -> Result<Reply, Failure> {
    let database = match &question.database {
        Some(name) => name.clone(),
        None => {
            let preferred = question.preferred_database.as_deref();
            vdb_role::main_database(&mut server.connect()?, preferred)?
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("cannot make a runtime: {error}")))?;
    let noted = Noted::default();
    let spec = server.spec();
    let socket = spec.socket_dir().join(format!(".s.PGSQL.{}", spec.socket_port()));
    let asked = runtime.block_on(async {
        let client = connect(&socket, &database, question.time_limit, &noted).await?;
        answer(&client, question).await
    });
    // A server that does not answer must not hold us.
    runtime.shutdown_background();
    match asked {
        Ok((answer, reads)) => Ok(Reply { answer, database, reads }),
        Err(Ended::Failed(failure)) => Err(failure),
        Err(Ended::Refused(error)) => {
            let answer = refused(&error, question, noted.get().copied())?;
            Ok(Reply { answer, database, reads: Reads { unknown: true, ..Reads::default() } })
        }
    }
}

/// A session of the VDB role that only reads. What the source has set for the database holds, as for users of a VDB.
async fn connect(
    socket: &Path,
    database: &str,
    limit: Duration,
    noted: &Noted,
) -> Result<Client, Ended> {
    let failed =
        |why: String| Ended::Failed(Failure::internal(format!("the copy cannot be asked: {why}")));
    let mut config = Config::new();
    let options = format!(
        "-c default_transaction_read_only=on -c statement_timeout={} -c client_min_messages=error",
        limit.as_millis()
    );
    config.user(VDB_ROLE).dbname(database).application_name("offshoot bisect").options(options);
    let stream = UnixStream::connect(socket).await.map_err(|error| failed(error.to_string()))?;
    let guarded = Guard::new(stream, false, false, noted.clone());
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, config.connect_raw(guarded, NoTls));
    let (client, connection) =
        connecting.await.map_err(|_| failed("it does not answer".to_owned()))??;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

async fn answer(client: &Client, question: &Question) -> Result<(Answer, Reads), Ended> {
    let limit = question.time_limit + GRACE;
    within(limit, client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")).await?;
    // This takes one statement alone, and does not run it.
    let statement = within(limit, client.prepare(&question.query)).await?;
    let Some(column) = statement.columns().first() else {
        return Err(invalid("the query returns nothing", "give one SELECT that returns a value"));
    };
    if !statement.params().is_empty() {
        return Err(invalid("the query has parameters", "write their values into it"));
    }
    let is_boolean = *column.type_() == Type::BOOL;
    let declare = format!("{DECLARE}{}", question.query);
    within(limit, client.batch_execute(&declare)).await?;
    let messages = within(limit, client.simple_query(FETCH)).await?;
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let answer = match row.map(|row| row.try_get(0)).transpose()? {
        None => Answer::NoRow,
        Some(None) => Answer::Null,
        Some(Some(text)) if text.len() > ANSWER_BYTES_MAX => return Err(too_long()),
        Some(Some("t")) if is_boolean => Answer::Value("true".to_owned()),
        Some(Some("f")) if is_boolean => Answer::Value("false".to_owned()),
        Some(Some(text)) => Answer::Value(text.to_owned()),
    };
    Ok((answer, reads(client).await?))
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Ended> {
    match tokio::time::timeout(limit, work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Ended::Failed(Failure::internal("the copy does not answer any more"))),
    }
}

/// What the transaction has read: the relations that it holds a lock on. Catalogs count in any case, those too whose
/// files were replaced.
async fn reads(client: &Client) -> Result<Reads, Ended> {
    let sql = format!(
        "SELECT CASE WHEN c.relisshared THEN 0 ELSE d.oid END, pg_catalog.pg_relation_filenode(c.oid), c.relkind = 'S', \
           (pg_catalog.txid_snapshot_xmax(pg_catalog.txid_current_snapshot()) % 4294967296) \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database() \
         WHERE c.relkind IN ('r', 'm', 't', 'S') AND (c.oid < {FIRST_OF_USERS} AND c.relkind <> 'S' \
           OR c.oid IN (SELECT relation FROM pg_catalog.pg_locks \
             WHERE locktype = 'relation' AND pid = pg_catalog.pg_backend_pid()))"
    );
    let mut reads = Reads::default();
    for message in within(OWN_TIMEOUT, client.simple_query(&sql)).await? {
        let SimpleQueryMessage::Row(row) = message else { continue };
        let number =
            |at: usize| Ok::<_, Ended>(row.try_get(at)?.and_then(|text| text.parse().ok()));
        let sequence = row.try_get(2)? == Some("t");
        match (number(0)?, number(1)?) {
            (Some(database), Some(file)) if !sequence => {
                reads.places.insert(place(database, file));
            }
            // What a sequence gives belongs to no transaction.
            _ => reads.unknown = true,
        }
        reads.begun_before = number(3)?;
    }
    Ok(reads)
}

fn invalid(message: &str, hint: &str) -> Ended {
    Ended::Failed(Failure::new(ErrorKind::InvalidInput, message, hint))
}

fn too_long() -> Ended {
    invalid(
        &format!("the answer is longer than {} KiB", ANSWER_BYTES_MAX >> 10),
        "ask for less: a count, or md5(…) of it",
    )
}

/// What the server's refusal means: an answer, if another moment may have another.
fn refused(
    error: &tokio_postgres::Error,
    question: &Question,
    breach: Option<Breach>,
) -> Result<Answer, Failure> {
    let refuse =
        |message: String, hint: &str| Err(Failure::new(ErrorKind::InvalidInput, message, hint));
    let Some(said) = error.as_db_error() else {
        return match (breach, too_long()) {
            (Some(Breach::Endless), Ended::Failed(failure)) => Err(failure),
            _ => Err(Failure::internal(format!("the copy does not answer any more: {error}"))),
        };
    };
    let text = said.message().to_owned();
    match said.code() {
        &SqlState::SYNTAX_ERROR => {
            refuse(format!("the query is refused: {text}"), "give one SELECT that returns a value")
        }
        &SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::FEATURE_NOT_SUPPORTED => refuse(
            format!("the query does not only read: {text}"),
            "give one SELECT that changes nothing",
        ),
        &SqlState::QUERY_CANCELED => refuse(
            format!("the query takes longer than {}", format_duration(question.time_limit)),
            "ask for less, or allow more: --time-limit 1min",
        ),
        code if is_of_server(code.code()) => {
            Err(Failure::internal(format!("the copy cannot answer: {text}")))
        }
        code => Ok(Answer::Error(format!("{text} ({})", code.code()))),
    }
}

/// Whether an error says something of the server, and nothing of its data: connection, resources, operators, I/O,
/// defects.
fn is_of_server(code: &str) -> bool {
    ["08", "53", "57", "58", "XX"].iter().any(|class| code.starts_with(class))
}
