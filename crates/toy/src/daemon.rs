//! The server's process.
//!
//! ```text
//! start ─▶ socket ─▶ replay what the journal has ─┬─▶ takes writes ─▶ SHUTDOWN: checkpoint, exit 0
//!                    (answers "recovering")       └─▶ staging: keeps replaying
//! ```

use crate::conf::Purpose;
use crate::database::{Database, REPLICA_OF};
use crate::follow;
use crate::record::Kind;
use offshoot_os::{Clock, SystemClock};
use parking_lot::Mutex;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The socket in the runtime directory.
pub(crate) const SOCKET: &str = "s";
/// What it logs if its port is taken.
pub(crate) const PORT_TAKEN: &str = "the port is taken";
/// How often a tie to another database is tried.
const TIE_PAUSE: Duration = Duration::from_millis(20);

struct Arguments {
    data: PathBuf,
    runtime: PathBuf,
    port: Option<u16>,
}

struct Server {
    database: Mutex<Database>,
    ready: AtomicBool,
    /// How far it has recovered.
    replayed: AtomicU64,
    socket: PathBuf,
}

/// Runs a server until it is told to stop: `--data DIR --runtime DIR [--port N] [--name TEXT]`.
pub fn serve(arguments: impl Iterator<Item = String>) -> ExitCode {
    match parse(arguments).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toyd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> io::Result<Arguments> {
    let wrong = |text: String| io::Error::new(io::ErrorKind::InvalidInput, text);
    let (mut data, mut runtime, mut port) = (None, None, None);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| wrong(format!("{name} has no value")))?;
        match name.as_str() {
            "--data" => data = Some(PathBuf::from(value)),
            "--runtime" => runtime = Some(PathBuf::from(value)),
            "--port" => {
                port = Some(value.parse().map_err(|_| wrong(format!("{value} is no port")))?);
            }
            "--name" => {}
            _ => return Err(wrong(format!("{name} is not known"))),
        }
    }
    let (Some(data), Some(runtime)) = (data, runtime) else {
        return Err(wrong("--data and --runtime are needed".to_owned()));
    };
    Ok(Arguments { data, runtime, port })
}

fn run(arguments: &Arguments) -> io::Result<()> {
    let network = arguments.port.map(|port| {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| io::Error::new(error.kind(), format!("{PORT_TAKEN}: {error}")))
    });
    let network = network.transpose()?;
    let socket = arguments.runtime.join(SOCKET);
    let _ = std::fs::remove_file(&socket);
    let local = UnixListener::bind(&socket)?;
    let server = Arc::new(Server {
        database: Mutex::new(Database::open(&arguments.data)?),
        ready: AtomicBool::new(false),
        replayed: AtomicU64::new(0),
        socket,
    });
    let accepting = server.clone();
    std::thread::spawn(move || {
        for stream in local.incoming().flatten() {
            let server = accepting.clone();
            std::thread::spawn(move || {
                if let Ok(input) = stream.try_clone() {
                    talk(&server, input, stream, true);
                }
            });
        }
    });
    let purpose = server.database.lock().conf.purpose;
    recover(&server)?;
    if purpose != Purpose::Staging {
        server.database.lock().open_for_writes()?;
    }
    server.ready.store(true, Ordering::Release);
    if let Some(network) = network {
        let accepting = server.clone();
        std::thread::spawn(move || accept_network(&accepting, &network));
    }
    match purpose {
        Purpose::Staging => follow::run(&server.database),
        Purpose::Users => keep_tie(&server),
        Purpose::Private => loop {
            std::thread::park();
        },
    }
}

/// Replays what there is.
fn recover(server: &Server) -> io::Result<()> {
    loop {
        let mut database = server.database.lock();
        let more = database.replay(200)?;
        server.replayed.store(database.state.position, Ordering::Release);
        if !more {
            return Ok(());
        }
    }
}

/// Holds a connection to the database that this one is a replica of, for as long as it is one.
fn keep_tie(server: &Server) -> ! {
    let mut connection: Option<(String, TcpStream)> = None;
    loop {
        let wanted = server.database.lock().state.settings.get(REPLICA_OF).cloned();
        connection = connection.filter(|(uri, _)| wanted.as_ref() == Some(uri));
        if let (Some(uri), None) = (wanted, &connection)
            && let Ok(parsed) = url::Url::parse(&uri)
            && let (Some(host), Some(port)) = (parsed.host_str(), parsed.port())
        {
            connection = TcpStream::connect((host, port)).ok().map(|stream| (uri, stream));
        }
        SystemClock.sleep(TIE_PAUSE);
    }
}

fn accept_network(server: &Arc<Server>, network: &TcpListener) {
    for stream in network.incoming().flatten() {
        let server = server.clone();
        std::thread::spawn(move || {
            let _ = stream.set_nodelay(true);
            if let Ok(input) = stream.try_clone() {
                talk(&server, input, stream, false);
            }
        });
    }
}

/// What a connection may do.
struct Session {
    /// Through the socket: the engine, or whoever runs the server.
    local: bool,
    admitted: bool,
}

/// An answer: a line, and the bytes after it.
struct Answer(String, Vec<u8>);

impl Answer {
    fn ok(text: impl std::fmt::Display) -> Answer {
        Answer(format!("OK {text}"), Vec::new())
    }

    fn json(value: &impl serde::Serialize) -> io::Result<Answer> {
        Ok(Answer::ok(serde_json::to_string(value).map_err(io::Error::other)?))
    }
}

