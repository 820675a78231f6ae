//! Webhooks of a real engine: receivers that are away, engines that are killed, and what is told in the end. The receivers
//! and the check of signatures are written here, from the specification.
#![allow(clippy::unwrap_used)]

use jiff::Timestamp;
use offshoot_catalog::{Catalog, Happening, JobState, Keyring, SecretKey};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{CommandError, Engine, EngineOptions, Scratch, SourceOptions, find_newest};
use offshoot_testbed::{PATIENCE, Testbed, binary, wait_until};
use offshoot_types::JobId;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The secret of the specification's own example.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Another one.
const SECOND: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

/// A request as it came.
#[derive(Clone)]
struct Heard {
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn kind(&self) -> String {
        self.json()["type"].as_str().unwrap().to_owned()
    }

    fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }

    /// Whether it was signed with this secret.
    fn is_signed_with(&self, secret: &str) -> bool {
        let key = decoded(secret.strip_prefix("whsec_").unwrap());
        let timestamp = &self.headers["webhook-timestamp"];
        let signed = [format!("{}.{timestamp}.", self.id()).as_bytes(), &self.body].concat();
        let all = self.headers["webhook-signature"].split(' ');
        all.map(|one| decoded(one.strip_prefix("v1,").unwrap()))
            .any(|one| one == hmac(&key, &signed))
    }
}

/// RFC 2104.
fn hmac(key: &[u8], text: &[u8]) -> Vec<u8> {
    assert!(key.len() <= 64);
    let padded = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::digest([padded(0x36).as_slice(), text].concat());
    Sha256::digest([padded(0x5c).as_slice(), &inner].concat()).to_vec()
}

/// RFC 4648.
fn decoded(text: &str) -> Vec<u8> {
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for digit in text.trim_end_matches('=').chars() {
        bits = bits << 6 | digits.find(digit).expect("a digit of base64") as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}

/// A small server of HTTP that takes what it hears, but perhaps not at first.
struct Receiver {
    at: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    fn at(port: u16) -> Receiver {
        Receiver::refusing(port, 0)
    }

    /// One that answers the first so many messages that something is wrong.
    fn refusing(port: u16, mut first: usize) -> Receiver {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let at = listener.local_addr().unwrap();
        let (heard, ends) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (kept, end) = (heard.clone(), ends.clone());
        let thread = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if end.load(Ordering::SeqCst) {
                    return;
                }
                let status = if first > 0 { "500 Trouble" } else { "204 No Content" };
                first = first.saturating_sub(1);
                kept.lock().unwrap().extend(take(stream, status));
            }
        });
        Receiver { at, heard, ends, thread: Some(thread) }
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.at)
    }

    /// What was heard so far, each message once.
    fn messages(&self) -> Vec<Heard> {
        let mut once: Vec<Heard> = Vec::new();
        for heard in self.heard.lock().unwrap().iter() {
            match once.iter().find(|one| one.id() == heard.id()) {
                Some(one) => assert_eq!(one.body, heard.body, "said twice, and not the same"),
                None => once.push(heard.clone()),
            }
        }
        once
    }

    fn wait_for(&self, what: &str, is_it: impl Fn(&Heard) -> bool) -> Heard {
        let mut found = None;
        wait_until(what, PATIENCE, || {
            found = self.messages().into_iter().find(&is_it);
            Ok(found.is_some())
        })
        .unwrap();
        found.unwrap()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.at);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads one request and answers it.
fn take(mut stream: TcpStream, status: &str) -> Option<Heard> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
            let headers: BTreeMap<String, String> = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect();
            let body = &bytes[end + 4..];
            if body.len() == headers["content-length"].parse::<usize>().unwrap() {
                let body = body.to_vec();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).ok()?;
                return Some(Heard { headers, body });
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(len) => bytes.extend(&buffer[..len]),
        }
    }
}

fn start() -> (Scratch, Engine) {
    let scratch = Scratch::new("webhooks").unwrap();
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    let engine = Engine::start(&scratch, options).unwrap();
    (scratch, engine)
}

