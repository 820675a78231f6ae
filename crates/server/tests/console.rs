//! The console's files, signing in to it, and the stream of what changes.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests measure how long something takes

mod stand_in;

use offshoot_server::HttpServer;
use serde_json::{Value, json};
use stand_in::served;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

struct Server {
    http: HttpServer,
    token: String,
}

fn start() -> Server {
    let (http, token) = served();
    let server = Server { http, token: token.reveal().to_owned() };
    let own = Some(server.token.as_str());
    for name in ["prod", "other"] {
        let body = json!({"name": name, "connector": "postgres", "source": "postgresql://a@b/c"});
        assert_eq!(server.send("POST", "/api/v1/dsources", own, Some(body)).status, 202);
    }
    server
}

struct Answer {
    status: u16,
    headers: ureq::http::HeaderMap,
    text: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

impl Server {
    fn run(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        body: Option<Value>,
    ) -> ureq::http::Response<ureq::Body> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(60)))
            .proxy(None)
            .build()
            .into();
        let address = format!("http://{}{path}", self.http.local_addr());
        let mut request = ureq::http::Request::builder().method(method).uri(address);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let request = request.body(body).unwrap();
        agent
            .run(agent.configure_request(request).allow_non_standard_methods(true).build())
            .unwrap()
    }

    fn send(&self, method: &str, path: &str, token: Option<&str>, body: Option<Value>) -> Answer {
        let mut answer = self.run(method, path, token, body);
        let text = answer.body_mut().read_to_string().unwrap();
        Answer { status: answer.status().as_u16(), headers: answer.headers().clone(), text }
    }

    /// The token of a session that somebody with a token opens.
    fn sign_in(&self, token: &str) -> String {
        let code = self.send("POST", "/api/v1/console/codes", Some(token), None).json();
        assert_eq!(code["path"], format!("/#code={}", code["code"].as_str().unwrap()));
        let body = json!({"code": code["code"]});
        let session = self.send("POST", "/api/v1/console/session", None, Some(body));
        assert_eq!(session.status, 200, "{}", session.text);
        session.json()["token"].as_str().unwrap().to_owned()
    }

    /// A developer, and its token.
    fn developer(&self, name: &str) -> String {
        let own = Some(self.token.as_str());
        let body = json!({"name": name, "role": "developer", "parents": ["prod"]});
        assert_eq!(self.send("POST", "/api/v1/users", own, Some(body)).status, 200);
        let made = self.send("POST", "/api/v1/tokens", own, Some(json!({"user": name})));
        made.json()["token"].as_str().unwrap().to_owned()
    }
}

#[test]
fn the_page_is_everybodys_and_says_what_a_browser_may_do_with_it() {
    let server = start();
    let page = server.send("GET", "/", None, None);
    assert_eq!(page.status, 200);
    assert!(page.text.starts_with("<!doctype html>"), "{}", page.text);
    assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for word in ["unsafe", "http:", "https:", "data:", "*"] {
        assert!(!policy.contains(word), "{policy}");
    }
    // Nothing stands within the page that the policy would refuse, and nothing comes from elsewhere.
    for word in ["style=", "onload", "http://", "https://"] {
        assert!(!page.text.contains(word), "{word}: {}", page.text);
    }
    for script in page.text.split("<script").skip(1) {
        assert!(script.contains("src=\"/console/"), "{script}");
    }
    for name in page.text.split("/console/").skip(1).filter_map(|rest| rest.split('"').next()) {
        let file = server.send("GET", &format!("/console/{name}"), None, None);
        assert_eq!(file.status, 200, "{name}");
        assert!(file.headers["cache-control"].to_str().unwrap().contains("immutable"), "{name}");
    }
}

#[test]
fn every_answer_is_told_apart_from_a_page_and_only_files_are_kept() {
    let server = start();
    for (path, token) in [
        ("/", None),
        ("/api/v1/status", Some(server.token.as_str())),
        ("/api/v1/status", None),
        ("/api/v1/nothing", Some(server.token.as_str())),
        ("/api/v1/openapi.json", None),
    ] {
        let answer = server.send("GET", path, token, None);
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.headers[name], value, "{path}");
        }
        let kept = answer.headers["cache-control"].to_str().unwrap();
        assert!(["no-store", "no-cache"].contains(&kept), "{path}: {kept}");
        assert!(answer.headers.get("set-cookie").is_none(), "{path}");
        assert!(answer.headers.get("access-control-allow-origin").is_none(), "{path}");
    }
}

#[test]
fn nothing_but_the_consoles_files_is_served_below_its_path() {
    let server = start();
    for name in
        ["nothing.js", ".gitignore", "%2E%2E", "..%2F..%2FCargo.toml", "%2Fetc%2Fpasswd", "%00"]
    {
        let answer = server.send("GET", &format!("/console/{name}"), None, None);
        assert_eq!(answer.status, 404, "{name}: {}", answer.text);
    }
    for path in ["/console", "/console/", "/console/a/b", "/index.html"] {
        assert_eq!(server.send("GET", path, None, None).status, 401, "{path}");
    }
    assert_eq!(server.send("POST", "/", None, None).status, 401);
}

