//! Scripts of users: run in a VDB as its user.
//!
//! # One transaction
//! The whole text is sent as one message inside a transaction of the engine's. Where a statement fails, or the engine ends,
//! the server rolls all of it back: only the engine sends `COMMIT`, after it has noted the number of the transaction.
//!
//! # Once
//! [`has_committed`] asks the server what became of that number. A server that crashed must not give the number to another
//! transaction: so the log is flushed beyond it before it is noted ([`outlast`]). Scripts that end the transaction
//! themselves have several, of which the last counts.
//!
//! # Whose session it is
//! It logs in as the VDB's role, by the private socket, where nobody else has that role. So what an earlier engine left
//! running is found by role and socket.

use crate::session::{Session, quote_text};
use crate::source::wire::{Breach, Guard, Limits, Noted};
use crate::vdb_role::{self, VDB_ROLE};
use futures_util::TryStreamExt;
use offshoot_connector::{Script, ScriptCourse};
use offshoot_domain::format_duration;
use offshoot_os::{Clock, SystemClock};
use offshoot_types::{ErrorKind, Failure};
use parking_lot::Mutex;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio_postgres::error::{DbError, ErrorPosition, SqlState};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, SimpleQueryMessage};

/// How often the course is asked whether to go on.
const TICK: Duration = Duration::from_millis(100);
/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a statement of the engine's own may take.
const OWN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a session that was ended may take to be gone: it rolls back.
const END_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between looks whether it is.
const END_PAUSE: Duration = Duration::from_millis(20);
/// The most that a script may answer; nobody reads it.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// What of a message is passed on.
const MESSAGE_CHARS_MAX: usize = 1000;

/// What limits the VDB's user or its source has set do not hold: the engine has one of its own.
const OPTIONS: &str =
    "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0";

/// The text may hold passwords: it is not logged, as far as the user may have it so. A limit of newer servers.
const PREPARE: &str = "DO $do$ DECLARE one text[]; BEGIN \
     FOREACH one SLICE 1 IN ARRAY ARRAY[['log_min_error_statement', 'panic'], ['log_statement', 'none'], \
         ['log_min_duration_statement', '-1'], ['transaction_timeout', '0']] LOOP \
       BEGIN \
         PERFORM pg_catalog.set_config(one[1], one[2], false); \
       EXCEPTION WHEN insufficient_privilege OR undefined_object THEN \
         NULL; \
       END; \
     END LOOP; \
   END $do$";

/// The number of the present transaction, if it has changed anything.
const MARK: &str = "SELECT pg_catalog.pg_current_xact_id_if_assigned()";

/// How a server is reached.
pub struct Reach<'a> {
    /// Its private socket.
    pub socket: PathBuf,
    /// Opens a session of the engine's own.
    pub engine: &'a dyn Fn() -> Result<Session, Failure>,
}

/// How a script ended, other than done.
enum Ended {
    /// The server refused it, or is gone.
    Refused(tokio_postgres::Error),
    /// It is to end.
    Failed(Failure),
}

impl From<tokio_postgres::Error> for Ended {
    fn from(error: tokio_postgres::Error) -> Ended {
        Ended::Refused(error)
    }
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Ended {
        Ended::Failed(failure)
    }
}

/// Runs a script.
///
/// # Errors
/// As [`offshoot_connector::ScriptRunner::run`].
pub fn run(
    reach: &Reach<'_>,
    script: &Script,
    course: &mut dyn ScriptCourse,
) -> Result<(), Failure> {
    let mut engine = (reach.engine)()?;
    end_sessions(&mut engine)?;
    let database = match &script.database {
        Some(name) => name.clone(),
        None => vdb_role::main_database(&mut engine, None)?,
    };
    drop(engine);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal(format!("cannot make a runtime: {error}")))?;
    let mut run = Run {
        runtime: &runtime,
        course,
        said: Arc::default(),
        noted: Noted::default(),
        until: SystemClock.elapsed() + script.time_limit,
        statements: Cell::new(0),
        mark: None,
    };
    let ended = run.whole(reach, script, &database);
    run.pass_on();
    let (noted, statements, mark) = (run.noted.get().copied(), run.statements.get(), run.mark);
    // A server that does not answer must not hold us.
    runtime.shutdown_background();
    let Err(ended) = ended else { return Ok(()) };
    let lost = matches!(&ended, Ended::Refused(error) if error.as_db_error().is_none());
    // Nothing of it may go on, and what was on its way to be committed may have been.
    let left = (reach.engine)().and_then(|mut engine| {
        end_sessions(&mut engine)?;
        mark.filter(|_| lost).map_or(Ok(false), |mark| has_committed(&mut engine, &mark))
    });
    match (left, ended) {
        (Ok(true), _) => Ok(()),
        (_, Ended::Failed(failure)) => Err(failure),
        (_, Ended::Refused(error)) => Err(refused(&error, script, statements, noted)),
    }
}