fn run(engine: &Engine, line: &str) -> Result<Value, CommandError> {
    engine.command(line.split(' '))
}

/// A file that only its owner reads.
fn secret_file(scratch: &Scratch, text: &str) -> PathBuf {
    let file = scratch.path().join("ci.secret");
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file
}

fn faults(engine: &Engine) -> Vec<String> {
    let status = run(engine, "status").unwrap();
    let all = status["faults"].as_array().unwrap().iter();
    all.map(|fault| fault["message"].as_str().unwrap().to_owned()).collect()
}

fn has(directory: &Path, text: &str) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let is_file = entry.file_type().unwrap().is_file();
        is_file
            && memchr::memmem::find(&std::fs::read(entry.path()).unwrap(), text.as_bytes())
                .is_some()
    })
}

/// Neither what is kept nor what is said shows a secret.
fn shows_nothing_of(engine: &Engine, secret: &str) {
    let text = secret.strip_prefix("whsec_").unwrap();
    assert!(!has(engine.pool(), text), "in the pool");
    assert!(!std::fs::read_to_string(engine.log()).unwrap().contains(text), "in the log");
    assert!(!run(engine, "webhook list").unwrap().to_string().contains(text));
    assert!(!run(engine, "audit").unwrap().to_string().contains(text));
}

#[test]
fn who_is_away_is_told_later_and_by_the_next_engine() {
    let (scratch, mut engine) = start();
    let other = Receiver::refusing(0, 2);
    let port = {
        let away = TcpListener::bind("127.0.0.1:0").unwrap();
        away.local_addr().unwrap().port()
    };
    let file = secret_file(&scratch, SECRET);
    let url = format!("http://127.0.0.1:{port}/hook");
    let add = format!("webhook add ci --url {url} --secret-file {}", file.display());
    let added = run(&engine, &add).unwrap();
    assert_eq!((&added["secret"], &added["events"][0]), (&Value::Null, &"*".into()), "{added}");
    let add = format!("webhook add other --url {} --events job.*.done,fault.*", other.url());
    let added = run(&engine, &add).unwrap();
    let made = added["secret"].as_str().expect("its secret is shown once").to_owned();

    // Who is away holds up nobody.
    run(&engine, "pool reclaim").unwrap();
    let done = other.wait_for("the end of the job", |one| one.kind() == "job.pool_reclaim.done");
    assert!(done.is_signed_with(&made) && !done.is_signed_with(SECRET));
    let said = done.json();
    assert_eq!(said["data"]["state"], "done", "{said}");
    assert_eq!(said["data"]["object"], "pool", "{said}");
    assert!(said["data"]["job"].as_str().unwrap().starts_with("job-"), "{said}");
    assert_eq!(done.headers["content-type"], "application/json");

    let again = || Ok(other.heard.lock().unwrap().len() >= 3);
    wait_until("what was refused is told again", PATIENCE, again).unwrap();

    // It becomes a fault, of which the other one hears.
    let is_of_ci = |one: &Heard| one.json()["data"]["topic"] == "webhook ci";
    let raised = other.wait_for("the fault of ci", is_of_ci);
    assert_eq!(raised.kind(), "fault.raised");
    let fault = faults(&engine).into_iter().find(|fault| fault.contains("'ci'")).unwrap();
    assert!(fault.contains("nothing listens there"), "{fault}");
    assert!(!fault.contains("/hook"), "{fault}");
    let shown = run(&engine, "webhook show ci").unwrap();
    assert_eq!((&shown["state"], &shown["waiting"]), (&"failing".into(), &1.into()), "{shown}");
    assert!(shown.get("secret").is_none(), "{shown}");

    engine.kill().unwrap();
    let ci = Receiver::at(port);
    engine.restart().unwrap();
    let late = ci.wait_for("what was not told", |_| true);
    assert_eq!(late.id(), done.id(), "the same message, under the same id");
    assert_eq!(late.json(), done.json());
    assert!(late.is_signed_with(SECRET) && !late.is_signed_with(&made));
    let cleared = |one: &Heard| one.kind() == "fault.cleared" && is_of_ci(one);
    other.wait_for("that ci is well", cleared);
    assert!(faults(&engine).iter().all(|fault| !fault.contains("'ci'")));
    let is_told = || Ok(run(&engine, "webhook show ci").unwrap()["waiting"] == 0);
    wait_until("everything is told", PATIENCE, is_told).unwrap();

    let tested = run(&engine, "webhook test ci").unwrap();
    assert_eq!((&tested["delivered"], &tested["status"]), (&true.into(), &204.into()), "{tested}");
    let test = ci.wait_for("the test", |one| one.kind() == "webhook.test");
    assert_eq!(tested["message"], test.id());
    assert!(test.is_signed_with(SECRET));
    assert!(!ci.messages().iter().any(is_of_ci), "it was told that it cannot be told");
    drop(ci);
    let failed = run(&engine, "webhook test ci").expect_err("nobody is there");
    assert_eq!(failed.exit_code, 1, "{failed}");

    // Once it takes a test, it is told what waits.
    run(&engine, "pool reclaim").unwrap();
    let is_failing = || Ok(run(&engine, "webhook show ci").unwrap()["state"] == "failing");
    wait_until("it is away again", PATIENCE, is_failing).unwrap();
    let ci = Receiver::at(port);
    run(&engine, "webhook test ci").unwrap();
    ci.wait_for("the second job", |one| one.kind() == "job.pool_reclaim.done");
    drop(ci);

    shows_nothing_of(&engine, SECRET);
    shows_nothing_of(&engine, &made);
    for name in ["ci", "other"] {
        run(&engine, &format!("webhook remove {name}")).unwrap();
    }
    assert_eq!(run(&engine, "webhook list").unwrap()["webhooks"], Value::Array(vec![]));
    assert_eq!(engine.stop().unwrap(), 0);
}

