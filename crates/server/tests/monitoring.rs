//! What monitoring asks: figures in the OpenMetrics text format, and whether the engine answers.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // another program is started

mod stand_in;

use offshoot_server::HttpServer;
use stand_in::served;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

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
        "offshoot_file_operation_seconds_bucket",
        "offshoot_pool_read_seconds_count",
        "offshoot_log_flush_seconds_sum",
        "offshoot_commit_seconds_bucket",
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

/// What a text says of the buckets of one histogram, `name{labels`: their bounds, and how many each has.
fn buckets(text: &str, name: &str, labels: &str) -> Vec<(String, u64)> {
    let start = format!("{name}_bucket{{");
    let of_it = text.lines().filter(|line| line.starts_with(&start) && line.contains(labels));
    let bucket = |line: &str| {
        let (_, rest) = line.split_once("le=\"").unwrap();
        let (bound, rest) = rest.split_once('"').unwrap();
        (bound.to_owned(), rest.rsplit_once(' ').unwrap().1.parse().unwrap())
    };
    of_it.map(bucket).collect()
}

#[test]
fn latencies_are_histograms_in_seconds() {
    let server = start();
    let (_, _, text) = server.get("/metrics", Some(&server.token));
    for line in [
        "# TYPE offshoot_file_operation_seconds histogram",
        "# UNIT offshoot_file_operation_seconds seconds",
        "# TYPE offshoot_pool_read_seconds histogram",
        "# TYPE offshoot_log_flush_seconds histogram",
        "# TYPE offshoot_commit_seconds histogram",
        r#"offshoot_file_operation_seconds_count{vdb="dev",operation="read"} 4"#,
        r#"offshoot_file_operation_seconds_sum{vdb="dev",operation="read"} 20.00007"#,
        r#"offshoot_file_operation_seconds_count{dsource="prod",operation="write"} 1"#,
        r#"offshoot_file_operation_seconds_count{vdb="dev",operation="sync"} 0"#,
        "offshoot_pool_read_seconds_count 2",
        "offshoot_pool_read_seconds_sum 0.0003",
        "offshoot_log_flush_seconds_count 1",
        "offshoot_commit_seconds_count 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is missing:\n{text}");
    }
    let reads = buckets(&text, "offshoot_file_operation_seconds", r#"vdb="dev",operation="read""#);
    assert_eq!(reads.len(), 22, "{text}");
    let bounds: Vec<f64> = reads.iter().map(|(bound, _)| bound.parse().unwrap()).collect();
    assert_eq!((bounds[0], bounds[20], bounds[21]), (16e-6, 16.777216, f64::INFINITY));
    assert!(bounds.is_sorted());
    assert_eq!(reads[21].0, "+Inf");
    let counts: Vec<u64> = reads.iter().map(|(_, count)| *count).collect();
    assert_eq!((&counts[..4], counts[20], counts[21]), (&[1, 2, 3, 3][..], 3, 4));
    assert!(counts.is_sorted(), "{counts:?}");
}

#[test]
fn latencies_are_those_of_what_the_caller_may_see() {
    let server = start();
    server.post("users", r#"{"name": "eve", "role": "developer", "parents": ["prod"]}"#);
    server.post("users", r#"{"name": "ann", "role": "auditor"}"#);
    let asked = |user: &str| {
        let made = server.post("tokens", &format!(r#"{{"user": "{user}"}}"#));
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        server.get("/metrics", made["token"].as_str()).2
    };
    let (eve, ann) = (asked("eve"), asked("ann"));
    let of = |owner: &str| {
        format!("offshoot_file_operation_seconds_count{{{owner},operation=\"read\"}}")
    };
    for (owner, seen) in
        [(r#"dsource="prod""#, true), (r#"dsource="other""#, false), (r#"vdb="dev""#, false)]
    {
        assert_eq!(eve.contains(&of(owner)), seen, "{owner}: {eve}");
        assert!(ann.contains(&of(owner)), "{owner}: {ann}");
    }
    for of_the_pool in ["offshoot_pool_read_", "offshoot_log_flush_", "offshoot_commit_"] {
        assert!(!eve.contains(of_the_pool), "{eve}");
        assert!(ann.contains(of_the_pool), "{ann}");
    }
}

mod needs_promtool {
    use super::*;

    /// It reads the older text format, where all of ours but the names of counters is the same.
    #[test]
    #[ignore = "needs promtool; scripts/test.sh runs it"]
    fn prometheus_can_read_the_histograms() {
        let server = start();
        let (_, _, text) = server.get("/metrics", Some(&server.token));
        let text: String = text
            .lines()
            .filter(|line| !line.contains("offshoot_cache_") && *line != "# EOF")
            .map(|line| format!("{line}\n"))
            .collect();
        let mut tool = Command::new(std::env::var("OFFSHOOT_TEST_PROMTOOL").unwrap())
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let run = tool.wait_with_output().unwrap();
        assert!(run.status.success(), "{run:?}\n{text}");
    }
}

#[test]
fn whether_it_answers_is_told_to_anybody() {
    let server = start();
    assert_eq!(server.get("/healthz", None).0, 200);
    assert_eq!(server.get("/readyz", None).0, 200);
}
