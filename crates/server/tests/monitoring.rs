//! What monitoring asks: figures in the OpenMetrics text format, and whether the engine answers.
#![allow(clippy::unwrap_used)]

mod stand_in;

use offshoot_server::HttpServer;
use stand_in::served;
use std::collections::BTreeSet;

struct Server {
    http: HttpServer,
    token: String,
}

fn start() -> Server {
    let (http, token) = served();
    let server = Server { http, token: token.reveal().to_owned() };
    for name in ["prod", "other"] {
        let body = format!(
            r#"{{"name": "{name}", "connector": "postgres", "source": "postgresql://a@b/c"}}"#
        );
        server.post("dsources", &body);
    }
    server.post("vdbs", r#"{"name": "dev", "from": "prod"}"#);
    server
}

impl Server {
    fn agent() -> ureq::Agent {
        ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into()
    }

    fn get(&self, path: &str, token: Option<&str>) -> (u16, String, String) {
        let mut request = Server::agent().get(format!("http://{}{path}", self.http.local_addr()));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut answer = request.call().unwrap();
        let kind =
            answer.headers().get("content-type").map_or("", |it| it.to_str().unwrap()).to_owned();
        (answer.status().as_u16(), kind, answer.body_mut().read_to_string().unwrap())
    }

    fn post(&self, what: &str, body: &str) -> String {
        let mut answer = Server::agent()
            .post(format!("http://{}/api/v1/{what}", self.http.local_addr()))
            .header("authorization", format!("Bearer {}", self.token))
            .content_type("application/json")
            .send(body)
            .unwrap();
        assert!(answer.status().is_success(), "{what}");
        answer.body_mut().read_to_string().unwrap()
    }
}

/// The names of all samples; each line is one of the format's.
fn samples(text: &str) -> BTreeSet<&str> {
    let (body, end) = text.split_at(text.len() - "# EOF\n".len());
    assert_eq!(end, "# EOF\n");
    let mut names = BTreeSet::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let word = comment.split(' ').next().unwrap();
            assert!(["HELP", "TYPE", "UNIT"].contains(&word), "{line}");
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        value.parse::<f64>().unwrap();
        let name = sample.split('{').next().unwrap();
        assert!(name.starts_with("offshoot_"), "{line}");
        names.insert(name);
    }
    names
}

#[test]
fn figures_are_in_the_format_of_prometheus() {
    let server = start();
    let (status, kind, text) = server.get("/metrics", Some(&server.token));
    assert_eq!((status, kind.starts_with("application/openmetrics-text")), (200, true), "{kind}");
    let names = samples(&text);
    for name in [
        "offshoot_build_info",
        "offshoot_start_time_seconds",
        "offshoot_faults",
        "offshoot_pool_used_bytes",
        "offshoot_cache_hits_total",
        "offshoot_dsource_following",
        "offshoot_dsource_stored_bytes",
        "offshoot_vdb_running",
        "offshoot_vdb_unique_bytes",
        "offshoot_replication_log_lag_bytes",
    ] {
        assert!(names.contains(name), "{name} is missing:\n{text}");
    }
    assert!(text.contains(r#"offshoot_vdb_running{vdb="dev",parent="prod"} 1.0"#), "{text}");
    assert!(text.contains(r#"offshoot_dsource_following{dsource="other"}"#), "{text}");
}

#[test]
fn figures_are_those_of_what_the_caller_may_see() {
    let server = start();
    assert_eq!(server.get("/metrics", None).0, 401);
    assert_eq!(server.get("/metrics", Some("wrong")).0, 401);
    server.post("users", r#"{"name": "eve", "role": "developer", "parents": ["prod"]}"#);
    let made = server.post("tokens", r#"{"user": "eve"}"#);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let (status, _, text) = server.get("/metrics", made["token"].as_str());
    assert_eq!(status, 200);
    samples(&text);
    assert!(text.contains(r#"dsource="prod""#) && !text.contains("other"), "{text}");
    assert!(!text.contains(r#"vdb="dev""#) && !text.contains("profile="), "{text}");
}

#[test]
fn whether_it_answers_is_told_to_anybody() {
    let server = start();
    assert_eq!(server.get("/healthz", None).0, 200);
    assert_eq!(server.get("/readyz", None).0, 200);
}