/// Another secret comes to a receiver that is away, which takes what waited with either of them.
#[test]
fn a_webhook_is_changed_where_it_is() {
    let (scratch, mut engine) = start();
    let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = secret_file(&scratch, SECRET);
    let add = format!("webhook add ci --url http://{away}/hook --events job.* --secret-file");
    run(&engine, &format!("{add} {}", file.display())).unwrap();
    run(&engine, "pool reclaim").unwrap();
    let waits = || {
        let shown = run(&engine, "webhook show ci").unwrap();
        Ok((&shown["state"], &shown["waiting"]) == (&"failing".into(), &1.into()))
    };
    wait_until("the first waits", PATIENCE, waits).unwrap();

    let set = run(&engine, "webhook set ci --rotate-secret").unwrap();
    let made = set["secret"].as_str().expect("the new secret is shown once").to_owned();
    assert_eq!(set["events"], Value::Array(vec!["job.*".into()]), "what is not named stays: {set}");
    let shown = run(&engine, "webhook show ci").unwrap();
    let until: Timestamp = shown["old_secret_until"].as_str().unwrap().parse().unwrap();
    let now = Timestamp::try_from(SystemClock.now()).unwrap();
    let day = until.duration_since(now).as_hours();
    assert!((23..=24).contains(&day), "{shown}");
    let ci = Receiver::at(0);
    let set = run(&engine, &format!("webhook set ci --url {}", ci.url())).unwrap();
    assert_eq!(set["secret"], Value::Null, "{set}");
    let told = ci.wait_for("what waited", |one| one.kind() == "job.pool_reclaim.done");
    assert!(told.is_signed_with(&made) && told.is_signed_with(SECRET), "by both");

    // Events of before that were not for it are not told: not even by the next engine.
    run(&engine, "webhook set ci --faults").unwrap();
    run(&engine, "pool reclaim").unwrap();
    run(&engine, "webhook set ci --events job.pool_scrub.*").unwrap();
    assert_eq!(run(&engine, "webhook show ci").unwrap()["waiting"], 0);
    assert_eq!(engine.stop().unwrap(), 0);
    engine.restart().unwrap();
    run(&engine, "webhook set ci --events *").unwrap();
    run(&engine, "pool scrub").unwrap();
    ci.wait_for("the scrub", |one| one.kind() == "job.pool_scrub.done");
    assert_eq!(
        ci.messages().len(),
        2,
        "{:?}",
        ci.messages().iter().map(Heard::kind).collect::<Vec<_>>()
    );

    // After two changes only the last two secrets sign.
    run(
        &engine,
        &format!("webhook set ci --secret-file {}", secret_file(&scratch, SECOND).display()),
    )
    .unwrap();
    run(&engine, "webhook test ci").unwrap();
    let test = ci.wait_for("the test", |one| one.kind() == "webhook.test");
    assert!(
        test.is_signed_with(SECOND) && test.is_signed_with(&made) && !test.is_signed_with(SECRET)
    );
    for secret in [SECRET, SECOND, &made] {
        shows_nothing_of(&engine, secret);
    }
    let refused = |line: &str| run(&engine, line).expect_err(line);
    let set = run(&engine, "webhook set ci --name builds").unwrap();
    assert_eq!((&set["name"], &set["secret"]), (&"builds".into(), &Value::Null), "{set}");
    assert_eq!(refused("webhook show ci").code, "not_found");
    run(&engine, &format!("webhook add ci --url {}", ci.url())).unwrap();
    assert_eq!(refused("webhook set ci --name builds").code, "already_exists");
    assert_eq!(refused("webhook set ci --name BUILDS").code, "invalid_input");
    assert_eq!(refused("webhook set ci").exit_code, 2);
    assert_eq!(refused("webhook set nobody --faults").code, "not_found");
    assert_eq!(refused("webhook set ci --url http://ci.example/hook").code, "invalid_input");
    run(&engine, "webhook set ci --url http://ci.example/hook --insecure").unwrap();
    assert_eq!(refused("webhook set ci --secure").code, "invalid_input");
    let audit = run(&engine, "audit").unwrap().to_string();
    assert!(audit.contains("webhook set"), "{audit}");
    assert_eq!(engine.stop().unwrap(), 0);
}

