//! The toy passes the suite of every connector.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::too_many_lines)]

use offshoot_conformance::{Content, Harness, Production, Setting, conformance, until};
use offshoot_connector::{Connector, ServerSpec};
use offshoot_domain::ConnectorState;
use offshoot_os::process::{Child, Sink, Spec};
use offshoot_toy::{BEGIN, Client, SEGMENT_BYTES, Toy, create, segment_name};
use offshoot_types::LogPosition;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const PROGRAM: &str = env!("CARGO_BIN_EXE_toyd");
const BOSS: &str = "boss";
const SECRET: &str = "s3cret";

conformance!(ToyHarness);

struct ToyHarness;

/// A source in a directory.
struct Source {
    directory: PathBuf,
    port: u16,
    child: Option<Child>,
}

fn uri(login: &str, secret: &str, port: u16) -> String {
    format!("toy://{login}:{secret}@127.0.0.1:{port}/main")
}

fn ask(socket: &Path, line: &str) -> Result<String, String> {
    Client::local(socket).and_then(|mut client| client.ask(line)).map_err(|e| e.to_string())
}

fn parse(text: &str) -> Content {
    serde_json::from_str(text).unwrap()
}

impl Harness for ToyHarness {
    fn connector(&self) -> Arc<dyn Connector> {
        Arc::new(Toy::new(PROGRAM))
    }

    fn produce(&self, directory: &Path) -> Box<dyn Production> {
        create(&directory.join("data"), BOSS, SECRET).unwrap();
        let port = offshoot_os::unused_port().unwrap();
        let mut source = Source { directory: directory.to_owned(), port, child: None };
        source.start();
        Box::new(source)
    }

    fn content(&self, spec: &ServerSpec) -> Result<Content, String> {
        ask(&spec.runtime_dir.join("s"), "DUMP").map(|text| parse(&text))
    }

    fn content_by(&self, uri: &str) -> Result<Content, String> {
        let mut client = Client::open(uri).map_err(|e| e.to_string())?;
        client.ask("DUMP").map(|text| parse(&text)).map_err(|e| e.to_string())
    }

    fn put_by(&self, uri: &str, key: &str, value: &str) -> Result<(), String> {
        let mut client = Client::open(uri).map_err(|e| e.to_string())?;
        client.ask(&format!("SET {key} {value}")).map(drop).map_err(|e| e.to_string())
    }

    fn ties(&self, spec: &ServerSpec) -> Vec<String> {
        let settings = ask(&spec.runtime_dir.join("s"), "SETTINGS").unwrap();
        let (data, _): (BTreeMap<String, String>, BTreeMap<String, String>) =
            serde_json::from_str(&settings).unwrap();
        data.into_iter().filter(|(name, _)| name == "replica_of").map(|(_, uri)| uri).collect()
    }

    fn settings(&self) -> (Setting, Setting) {
        (("checkpoint_bytes", "10000"), ("colour", "blue"))
    }

    fn masking_rules(&self) -> Option<&'static str> {
        Some("person")
    }

    fn damage(&self, data_dir: &Path) {
        let path = data_dir.join("state");
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }

    fn log_byte(&self, _: &ConnectorState, _: &Path, position: LogPosition) -> (String, u64) {
        assert!(position.0 >= BEGIN);
        (segment_name(position.0 / SEGMENT_BYTES), position.0 % SEGMENT_BYTES)
    }
}

impl Source {
    fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    fn ask(&self, line: &str) -> String {
        ask(&self.socket(), line).unwrap()
    }
}

impl Production for Source {
    fn uri(&self, port: Option<u16>) -> String {
        uri(BOSS, SECRET, port.unwrap_or(self.port))
    }

    fn wrong_uri(&self) -> String {
        uri(BOSS, "guess", self.port)
    }

    fn uri_at(&self, port: u16) -> String {
        uri(BOSS, SECRET, port)
    }

    fn commit(&mut self, key: &str, value: &str) -> String {
        self.ask(&format!("SET {key} {value}")).split(' ').next().unwrap().to_owned()
    }

    fn content(&mut self) -> Content {
        parse(&self.ask("DUMP"))
    }

    fn tie_to(&mut self, port: u16) {
        self.ask(&format!("SETTING replica_of {}", uri("replica", "secret", port)));
    }

    fn reservations(&mut self) -> Vec<String> {
        let all: BTreeMap<String, u64> = serde_json::from_str(&self.ask("RESERVATIONS")).unwrap();
        all.into_keys().collect()
    }

    fn drop_log(&mut self) {
        self.ask("CHECKPOINT");
    }

    fn stop(&mut self, crash: bool) {
        let mut child = self.child.take().unwrap();
        if !crash {
            self.ask("SHUTDOWN");
            assert!(child.wait_timeout(offshoot_conformance::PATIENCE).unwrap().is_some());
        }
        child.kill_group();
    }

    fn start(&mut self) {
        let log = Sink::File(self.directory.join("log"));
        let spec = Spec::new(PROGRAM)
            .args(["--data".as_ref(), self.directory.join("data").as_os_str()])
            .args(["--runtime".as_ref(), self.directory.as_os_str()])
            .args(["--port", &self.port.to_string()])
            .stderr(log)
            .die_with_parent(true);
        self.child = Some(spec.spawn().unwrap());
        until("the source answers", || {
            ask(&self.socket(), "PING").is_ok_and(|answer| answer == "ready")
        });
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill_group();
        }
    }
}
