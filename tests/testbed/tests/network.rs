//! An engine that answers off loopback: by TLS alone, to clients that know its certificate.
#![allow(clippy::unwrap_used)]

use offshoot_api::Status;
use offshoot_os::process::{Spec, run};
use offshoot_rig::{Engine, EngineOptions, Scratch};
use offshoot_testbed::binary;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn start(scratch: &Scratch) -> Engine {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    // The last of several counts.
    options.arguments =
        ["--listen", "0.0.0.0:0", "--host-name", "engine.example"].map(String::from).into();
    Engine::start(scratch, options).unwrap()
}

/// A user on another host, who has a home of its own.
struct Elsewhere<'a> {
    home: &'a Path,
    url: String,
    token: String,
}

impl Elsewhere<'_> {
    fn runs(&self, arguments: &[&str]) -> Value {
        let spec = Spec::new(binary())
            .args(arguments)
            .arg("--json")
            .env("HOME", self.home)
            .env("XDG_CONFIG_HOME", self.home.join("config"))
            .env("OFFSHOOT_SERVER", &self.url)
            .env("OFFSHOOT_TOKEN_FILE", &self.token);
        let output = run(&spec, PATIENCE).unwrap();
        serde_json::from_str(&output.stdout_text())
            .unwrap_or_else(|error| panic!("{error}: {}", output.stderr_text()))
    }

    #[track_caller]
    fn is_refused(&self, arguments: &[&str]) -> String {
        let refused = self.runs(arguments);
        assert_eq!(refused["error"]["code"], "unauthorized", "{refused}");
        refused["error"]["message"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_client_elsewhere_pins_the_certificate_and_takes_no_other() {
    let scratch = Scratch::new("network").unwrap();
    let mut engine = start(&scratch);
    let status: Status = engine.ask(["status"]).unwrap();
    let fingerprint = status.tls_fingerprint.clone().unwrap();
    let port = status.listen.rsplit_once(':').unwrap().1;
    let elsewhere = Elsewhere {
        home: scratch.path(),
        url: format!("https://127.0.0.1:{port}"),
        token: engine.pool().join("token").display().to_string(),
    };
    let url = elsewhere.url.clone();

    let message = elsewhere.is_refused(&["status"]);
    assert!(message.contains("is not known"), "{message}");
    elsewhere.is_refused(&["login", &url]);
    let wrong = format!("sha256:{}", "0".repeat(64));
    assert!(elsewhere.is_refused(&["login", &url, "--fingerprint", &wrong]).contains(&fingerprint));
    elsewhere.is_refused(&["status"]);
    let known = elsewhere.runs(&["login", &url, "--fingerprint", &fingerprint]);
    assert_eq!(known["fingerprint"], fingerprint.as_str());
    assert_eq!(elsewhere.runs(&["status"])["pid"], status.pid);
    let file = scratch.path().join("config/offshoot/known_engines");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);

    // In the clear nothing is answered.
    let mut clear = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
    clear.set_read_timeout(Some(PATIENCE)).unwrap();
    clear.write_all(b"GET /api/v1/openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = clear.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP/1.1 200"));

    // It is the same after a restart; another one in its place is refused before anything is sent.
    engine.stop().unwrap();
    for name in ["tls.cert", "tls.key"] {
        std::fs::rename(engine.pool().join(name), scratch.path().join(name)).unwrap();
    }
    engine.options.arguments[1] = format!("0.0.0.0:{port}");
    engine.restart().unwrap();
    let message = elsewhere.is_refused(&["status"]);
    assert!(message.contains("is not what the engine is known by"), "{message}");
    elsewhere.is_refused(&["login", &url]);
    engine.stop().unwrap();
    let files = ["tls.cert", "tls.key"].map(|name| scratch.path().join(name).display().to_string());
    engine.options.arguments.extend([
        "--tls-cert".into(),
        files[0].clone(),
        "--tls-key".into(),
        files[1].clone(),
    ]);
    engine.restart().unwrap();
    assert!(elsewhere.runs(&["status"])["pid"].is_number());
    engine.stop().unwrap();
}

#[test]
fn a_program_that_is_no_engine_is_told_nothing() {
    let scratch = Scratch::new("stranger").unwrap();
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", stranger.local_addr().unwrap());
    let known = scratch.path().join("config/offshoot");
    std::fs::create_dir_all(&known).unwrap();
    let line = format!("{} sha256:{}\n", stranger.local_addr().unwrap(), "0".repeat(64));
    std::fs::write(known.join("known_engines"), line).unwrap();
    let token = scratch.path().join("token");
    std::fs::write(&token, "a-token-that-nobody-else-may-see").unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = stranger.accept().unwrap();
        let mut heard = vec![0; 4096];
        let count = stream.read(&mut heard).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        heard.truncate(count);
        heard
    });
    let elsewhere = Elsewhere { home: scratch.path(), url, token: token.display().to_string() };
    let refused = elsewhere.runs(&["status"]);
    assert_eq!(refused["error"]["code"], "engine_unreachable", "{refused}");
    let heard = heard.join().unwrap();
    assert!(!String::from_utf8_lossy(&heard).contains("nobody-else"));
}