#[test]
fn what_gives_something_away_is_refused() {
    let (scratch, mut engine) = start();
    let refused = |line: &str, why: &str| {
        let refused = run(&engine, line).expect_err(line);
        assert_eq!(refused.code, "invalid_input", "{line}: {refused}");
        assert!(refused.message.contains(why), "{line}: {refused}");
        assert!(!refused.to_string().split_once(": ").unwrap().1.contains("hunter2"), "{refused}");
    };
    refused("webhook add a --url http://ci.example/hook", "plain http");
    refused("webhook add a --url https://eve:hunter2@ci.example/", "password");
    refused("webhook add a --url file:///etc/passwd", "neither https nor http");
    refused("webhook add a --url https://ci.example/ --events faults", "no event is called");
    let file = secret_file(&scratch, "too short");
    let with_secret =
        format!("webhook add a --url https://ci.example/ --secret-file {}", file.display());
    refused(&with_secret, "whsec_");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    refused(&with_secret, "others may read");
    let wrong = run(&engine, "webhook add a --url https://ci.example/ --faults --events *");
    assert_eq!(wrong.unwrap_err().exit_code, 2);
    assert_eq!(run(&engine, "webhook show a").unwrap_err().code, "not_found");

    let added = run(&engine, "webhook add a --url http://ci.example/hook --insecure --faults");
    assert_eq!(added.unwrap()["events"], Value::Array(vec!["fault.*".into()]));
    let taken = run(&engine, "webhook add a --url https://ci.example/");
    assert_eq!(taken.unwrap_err().code, "already_exists");
    // From a file, so that no list of processes shows it.
    let url = scratch.path().join("url");
    std::fs::write(&url, "https://ci.example/T0/B0/token\n").unwrap();
    engine.command_with_stdin(["webhook", "add", "b", "--url", "-"], &url).unwrap();
    let shown = run(&engine, "webhook show b").unwrap();
    assert_eq!(shown["url"], "https://ci.example/T0/B0/token");
    assert_eq!(engine.stop().unwrap(), 0);
}

