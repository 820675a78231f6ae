//! Connections that do nothing, come in masses, or ask for what is not theirs: each has an end, and others are answered
//! meanwhile.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests measure time themselves

mod stand_in;

use offshoot_server::{HttpServer, Identity, Listen, LocalSocket, Token};
use stand_in::StandIn;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest that the server may take to end a connection that does nothing: its limits are 10 s for headers and 20 s
/// for a body.
const PATIENCE: Duration = Duration::from_secs(60);

struct Server {
    http: HttpServer,
    token: Token,
    pool: tempfile::TempDir,
}

fn start() -> Server {
    let pool = tempfile::tempdir().unwrap();
    let token = Token::random();
    let local = Some(LocalSocket::of_pool(pool.path(), None).unwrap());
    let listen = Listen {
        local,
        names: vec!["engine.example".into()],
        ..Listen::from(SocketAddr::from(([127, 0, 0, 1], 0)))
    };
    let http = HttpServer::start(listen, Arc::new(StandIn::default()), token.clone()).unwrap();
    Server { http, token, pool }
}

impl Server {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.http.local_addr()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn head(&self, method: &str, path: &str, more: &str) -> String {
        let token = self.token.reveal();
        format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n{more}\r\n"
        )
    }

    fn status_by_socket(&self) -> u16 {
        let socket = UnixStream::connect(self.pool.path().join("engine.socket")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        ask(socket, "GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    }

    fn status_by_tcp(&self, stream: TcpStream) -> u16 {
        ask(stream, &self.head("GET", "/api/v1/status", "connection: close\r\n"))
    }
}

/// The status of the answer to a request; 0 if there was none.
fn ask(mut stream: impl Read + Write, request: &str) -> u16 {
    // The server may have closed the connection before.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
}

/// Waits for the other side to close the connection; what it said before.
fn wait_closed(mut stream: TcpStream) -> (String, Duration) {
    let begun = Instant::now();
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("still open: {error}"),
        _ => (String::from_utf8_lossy(&said).into_owned(), begun.elapsed()),
    }
}

/// Sends one byte now and then, for as long as the other side takes them.
fn drip(stream: &TcpStream) {
    let mut stream = stream.try_clone().unwrap();
    std::thread::spawn(move || {
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(500));
        }
    });
}

#[test]
fn connections_that_do_nothing_or_next_to_nothing_are_ended() {
    let server = start();
    let silent = server.connect();
    let mut dripping_head = server.connect();
    dripping_head.write_all(b"GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nx: ").unwrap();
    drip(&dripping_head);
    let mut dripping_body = server.connect();
    let body = "content-type: application/json\r\ncontent-length: 1000\r\n";
    dripping_body.write_all(server.head("POST", "/api/v1/snapshots", body).as_bytes()).unwrap();
    drip(&dripping_body);
    // A connection that was used and kept.
    let mut kept = server.connect();
    kept.write_all(server.head("GET", "/api/v1/status", "").as_bytes()).unwrap();
    let ends: Vec<_> = [silent, dripping_head, dripping_body, kept]
        .map(|stream| std::thread::spawn(move || wait_closed(stream)))
        .into_iter()
        .map(|waiting| waiting.join().unwrap())
        .collect();
    for (index, (said, after)) in ends.iter().enumerate() {
        assert!(*after < Duration::from_secs(40), "{index}: {after:?}");
        match index {
            2 => assert!(said.starts_with("HTTP/1.1 408"), "{said}"),
            3 => assert!(said.starts_with("HTTP/1.1 200"), "{said}"),
            _ => assert!(!said.contains("200"), "{said}"),
        }
    }
    server.http.stop();
}

#[test]
fn a_handshake_that_is_not_done_is_ended_and_the_clear_is_not_answered() {
    let pool = tempfile::tempdir().unwrap();
    let tls = Some(Identity::of_pool(pool.path(), &[]).unwrap());
    let listen = Listen { tls, ..Listen::from(SocketAddr::from(([127, 0, 0, 1], 0))) };
    let http = HttpServer::start(listen, Arc::new(StandIn::default()), Token::random()).unwrap();
    let server = Server { http, token: Token::random(), pool };
    let (silent, clear) = (server.connect(), server.connect());
    assert_eq!(server.status_by_tcp(clear), 0);
    let (said, after) = wait_closed(silent);
    assert!(said.is_empty() && after < Duration::from_secs(40), "{after:?}: {said}");
    server.http.stop();
}

#[test]
fn connections_of_one_caller_leave_places_for_others() {
    let server = start();
    let address = server.http.local_addr();
    let idle: Vec<TcpStream> =
        (0..300).map_while(|_| TcpStream::connect_timeout(&address, PATIENCE).ok()).collect();
    assert_eq!(idle.len(), 300);
    assert_eq!(server.status_by_tcp(server.connect()), 0, "this caller has taken his places");
    assert_eq!(server.status_by_socket(), 200);
    let other = from([127, 0, 0, 2].into(), address);
    assert_eq!(server.status_by_tcp(other), 200, "another address");
    drop(idle);
    let begun = Instant::now();
    while server.status_by_tcp(server.connect()) != 200 {
        assert!(begun.elapsed() < PATIENCE, "places are given back");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.http.stop();
}

/// A connection that comes from this address.
fn from(source: IpAddr, to: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &SocketAddr::new(source, 0)).unwrap();
    connect(&socket, &to).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn who_guesses_tokens_is_told_to_stop_and_a_right_one_is_answered_all_the_same() {
    let server = start();
    let guess = |n: u32| {
        let guessed = format!("{n:064x}");
        let request = format!(
            "GET /api/v1/status HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {guessed}\r\n\
             connection: close\r\n\r\n"
        );
        ask(server.connect(), &request)
    };
    let answers: Vec<u16> = (0..60).map(guess).collect();
    assert!(answers.iter().all(|status| [401, 429].contains(status)), "{answers:?}");
    assert_eq!(answers[..20], [401; 20], "a few mistakes are nothing");
    assert!(answers[20..].contains(&429), "{answers:?}");
    assert_eq!(server.status_by_tcp(server.connect()), 200);
    server.http.stop();
}

#[test]
fn a_page_whose_name_leads_here_reaches_nothing() {
    let server = start();
    let of_host = |host: &str| {
        let token = server.token.reveal();
        let request = format!(
            "GET /api/v1/openapi.json HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             connection: close\r\n\r\n"
        );
        ask(server.connect(), &request)
    };
    let port = server.http.local_addr().port();
    assert_eq!(of_host(&format!("evil.example:{port}")), 421);
    for right in ["localhost", "127.0.0.1:7640", "[::1]:1", "engine.example:443"] {
        assert_eq!(of_host(right), 200, "{right}");
    }
    server.http.stop();
}

#[test]
fn headers_have_an_end() {
    let server = start();
    let many = "x-more: yes\r\n".repeat(100);
    let long = format!("x-long: {}\r\n", "y".repeat(40_000));
    for more in [many, long] {
        let status = ask(server.connect(), &server.head("GET", "/api/v1/status", &more));
        assert!(status == 431 || status == 0, "{status}");
    }
    assert_eq!(server.status_by_tcp(server.connect()), 200);
    server.http.stop();
}

#[test]
fn the_socket_is_the_owner_s_alone_and_goes_with_the_server() {
    use std::os::unix::fs::PermissionsExt;
    let server = start();
    let path = server.pool.path().join("engine.socket");
    let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(server.http.socket(), Some(path.as_path()));
    assert_eq!(server.status_by_socket(), 200);
    server.http.stop();
    assert!(!path.exists());
}