fn talk(server: &Server, input: impl Read, mut output: impl Write, local: bool) {
    let mut session = Session { local, admitted: local };
    let mut input = BufReader::new(input);
    let mut line = String::new();
    while input.read_line(&mut line).is_ok_and(|count| count > 0) {
        let asked = line.trim_end_matches('\n');
        let (answer, bytes) = match answer(server, &mut session, asked) {
            Ok(Answer(line, bytes)) => (line, bytes),
            Err(error) => (format!("ERR {error}"), Vec::new()),
        };
        let sent = output
            .write_all(answer.as_bytes())
            .and_then(|()| output.write_all(b"\n"))
            .and_then(|()| output.write_all(&bytes))
            .and_then(|()| output.flush());
        if asked == "SHUTDOWN" && answer.starts_with("OK") {
            let _ = std::fs::remove_file(&server.socket);
            std::process::exit(0);
        }
        if sent.is_err() {
            return;
        }
        line.clear();
    }
}

fn answer(server: &Server, session: &mut Session, line: &str) -> io::Result<Answer> {
    let mut words = line.splitn(4, ' ');
    let mut word = || words.next().unwrap_or_default();
    let (command, first, second, third) = (word(), word(), word(), word());
    if command == "PING" {
        let replayed = server.replayed.load(Ordering::Acquire);
        return Ok(match server.ready.load(Ordering::Acquire) {
            true => Answer::ok("ready"),
            false => Answer::ok(format_args!("recovering j{replayed}")),
        });
    }
    if !server.ready.load(Ordering::Acquire) {
        return Err(io::Error::other("the server is starting"));
    }
    let mut database = server.database.lock();
    if command == "LOGIN" {
        session.admitted |= database.state.admits(first, second);
        return Ok(match session.admitted {
            true => Answer::ok(""),
            false => Answer(format!("DENIED no login {first} with that secret"), Vec::new()),
        });
    }
    if !session.admitted {
        return Ok(Answer("DENIED log in first".to_owned(), Vec::new()));
    }
    match command {
        "SET" | "SETTING" | "CUT" | "MASK" | "GRANT"
            if database.conf.purpose == Purpose::Staging =>
        {
            Err(io::Error::other("a staging server takes no writes"))
        }
        "SET" if database.conf.read_only() => Err(io::Error::other("it is read-only")),
        "SET" | "SETTING" => {
            let kind = if command == "SET" { Kind::Data } else { Kind::Setting };
            let value =
                if third.is_empty() { second } else { &line[command.len() + first.len() + 2..] };
            let done = database.commit(kind, first, value)?;
            Ok(Answer::ok(format_args!("{} {} {}", done.number, done.end, done.time_us)))
        }
        "GET" => Ok(match database.state.data.get(first) {
            Some(value) => Answer::ok(value),
            None => Answer(format!("ERR no key {first}"), Vec::new()),
        }),
        "DUMP" => Answer::json(&database.state.data),
        "SETTINGS" => Answer::json(&(&database.state.settings, &database.conf.settings)),
        "POSITION" => Ok(Answer::ok(database.state.position)),
        "PROGRESS" => Answer::json(&(database.state.position, database.state.last_time_us)),
        "SHUTDOWN" | "CUT" | "MASK" | "GRANT" if !session.local => {
            Err(io::Error::other("that is for the server's own socket"))
        }
        "CUT" => Answer::json(&database.cut_ties()?),
        "MASK" => Answer::json(&database.mask(first, second)?),
        "GRANT" => Answer::json(&database.grant(first, second, third == "restore")?),
        "SHUTDOWN" => database.checkpoint().map(Answer::ok_of),
        _ => answer_receiver(&mut database, command, first, second, third),
    }
}

impl Answer {
    fn ok_of((): ()) -> Answer {
        Answer::ok("")
    }
}

/// What receivers of the journal ask.
fn answer_receiver(
    database: &mut Database,
    command: &str,
    first: &str,
    second: &str,
    third: &str,
) -> io::Result<Answer> {
    let number = |text: &str| {
        text.parse::<u64>().map_err(|_| io::Error::other(format!("{text} is no number")))
    };
    match command {
        "INFO" => {
            let since = SystemClock.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let state = &database.state;
            Answer::json(&(&state.identity, &state.version, since.as_micros() as i64))
        }
        "RESERVE" => Ok(Answer::ok(database.reserve(first)?)),
        "RELEASE" => database.set_reservation(first, None).map(Answer::ok_of),
        "RESERVATIONS" => Answer::json(database.reservations()),
        "CHECKPOINT" => database.checkpoint().map(Answer::ok_of),
        "COPY" => {
            let start = database.state.position;
            let bytes = database.copy()?;
            let line = format!("OK {} {start}", bytes.len());
            Ok(Answer(line, bytes))
        }
        "PULL" => match database.pull(number(first)?, second, number(third)?)? {
            Some(pulled) => {
                let line =
                    format!("OK {} {} {}", pulled.bytes.len(), pulled.flushed, pulled.clock_us);
                Ok(Answer(line, pulled.bytes))
            }
            None => Ok(Answer(format!("GONE the journal at j{first} is not kept"), Vec::new())),
        },
        _ => Err(io::Error::other(format!("{command} is not known"))),
    }
}

/// The socket of a runtime directory.
pub(crate) fn socket(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join(SOCKET)
}
