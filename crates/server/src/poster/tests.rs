use super::*;
use offshoot_os::{Clock, SystemClock};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

fn poster(roots: Option<PathBuf>) -> HttpPoster {
    HttpPoster { roots, within: Duration::from_secs(2) }
}

fn posting(url: String) -> Posting {
    let headers = vec![("webhook-id", "msg_1".to_owned())];
    Posting { url, headers, body: br#"{"type":"webhook.test"}"#.to_vec() }
}

/// Reads a request and answers it; returns what it read.
fn serve(mut stream: impl Read + Write, answer: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    while !text.ends_with("\"}") {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return text,
            Ok(len) => text.push_str(std::str::from_utf8(&buffer[..len]).unwrap()),
        }
    }
    let _ = stream.write_all(answer.as_bytes());
    let _ = stream.flush();
    text
}

/// A receiver of one message.
fn receiver(work: impl FnOnce(TcpStream) -> String + Send + 'static) -> (u16, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, std::thread::spawn(move || work(listener.accept().unwrap().0)))
}

#[test]
fn a_message_is_posted_as_it_is() {
    let answer = "HTTP/1.1 204 No Content\r\n\r\n";
    let (port, heard) = receiver(move |stream| serve(stream, answer));
    let sent = poster(None).post(&posting(format!("http://127.0.0.1:{port}/hook?team=a")));
    assert_eq!(sent, Ok(204));
    let heard = heard.join().unwrap();
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /hook?team=a HTTP/1.1\r\n"), "{head}");
    let head = head.to_lowercase();
    for line in [
        "content-type: application/json",
        "webhook-id: msg_1",
        "content-length: 23",
        concat!("user-agent: offshoot/", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(head.lines().any(|one| one == line), "{line}: {head}");
    }
    assert_eq!(body, r#"{"type":"webhook.test"}"#);
}

#[test]
fn a_redirect_is_an_answer_and_not_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    for status in [301, 302, 307, 308] {
        let port = elsewhere.local_addr().unwrap().port();
        let answer = format!(
            "HTTP/1.1 {status} Elsewhere\r\nlocation: http://127.0.0.1:{port}/\r\ncontent-length: 0\r\n\r\n"
        );
        let (port, heard) = receiver(move |stream| serve(stream, &answer));
        let sent = poster(None).post(&posting(format!("http://127.0.0.1:{port}/")));
        assert_eq!(sent, Ok(status));
        heard.join().unwrap();
    }
    assert!(elsewhere.accept().is_err(), "somebody was sent there");
}

#[test]
fn an_answer_that_has_no_end_is_not_read() {
    let (port, heard) = receiver(|mut stream| {
        let text = serve(&mut stream, "HTTP/1.1 200 OK\r\ncontent-length: 100000000000\r\n\r\n");
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let block = [b'x'; 1 << 16];
        for _ in 0..1000 {
            if stream.write_all(&block).is_err() {
                return text;
            }
        }
        panic!("all of it was read");
    });
    let sent = poster(None).post(&posting(format!("http://127.0.0.1:{port}/")));
    assert_eq!(sent, Ok(200));
    heard.join().unwrap();
}

#[test]
fn whoever_does_not_answer_is_not_waited_for() {
    let begun = SystemClock.elapsed();
    let (port, heard) = receiver(|mut stream| {
        let mut byte = [0];
        // Until it is given up.
        while stream.read(&mut byte).is_ok_and(|len| len > 0) {}
        String::new()
    });
    let sent = poster(None).post(&posting(format!("http://127.0.0.1:{port}/secret-path")));
    assert_eq!(sent, Err("no answer within 2 s".to_owned()));
    assert!(SystemClock.elapsed() - begun < Duration::from_secs(10));
    heard.join().unwrap();
    // One that sends a byte now and then is no better.
    let (port, heard) = receiver(|mut stream| {
        while stream.write_all(b"H").is_ok() {
            std::thread::sleep(Duration::from_millis(100));
        }
        String::new()
    });
    let begun = SystemClock.elapsed();
    let sent = poster(None).post(&posting(format!("http://127.0.0.1:{port}/secret-path")));
    assert!(sent.is_err(), "{sent:?}");
    assert!(SystemClock.elapsed() - begun < Duration::from_secs(10));
    heard.join().unwrap();
}

#[test]
fn a_reason_does_not_show_the_address() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let sent = poster(None).post(&posting(format!("http://127.0.0.1:{free}/secret-path")));
    assert_eq!(sent, Err("nothing listens there".to_owned()));
    let (port, heard) = receiver(|stream| serve(stream, "SSH-2.0-OpenSSH\r\n\r\n"));
    let sent = poster(None).post(&posting(format!("http://127.0.0.1:{port}/secret-path")));
    let why = sent.unwrap_err();
    assert!(!why.contains("secret-path") && !why.contains("OpenSSH"), "{why}");
    heard.join().unwrap();
    let why = poster(None).post(&posting("https://127.0.0.1:1/secret-path".into())).unwrap_err();
    assert!(why.contains("no certificates to trust"), "{why}");
}

/// An authority, and a receiver of one message by TLS with its certificate for a name.
fn by_tls(name: &str) -> (tempfile::NamedTempFile, u16, JoinHandle<String>) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority.pem()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    let (port, heard) = receiver(move |stream| {
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        serve(StreamOwned::new(connection, stream), "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    });
    (file, port, heard)
}

#[test]
fn a_certificate_must_be_vouched_for_and_of_the_right_name() {
    let (roots, port, heard) = by_tls("localhost");
    let sent =
        poster(Some(roots.path().into())).post(&posting(format!("https://localhost:{port}/")));
    assert_eq!(sent, Ok(200));
    assert!(heard.join().unwrap().contains("webhook.test"));

    let (_, port, heard) = by_tls("localhost");
    let sent =
        poster(Some(roots.path().into())).post(&posting(format!("https://localhost:{port}/")));
    let why = sent.unwrap_err();
    assert!(why.contains("certificate is not trusted"), "{why}");
    assert_eq!(heard.join().unwrap(), "", "nothing was told to it");

    let (roots, port, heard) = by_tls("ci.example");
    let sent =
        poster(Some(roots.path().into())).post(&posting(format!("https://localhost:{port}/")));
    let why = sent.unwrap_err();
    assert!(why.contains("certificate is not trusted"), "{why}");
    assert_eq!(heard.join().unwrap(), "", "nothing was told to it");
}
