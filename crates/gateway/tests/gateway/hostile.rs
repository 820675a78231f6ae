//! Whatever is sent to a gateway, it goes on.

use super::cluster::{connect, newest, start, text};
use offshoot_gateway::{Reply, Why};
use offshoot_os::random_bytes;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

fn dial(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(LIMIT).unwrap();
    stream.set_write_timeout(LIMIT).unwrap();
    stream
}

/// Introduces itself as a role.
fn introduce(port: u16, role: &str) -> TcpStream {
    let mut stream = dial(port);
    let parameters = format!("\0\x03\0\0user\0{role}\0database\0postgres\0\0");
    let mut packet = (parameters.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend_from_slice(parameters.as_bytes());
    stream.write_all(&packet).unwrap();
    stream
}

/// A login of the role that needs no password, up to ReadyForQuery.
fn log_in(port: u16) -> TcpStream {
    let mut stream = introduce(port, "trusty");
    while frame(&mut stream).0 != b'Z' {}
    stream
}

fn frame(stream: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut header = [0; 5];
    stream.read_exact(&mut header).unwrap();
    let length = u32::from_be_bytes(header[1..].try_into().unwrap()) as usize;
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).unwrap();
    (header[0], body)
}

/// Everything up to the end of the stream, however it ends.
fn rest(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_does_not_end_it() {
    let (_cluster, gateway) = start(&newest()).await;
    for round in 0..200_usize {
        let garbage = random_bytes::<600>();
        let mut client = dial(gateway.port);
        // Some of it looks right at first.
        let begin: &[u8] = match round % 5 {
            0 => b"",
            1 => b"\0\0\0\x08\x04\xd2\x16\x2f",
            2 => b"\0\0\x02\0\0\x03\0\0",
            3 => b"\0\0\0\x10\x04\xd2\x16\x2e",
            _ => b"\0\0\0\x25\0\x03\0\0user\0trusty\0database\0postgres\0\0",
        };
        let _ = client.write_all(begin).and_then(|()| client.write_all(&garbage[..round * 3]));
        let mut control = UnixStream::connect(&gateway.socket).unwrap();
        control.set_read_timeout(LIMIT).unwrap();
        let _ = control.write_all(&garbage).and_then(|()| control.write_all(b"\n"));
        let _ = control.shutdown(std::net::Shutdown::Write);
        rest(&mut control);
    }
    // No line is longer than that.
    let mut control = UnixStream::connect(&gateway.socket).unwrap();
    control.set_read_timeout(LIMIT).unwrap();
    let _ = control.write_all(&vec![b' '; 5 << 20]);
    assert!(rest(&mut control).is_empty());
    let client = connect(gateway.port, "app").await.client;
    assert_eq!(text(&client, "SELECT 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_after_the_login_ends_that_session_alone() {
    let (_cluster, gateway) = start(&newest()).await;
    for _ in 0..50 {
        let mut client = log_in(gateway.port);
        let _ = client.write_all(&random_bytes::<2000>());
        let _ = client.shutdown(std::net::Shutdown::Write);
        rest(&mut client);
    }
    gateway.wait_for("the sessions to end", |status| status.sessions == 0).await;
    let client = connect(gateway.port, "app").await.client;
    assert_eq!(text(&client, "SELECT 1").await, "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_length_that_cannot_be_ends_the_session() {
    let (_cluster, gateway) = start(&newest()).await;
    for header in [b"Q\xff\xff\xff\xff", b"Q\x7f\xff\xff\xff", b"Q\0\0\0\x03", b"Q\0\0\0\0"] {
        let mut client = log_in(gateway.port);
        client.write_all(header).unwrap();
        let said = rest(&mut client);
        assert!(String::from_utf8_lossy(&said).contains("08P01"), "{said:?}");
    }
    // A long one is at work for as long as it takes.
    let mut client = log_in(gateway.port);
    client.write_all(b"Q\x05\xff\xff\xffSELECT").unwrap();
    gateway.wait_for("work", |status| status.sessions == 1 && status.idle_ms == 0).await;
    let status = gateway.hold(100, Why::Change);
    assert_eq!((status.sessions, status.parked), (0, 0));
    assert!(String::from_utf8_lossy(&rest(&mut client)).contains("57P01"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_queries_are_parked_between_two() {
    let (mut cluster, gateway) = start(&newest()).await;
    let mut client = log_in(gateway.port);
    let query = |sql: &str| {
        let mut bytes = vec![b'Q'];
        bytes.extend((sql.len() as u32 + 5).to_be_bytes());
        bytes.extend_from_slice(sql.as_bytes());
        bytes.push(0);
        bytes
    };
    client.write_all(&query("SELECT pg_sleep(0.5)")).unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let hold = tokio::task::spawn_blocking({
        let mut control = gateway.control();
        let hold = offshoot_gateway::Hold { grace_ms: 5000, why: Why::Change };
        move || control.ask(&offshoot_gateway::Request::Hold(hold), LIMIT.unwrap())
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    // All of these come while it holds and the first is still running.
    let many: Vec<u8> = (0..300).flat_map(|id| query(&format!("SELECT {id}"))).collect();
    client.write_all(&many).unwrap();
    let status = hold.await.unwrap().unwrap();
    assert_eq!((status.sessions, status.parked), (1, 1));
    cluster.stop();
    cluster.run().await;
    gateway.serve(&cluster).await;
    let (mut answers, mut ready) = (Vec::new(), 0);
    while ready < 301 {
        let (tag, body) = frame(&mut client);
        ready += usize::from(tag == b'Z');
        if tag == b'D' {
            answers.push(String::from_utf8_lossy(&body[6..]).into_owned());
        }
    }
    let expected: Vec<String> = (0..300).map(|id| id.to_string()).collect();
    assert_eq!(answers[1..], expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_silent_clients_harm_nobody() {
    let (_cluster, gateway) = start(&newest()).await;
    let silent: Vec<TcpStream> = (0..300).map(|_| dial(gateway.port)).collect();
    let mut slow = dial(gateway.port);
    slow.write_all(b"\0\0\x02").unwrap();
    // One that does not read its answers is ended when the grace is over.
    let mut deaf = log_in(gateway.port);
    let sql = b"SELECT repeat('x', 100000000)\0";
    deaf.write_all(&[&b"Q"[..], &(sql.len() as u32 + 4).to_be_bytes(), sql].concat()).unwrap();
    let client = connect(gateway.port, "app").await.client;
    assert_eq!(text(&client, "SELECT 1").await, "1");
    let status = gateway.hold(300, Why::Change);
    assert_eq!((status.sessions, status.parked, status.waiting), (1, 1, 0));
    drop((silent, slow, deaf));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_that_does_not_go_on_is_not_waited_for_long() {
    let (_cluster, gateway) = start(&newest()).await;
    let mut undecided = introduce(gateway.port, "app");
    assert_eq!(frame(&mut undecided).0, b'R');
    let status = gateway.hold(300, Why::Change);
    assert_eq!((status.sessions, status.parked, status.waiting), (0, 0, 0));
    assert!(String::from_utf8_lossy(&rest(&mut undecided)).contains("57P01"));
    // One that comes while it holds waits, and may leave.
    let late = introduce(gateway.port, "app");
    gateway.wait_for("it to wait", |status| status.waiting == 1).await;
    drop(late);
    gateway.wait_for("it to leave", |status| status.waiting == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_protocol_passes_with_its_longer_keys() {
    let (mut cluster, gateway) = start(&newest()).await;
    let mut client = dial(gateway.port);
    let startup = b"\0\0\0\x27\0\x03\0\x02user\0trusty\0database\0postgres\0\0";
    client.write_all(startup).unwrap();
    let mut key = 0;
    loop {
        let (tag, body) = frame(&mut client);
        assert_ne!(tag, b'E', "{}", String::from_utf8_lossy(&body));
        match tag {
            b'K' => key = body.len(),
            b'Z' => break,
            _ => {}
        }
    }
    // PostgreSQL 18 makes one of 32 bytes, those before say that they know 3.0 alone.
    assert!(matches!(key, 8 | 36), "{key}");
    assert_eq!(gateway.hold(1000, Why::Change).parked, 1);
    cluster.stop();
    cluster.run().await;
    gateway.serve(&cluster).await;
    client.write_all(b"Q\0\0\0\x0dSELECT 1\0").unwrap();
    while frame(&mut client).0 != b'Z' {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_control_socket_says_what_is_wrong() {
    let (_cluster, gateway) = start(&newest()).await;
    let mut control = UnixStream::connect(&gateway.socket).unwrap();
    control.set_read_timeout(LIMIT).unwrap();
    let tls = r#"{"do":"serve","port":1,"tls":{"certificate":"x","key":"s3cret"},"allow":[],"logins":{}}"#;
    control.write_all(format!("nonsense\n{tls}\n{{\"do\":\"status\"}}\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(control).lines();
    for refused in [true, true, false] {
        let line = lines.next().unwrap().unwrap();
        assert!(!line.contains("s3cret"));
        let reply: Reply = serde_json::from_str(&line).unwrap();
        assert_eq!(matches!(reply, Reply::Refused { .. }), refused, "{line}");
    }
}