/// A script that runs.
struct Run<'a> {
    runtime: &'a Runtime,
    course: &'a mut dyn ScriptCourse,
    /// What it has said and the course has not heard.
    said: Arc<Mutex<Vec<String>>>,
    noted: Noted,
    /// When its time is over.
    until: Duration,
    /// How many statements are done.
    statements: Cell<u64>,
    mark: Option<String>,
}

impl Run<'_> {
    fn whole(&mut self, reach: &Reach<'_>, script: &Script, database: &str) -> Result<(), Ended> {
        let (socket, said, noted) = (&reach.socket, self.said.clone(), self.noted.clone());
        let client = self.runtime.block_on(connect(socket, database, said, noted))?;
        self.own(&client, PREPARE)?;
        self.own(&client, "BEGIN READ WRITE")?;
        let statements = std::mem::take(&mut self.statements);
        let ran = self.wait(script, pin!(text(&client, script.text.reveal(), &statements)));
        self.statements = statements;
        ran??;
        self.pass_on();
        if let Some(mark) = self.own(&client, MARK)? {
            outlast(&mut (reach.engine)()?)?;
            self.course.committing(&mark)?;
            self.mark = Some(mark);
        }
        // Constraints may be checked, and triggers run, only now.
        self.wait(script, pin!(client.batch_execute("COMMIT")))??;
        Ok(())
    }

    /// A statement of the engine's own, and what it returns.
    fn own(&self, client: &Client, sql: &str) -> Result<Option<String>, Ended> {
        let asked = async { tokio::time::timeout(OWN_TIMEOUT, client.simple_query(sql)).await };
        let slow = |_| Failure::internal("the VDB does not answer any more");
        let messages = self.runtime.block_on(asked).map_err(slow)??;
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(row.and_then(|row| row.get(0)).map(str::to_owned))
    }

    /// Waits for it as long as the course and the script's time limit allow.
    fn wait<T>(
        &mut self,
        script: &Script,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Failure> {
        loop {
            let turn = async { tokio::time::timeout(TICK, work.as_mut()).await };
            if let Ok(done) = self.runtime.block_on(turn) {
                return Ok(done);
            }
            self.pass_on();
            self.course.check()?;
            if SystemClock.elapsed() >= self.until {
                return Err(Failure::new(
                    ErrorKind::InvalidInput,
                    format!("it takes longer than {}", format_duration(script.time_limit)),
                    "make it do less, or allow more: --hook-time-limit 1h",
                ));
            }
        }
    }

    fn pass_on(&mut self) {
        let said = std::mem::take(&mut *self.said.lock());
        said.into_iter().for_each(|message| self.course.heard(message));
    }
}

/// A session of the VDB's role.
async fn connect(
    socket: &Path,
    database: &str,
    said: Arc<Mutex<Vec<String>>>,
    noted: Noted,
) -> Result<Client, Ended> {
    let failed = |why: String| Failure::internal(format!("the VDB is not reached: {why}"));
    let mut config = Config::new();
    config.user(VDB_ROLE).dbname(database).application_name("offshoot hook").options(OPTIONS);
    let stream = UnixStream::connect(socket).await.map_err(|error| failed(error.to_string()))?;
    let limits =
        Limits { answer_bytes: ANSWER_BYTES_MAX, unasked_bytes: ANSWER_BYTES_MAX, rows: u64::MAX };
    let guarded = Guard::new(stream, false, false, noted).within(limits);
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, config.connect_raw(guarded, NoTls));
    let connected = connecting.await.map_err(|_| failed("it does not answer".to_owned()))?;
    let (client, mut connection) = connected.map_err(|error| match error.as_db_error() {
        Some(said) => Ended::Failed(no_session(said)),
        None => Ended::Refused(error),
    })?;
    tokio::spawn(async move {
        while let Some(Ok(message)) =
            std::future::poll_fn(|context| connection.poll_message(context)).await
        {
            if let AsyncMessage::Notice(notice) = message {
                said.lock().push(one_line(&format!("{}: {}", notice.severity(), notice.message())));
            }
        }
    });
    Ok(client)
}

/// Runs the text. What it returns is dropped as it comes.
async fn text(
    client: &Client,
    text: &str,
    statements: &Cell<u64>,
) -> Result<(), tokio_postgres::Error> {
    let mut answers = pin!(client.simple_query_raw(text).await?);
    while let Some(message) = answers.try_next().await? {
        if matches!(message, SimpleQueryMessage::CommandComplete(_)) {
            statements.set(statements.get() + 1);
        }
    }
    Ok(())
}