#[test]
fn a_link_signs_in_once_and_its_session_ends_when_asked() {
    let server = start();
    let code = server.send("POST", "/api/v1/console/codes", Some(&server.token), None).json();
    let body = json!({"code": code["code"]});
    let session = server.send("POST", "/api/v1/console/session", None, Some(body.clone())).json();
    let again = server.send("POST", "/api/v1/console/session", None, Some(body));
    assert_eq!(again.status, 401, "{}", again.text);
    assert!(again.json()["error"]["hint"].as_str().unwrap().contains("offshoot console"));
    let token = session["token"].as_str().unwrap();
    assert_eq!(server.send("GET", "/api/v1/status", code["code"].as_str(), None).status, 401);
    let who = server.send("GET", "/api/v1/console/session", Some(token), None).json();
    assert_eq!((&who["user"], &who["role"]), (&Value::Null, &json!("admin")));
    assert_eq!(who["expires_at"], session["expires_at"]);
    let more = server.send("POST", "/api/v1/console/codes", Some(token), None);
    assert_eq!(more.status, 403, "a session opens no other: {}", more.text);
    assert_eq!(server.send("DELETE", "/api/v1/console/session", Some(token), None).status, 200);
    assert_eq!(server.send("GET", "/api/v1/status", Some(token), None).status, 401);
    // Whoever shows the pool's token keeps it.
    assert_eq!(
        server.send("DELETE", "/api/v1/console/session", Some(&server.token), None).status,
        200
    );
    assert_eq!(server.send("GET", "/api/v1/status", Some(&server.token), None).status, 200);
}

#[test]
fn guesses_of_a_code_are_soon_not_even_looked_at() {
    let server = start();
    let guess = || {
        let body = json!({"code": "0".repeat(64)});
        server.send("POST", "/api/v1/console/session", None, Some(body)).status
    };
    let answers: Vec<u16> = (0..60).map(|_| guess()).collect();
    assert_eq!(answers[0], 401);
    assert!(answers.contains(&429), "{answers:?}");
    // Who has a right code is not locked out with him.
    server.sign_in(&server.token);
}

#[test]
fn a_users_session_has_the_users_rights_and_ends_with_its_token() {
    let server = start();
    let own = server.developer("eve");
    let session = server.sign_in(&own);
    let who = server.send("GET", "/api/v1/console/session", Some(&session), None).json();
    assert_eq!((&who["user"], &who["role"]), (&json!("eve"), &json!("developer")));
    let seen = server.send("GET", "/api/v1/dsources", Some(&session), None).json();
    assert_eq!(seen["dsources"].as_array().unwrap().len(), 1);
    assert_eq!(server.send("GET", "/api/v1/users", Some(&session), None).status, 403);
    let revoked = server.send("DELETE", "/api/v1/tokens/token-1", Some(&server.token), None);
    assert_eq!(revoked.status, 200, "{}", revoked.text);
    assert_eq!(server.send("GET", "/api/v1/dsources", Some(&session), None).status, 401);
}

/// Reads the events of a stream.
struct Events(BufReader<Box<dyn std::io::Read + Send>>);

impl Events {
    fn of(server: &Server, token: &str) -> Events {
        let answer = server.run("GET", "/api/v1/events", Some(token), None);
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Events(BufReader::new(Box::new(answer.into_body().into_reader())))
    }

    /// The next event; none at the end of the stream.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.0.read_line(&mut line).ok().filter(|read| *read > 0).is_some() {
            if let Some(data) = line.strip_prefix("data:") {
                return Some(serde_json::from_str(data).unwrap());
            }
            line.clear();
        }
        None
    }

    fn job(&mut self) -> Value {
        loop {
            let event = self.next().expect("the stream ended");
            if event["kind"] == "job" {
                return event["job"].clone();
            }
        }
    }
}

#[test]
fn a_subscriber_is_told_what_changes_of_what_it_may_see() {
    let server = start();
    let eve = server.developer("eve");
    let mut all = Events::of(&server, &server.token);
    let mut own = Events::of(&server, &eve);
    assert_eq!(all.next().unwrap()["kind"], "status");
    let status = own.next().unwrap();
    assert_eq!((&status["kind"], &status["status"]["pool"]), (&json!("status"), &json!("")));
    let provision = |name: &str, token: &str| {
        let body = json!({"name": name, "from": "prod"});
        server.send("POST", "/api/v1/vdbs", Some(token), Some(body)).json()["job"].clone()
    };
    let (other, hers) = (provision("dev", &server.token), provision("eves", &eve));
    assert_ne!(other, hers);
    let mut seen = Vec::new();
    while !seen.contains(&other) || !seen.contains(&hers) {
        seen.push(all.job()["id"].clone());
    }
    // The stand-in's jobs end when they were asked for three times.
    for _ in 0..3 {
        server.send("GET", &format!("/api/v1/jobs/{}", hers.as_str().unwrap()), Some(&eve), None);
    }
    // What is others' is not among what she is told, also when hers comes to its end.
    loop {
        let job = own.job();
        assert_eq!(job["id"], hers);
        if job["state"] == "done" {
            break;
        }
    }
}

#[test]
fn a_stream_ends_with_its_token_and_with_the_server() {
    let server = start();
    let mut own = Events::of(&server, &server.developer("eve"));
    assert!(own.next().is_some());
    server.send("DELETE", "/api/v1/tokens/token-1", Some(&server.token), None);
    while own.next().is_some() {}
    let mut last = Events::of(&server, &server.token);
    assert!(last.next().is_some());
    let begun = Instant::now();
    server.http.stop();
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    while last.next().is_some() {}
}

#[test]
fn subscribers_are_bounded_and_leave_their_place() {
    let server = start();
    let mut all: Vec<Events> = Vec::new();
    let refused = loop {
        let answer = server.run("GET", "/api/v1/events", Some(&server.token), None);
        if answer.status() != 200 {
            break answer.status().as_u16();
        }
        all.push(Events(BufReader::new(Box::new(answer.into_body().into_reader()))));
        assert!(all.len() < 100);
    };
    assert_eq!((refused, all.len()), (429, 32));
    drop(all);
    let begun = Instant::now();
    while server.run("GET", "/api/v1/events", Some(&server.token), None).status() != 200 {
        assert!(begun.elapsed() < Duration::from_secs(30), "places are not given back");
    }
}