#[test]
fn who_never_answers_holds_up_neither_others_nor_the_end() {
    let (_scratch, mut engine) = start();
    // Connections are made, and nobody ever takes them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", silent.local_addr().unwrap());
    run(&engine, &format!("webhook add silent --url {url}")).unwrap();
    let other = Receiver::at(0);
    run(&engine, &format!("webhook add other --url {}", other.url())).unwrap();
    for _ in 0..3 {
        run(&engine, "pool reclaim").unwrap();
    }
    let begun = SystemClock.elapsed();
    wait_until("three messages", PATIENCE, || Ok(other.messages().len() >= 3)).unwrap();
    assert!(SystemClock.elapsed() - begun < Duration::from_secs(9), "others waited");
    let numbers: Vec<u64> =
        other.messages().iter().map(|one| one.json()["data"]["number"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted(), "{numbers:?}");
    let shown = run(&engine, "webhook show silent").unwrap();
    assert_eq!(shown["waiting"], 3, "{shown}");

    let begun = SystemClock.elapsed();
    assert_eq!(engine.stop().unwrap(), 0);
    assert!(SystemClock.elapsed() - begun < Duration::from_secs(8), "the engine waited for it");
    engine.restart().unwrap();
    let shown = run(&engine, "webhook show silent").unwrap();
    assert_eq!(shown["waiting"], 3, "{shown}");
    assert_eq!(other.messages().len(), 3, "what was told is not told again");
    let begun = SystemClock.elapsed();
    engine.take_over().unwrap();
    assert!(
        SystemClock.elapsed() - begun < Duration::from_secs(8),
        "the next engine waited for it"
    );
    assert_eq!(run(&engine, "webhook show silent").unwrap()["waiting"], 3);
    assert_eq!(engine.stop().unwrap(), 0);
}

#[test]
fn events_that_were_too_many_are_counted_and_the_others_told() {
    let (_scratch, mut engine) = start();
    let ci = Receiver::at(0);
    run(&engine, &format!("webhook add ci --url {} --events job.*", ci.url())).unwrap();
    assert_eq!(engine.stop().unwrap(), 0);
    let key = std::fs::read_to_string(engine.pool().with_extension("key")).unwrap();
    let key = Keyring::from(key.lines().find_map(SecretKey::parse).unwrap());
    let now = Timestamp::from_second(1_790_000_000).unwrap();
    let fault = Happening::FaultRaised { topic: "source".into(), hint: "start it".into() };
    let job = Happening::JobEnded {
        job: JobId(900),
        kind: "vdb_provision".into(),
        state: JobState::Cancelled,
        started_at: now,
        code: None,
    };
    let catalog = Catalog::open(&engine.pool().join("catalog.db"), key).unwrap();
    let added = catalog.transaction(|tx| {
        (0..10_049).try_for_each(|_| tx.add_event(now, "prod", "it is away", &fault))?;
        tx.add_event(now, "dev", "it was cancelled", &job)
    });
    added.unwrap();
    drop(catalog);
    engine.restart().unwrap();
    let told = ci.wait_for("the last event", |one| one.json()["data"]["job"] == "job-900");
    assert_eq!(told.kind(), "job.vdb_provision.cancelled");
    let settled = || Ok(run(&engine, "webhook show ci").unwrap()["waiting"] == 0);
    wait_until("it is told", PATIENCE, settled).unwrap();
    let shown = run(&engine, "webhook show ci").unwrap();
    assert_eq!((&shown["missed"], &shown["state"]), (&50.into(), &"active".into()), "{shown}");
    assert_eq!(engine.stop().unwrap(), 0);
}

#[test]
fn a_full_pool_is_told_once_though_the_catalog_keeps_no_fault_of_it() {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
    let mut bed = Testbed::with_engine(source, options).unwrap();
    let ci = Receiver::at(0);
    run(&bed.engine, &format!("webhook add ci --url {}", ci.url())).unwrap();
    // 96 MiB that do not compress well.
    let fill = "CREATE TABLE filler AS SELECT string_agg(md5(random()::text), '') AS text
        FROM generate_series(1, 96 * 32768) n GROUP BY n % 12288";
    bed.source.connect("postgres").unwrap().execute(fill).unwrap();
    bed.link("prod").unwrap();
    let linked = ci.wait_for("the link", |one| one.kind() == "job.dsource_link.done");
    assert_eq!(linked.json()["data"]["object"], "prod");
    let of_room = |one: &Heard| one.json()["data"]["topic"] == "room";
    let told = || ci.messages().into_iter().filter(of_room).collect::<Vec<_>>();
    assert!(told().is_empty());

    bed.engine.stop().unwrap();
    bed.engine.options.arguments = vec!["--capacity".into(), "128MiB".into()];
    bed.engine.restart().unwrap();
    assert!(faults(&bed.engine).iter().any(|fault| fault.contains("full")), "it is not full");
    let full = ci.wait_for("that the pool is full", of_room);
    assert_eq!(
        (full.kind().as_str(), &full.json()["data"]["object"]),
        ("fault.raised", &"pool".into())
    );
    bed.engine.kill().unwrap();
    bed.engine.restart().unwrap();
    run(&bed.engine, "webhook test ci").unwrap();
    bed.engine.stop().unwrap();
    bed.engine.options.arguments.clear();
    bed.engine.restart().unwrap();
    let well = |one: &Heard| of_room(one) && one.kind() == "fault.cleared";
    ci.wait_for("that there is room", well);
    assert_eq!(told().len(), 2);
    assert_eq!(bed.engine.stop().unwrap(), 0);
}

#[test]
fn traces_of_jobs_come_to_a_collector_also_to_one_that_was_away() {
    let collector = Receiver::refusing(0, 1);
    let scratch = Scratch::new("traces").unwrap();
    let mut options = EngineOptions::new(binary());
    options.arguments = vec!["--traces".into(), collector.url()];
    let mut engine = Engine::start(&scratch, options).unwrap();
    run(&engine, "pool scrub").unwrap();
    run(&engine, "dsource link shop --source postgresql://nobody@127.0.0.1:1/x").unwrap_err();
    // The first was refused once; the second came with it, or after it.
    let spans = || -> Vec<Value> {
        let heard = collector.heard.lock().unwrap().clone();
        let bodies = heard.iter().map(Heard::json);
        let of = |body: Value| body["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
        bodies.flat_map(|body| of(body).as_array().unwrap().clone()).collect()
    };
    let named = |name: &str| spans().into_iter().find(|span| span["name"] == name);
    wait_until("both are there", PATIENCE, || {
        Ok(named("pool_scrub").is_some() && named("dsource_link").is_some())
    })
    .unwrap();
    wait_until("what was refused comes again", PATIENCE, || {
        let heard = collector.heard.lock().unwrap();
        Ok(heard.iter().filter(|one| one.body == heard[0].body).count() == 2)
    })
    .unwrap();
    let scrub = named("pool_scrub").unwrap();
    assert_eq!(scrub["status"]["code"], 1, "{scrub}");
    let link = named("dsource_link").unwrap();
    assert_eq!(link["status"]["code"], 2, "{link}");
    let below = spans().iter().filter(|span| span["parentSpanId"] == link["spanId"]).count();
    assert!(below > 0, "{:?}", spans());
    engine.stop().unwrap();

    let mut options = EngineOptions::new(binary());
    options.arguments = vec!["--traces".into(), "http://user:word@127.0.0.1:1/".into()];
    let refused = Engine::start(&scratch, options).err().unwrap().to_string();
    assert!(refused.contains("password"), "{refused}");
}