/// Control characters could change what a terminal shows.
pub(crate) fn one_line(message: &str) -> String {
    let plain = message.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(MESSAGE_CHARS_MAX).collect()
}

/// Flushes the server's log beyond the transactions that have a number, so that none of these is given again after a crash.
fn outlast(engine: &mut Session) -> Result<(), Failure> {
    let sql = "SELECT pg_catalog.pg_logical_emit_message(true, 'offshoot', ''::pg_catalog.text)";
    engine.query(sql, OWN_TIMEOUT).map(drop)
}

/// What became of a transaction that was about to be committed, and has no session any more.
///
/// # Errors
/// When the server does not answer.
pub fn has_committed(engine: &mut Session, mark: &str) -> Result<bool, Failure> {
    let mark = format!("{}::pg_catalog.xid8", quote_text(mark));
    let sql = format!(
        "SELECT CASE WHEN {mark} < pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) \
           THEN pg_catalog.pg_xact_status({mark}) END"
    );
    let status = engine.query_column(&sql, OWN_TIMEOUT)?;
    Ok(status.first().is_some_and(|status| status == "committed"))
}

/// Ends the sessions of scripts, and waits until they are gone.
///
/// # Errors
/// If one is not; when the server does not answer.
pub fn end_sessions(engine: &mut Session) -> Result<(), Failure> {
    let sql = format!(
        "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
         WHERE usename = {} AND client_port = -1 AND pid <> pg_catalog.pg_backend_pid()",
        quote_text(VDB_ROLE)
    );
    let until = SystemClock.elapsed() + END_TIMEOUT;
    while !engine.query_column(&sql, OWN_TIMEOUT)?.is_empty() {
        if SystemClock.elapsed() >= until {
            return Err(Failure::internal("the session of an earlier hook does not end"));
        }
        SystemClock.sleep(END_PAUSE);
    }
    Ok(())
}

fn invalid(message: impl Into<String>, hint: &str) -> Failure {
    Failure::new(ErrorKind::InvalidInput, message, hint)
}

/// What the server's refusal means. Neither the text nor data is repeated.
fn refused(
    error: &tokio_postgres::Error,
    script: &Script,
    statements: u64,
    noted: Option<Breach>,
) -> Failure {
    if let Some(said) = error.as_db_error() {
        return refusal(said, script, statements);
    }
    if noted == Some(Breach::Endless) {
        let message = format!("it answers more than {} MiB", ANSWER_BYTES_MAX >> 20);
        return invalid(message, "select less, or inside of DO with PERFORM; raise fewer notices");
    }
    let text = error.to_string();
    if text.contains("unexpected message") {
        let hint = "use INSERT, or load the data by: offshoot vdb connect NAME -- -f FILE";
        return invalid("COPY from or to the client does not work in a hook", hint);
    }
    let hint = "see why: offshoot vdb logs NAME";
    Failure::new(ErrorKind::Internal, format!("its session was lost: {text}"), hint)
}

fn refusal(said: &DbError, script: &Script, statements: u64) -> Failure {
    let position = match said.position() {
        Some(ErrorPosition::Original(position)) => Some(*position as usize),
        _ => None,
    };
    let place = match position {
        Some(at) => format!("line {}", line_of(script.text.reveal(), at)),
        None => format!("statement {}", statements + 1),
    };
    let message = format!("{place}: {} ({})", one_line(said.message()), said.code().code());
    let psql = position.is_some_and(|at| {
        script.text.reveal().chars().nth(at.saturating_sub(1)).is_some_and(|it| it == '\\')
    });
    let own = said.hint().map(one_line).unwrap_or_default();
    let hint = match *said.code() {
        SqlState::ACTIVE_SQL_TRANSACTION => {
            "a hook is one transaction: run what cannot be in one by: offshoot vdb connect NAME -- -c '…'"
        }
        SqlState::SYNTAX_ERROR if psql => "a hook is SQL alone, without commands of psql",
        _ => &own,
    };
    invalid(message, hint)
}

fn no_session(said: &DbError) -> Failure {
    let hint = match said.code() {
        &SqlState::INVALID_CATALOG_NAME => {
            "name a database that the VDB has: --hook-database DATABASE"
        }
        _ => "",
    };
    let message =
        format!("it gets no session: {} ({})", one_line(said.message()), said.code().code());
    invalid(message, hint)
}

/// The line of a character, both from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.chars().take(at.saturating_sub(1)).filter(|letter| *letter == '\n').count() + 1
}

#[cfg(test)]
mod tests;
