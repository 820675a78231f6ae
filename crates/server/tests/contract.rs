//! The HTTP protocol against its own OpenAPI document: what every endpoint really answers.
#![allow(clippy::unwrap_used)]

mod schema;
mod stand_in;

use offshoot_api::routes;
use offshoot_server::{HttpServer, Token, openapi_json};
use offshoot_types::ErrorKind;
use serde_json::{Value, json};
use stand_in::{StandIn, served};
use std::sync::Arc;
use std::time::Duration;

struct Server {
    http: HttpServer,
    token: Token,
    document: Value,
}

fn start() -> Server {
    let (http, token) = served();
    let document = serde_json::from_str(&openapi_json()).unwrap();
    Server { http, token, document }
}

struct Answer {
    status: u16,
    headers: ureq::http::HeaderMap,
    body: Value,
}

impl Server {
    fn send(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let token = format!("Bearer {}", self.token.reveal());
        let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
        self.send_with(method, path, body, &headers)
    }

    fn send_with(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(120)))
            .proxy(None)
            .build()
            .into();
        let address = format!("http://{}{path}", self.http.local_addr());
        let mut request = ureq::http::Request::builder().method(method).uri(address);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.unwrap_or_default().to_owned()).unwrap();
        let request = agent.configure_request(request).allow_non_standard_methods(true).build();
        let mut answer = agent.run(request).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        let is_archive = answer
            .headers()
            .get("content-type")
            .is_some_and(|kind| kind == "application/octet-stream");
        let body = match serde_json::from_str(&text) {
            Err(_) if is_archive => Value::String(text),
            other => other.unwrap_or_else(|_| panic!("not JSON: {text}")),
        };
        Answer { status: answer.status().as_u16(), headers: answer.headers().clone(), body }
    }

    /// An answer must be an error of this status and code, in the one format.
    fn assert_error(&self, answer: &Answer, status: u16, code: ErrorKind) {
        assert_eq!(answer.status, status, "{}", answer.body);
        let format = json!({"$ref": "#/components/schemas/ErrorBody"});
        let wrong = schema::check(&self.document, &format, &answer.body, "body");
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(answer.body["error"]["code"], code.code(), "{}", answer.body);
        assert_ne!(answer.body["error"]["hint"], "", "{}", answer.body);
    }
}

/// A request that must succeed once the objects of [`make_objects`] are there.
fn good_request(method: &str, path: &str) -> (String, Option<Value>) {
    let object = match (method, path) {
        ("delete", "/api/v1/dsources/{name}") => "gone",
        ("delete", "/api/v1/vdbs/{name}") => "gone-dev",
        (_, path) if path.starts_with("/api/v1/dsources") => "prod",
        (_, path) if path.starts_with("/api/v1/replication") => "prod",
        (_, path) if path.starts_with("/api/v1/peers") => "east",
        (_, path) if path.starts_with("/api/v1/webhooks") => "ci",
        ("delete", "/api/v1/templates/{name}") => "gone",
        (_, path) if path.starts_with("/api/v1/templates") => "ci",
        ("get", "/api/v1/bookmarks/{name}") => "release",
        (_, "/api/v1/masks/{name}" | "/api/v1/masks/{name}/report") => "prod-masked",
        ("get", "/api/v1/groups/{name}") => "both",
        ("delete", "/api/v1/groups/{name}") => "gone-both",
        ("delete", "/api/v1/vdb-groups/{name}") => "gone-pair",
        (_, path) if path.starts_with("/api/v1/vdb-groups") => "pair",
        ("delete", "/api/v1/bookmarks/{name}") => "gone",
        (_, path) if path.starts_with("/api/v1/policies") => "prod",
        (_, path) if path.starts_with("/api/v1/timeflows") => "prod",
        _ => "dev",
    };
    let id = match path {
        path if path.starts_with("/api/v1/jobs") && method == "post" => "job-5",
        path if path.starts_with("/api/v1/jobs") => "job-1",
        path if path.starts_with("/api/v1/mask-") || path.starts_with("/api/v1/diffs") => "job-1",
        path if path.starts_with("/api/v1/bisections") => "job-1",
        _ => "snapshot-1",
    };
    let object = match (method, path) {
        ("delete", path) if path.starts_with("/api/v1/users") => "leaver",
        (_, path) if path.starts_with("/api/v1/users") => "eve",
        _ => object,
    };
    let id = if path.starts_with("/api/v1/tokens") { "token-1" } else { id };
    let query = match path {
        "/api/v1/timeflows/{name}/commits" => {
            "?from=2026-11-21T14:00:00Z&to=2026-11-21T15:00:00Z&parts=60"
        }
        _ => "",
    };
    (path.replace("{name}", object).replace("{id}", id) + query, good_body(method, path))
}

/// What that request sends, if it is about other engines.
fn good_body_for_peers(method: &str, path: &str) -> Option<Value> {
    match (method, path) {
        ("post", "/api/v1/peers") => {
            Some(json!({"name": "east", "address": "east.example:7640", "code": "peer1-0"}))
        }
        ("post", "/api/v1/webhooks") => {
            Some(json!({"name": "ci", "url": "https://ci.example/hook", "events": ["fault.*"],
                   "secret": "whsec_x", "insecure": false}))
        }
        ("post", "/api/v1/webhooks/{name}") => Some(
            json!({"url": "https://ci.example/other", "events": ["job.*"], "rotate_secret": true}),
        ),
        ("post", "/api/v1/peer-invitations") => {
            Some(json!({"name": "west", "expires_in_ms": 60000}))
        }
        ("post", "/api/v1/replication/failovers") => {
            Some(json!({"name": "east", "force": true, "rename": {"shop": "shop-east"}}))
        }
        ("post", "/api/v1/replication/profiles") => {
            Some(json!({"name": "nightly", "to": "east", "include": ["dsource:prod"],
                   "masked_only": false, "with_secrets": true, "connections": 4, "every_ms": 300000, "bytes_per_second_max": 1 << 20}))
        }
        _ => None,
    }
}

/// What that request sends, if it is about templates.
fn good_body_for_templates(method: &str, path: &str) -> Option<Value> {
    match (method, path) {
        ("post", "/api/v1/templates") => {
            Some(json!({"name": "new", "from": "prod", "expires_in_ms": 86400000}))
        }
        ("post", "/api/v1/templates/{name}") => Some(json!({
            "from": null, "moment": null, "memory_bytes": 1 << 29, "gateway": true,
            "settings": {"work_mem": "8MB", "jit": null}, "remove_hooks": ["after-rewind"],
        })),
        _ => None,
    }
}

/// What that request sends.
fn good_body(method: &str, path: &str) -> Option<Value> {
    match (method, path) {
        ("post", "/api/v1/users") => {
            Some(json!({"name": "new", "role": "developer", "parents": ["prod"], "vdbs_max": 3}))
        }
        ("post", "/api/v1/users/{name}") => {
            Some(json!({"parents": ["prod"], "vdbs_max": null, "space_bytes_max": 1 << 30}))
        }
        ("post", "/api/v1/tokens") => Some(json!({"user": "eve", "expires_in_ms": 1000})),
        ("post", "/api/v1/dsources") => {
            Some(json!({"name": "new", "connector": "postgres", "source": "postgresql://a@b/c",
                   "password": "p", "snapshot_every_ms": 600000}))
        }
        ("post", "/api/v1/dsources/{name}") => {
            Some(json!({"source": "postgresql://b@c/d", "password": "p"}))
        }
        ("post", "/api/v1/secrets/rotate") => Some(json!({"forget_old": true})),
        ("post", "/api/v1/pool/scrub") => Some(json!({"bytes_per_s": 16 << 20})),
        ("post", "/api/v1/snapshots") => Some(json!({"object": "prod"})),
        ("post", "/api/v1/vdbs") => {
            Some(json!({"name": "new-dev", "from": "prod", "port": 6002, "memory_bytes": 1 << 29,
                   "moment": {"kind": "at", "time": "2026-11-21T14:03:27.5Z"},
                   "settings": {"work_mem": "8MB"}, "keep_source_logins": true}))
        }
        ("post", "/api/v1/vdbs/{name}/parent") => Some(json!({"to": "prod"})),
        ("post", "/api/v1/vdbs/{name}") => Some(json!({
            "labels": {"team": "qa", "old": null}, "remove_hooks": ["after-rewind"],
            "hooks": [{"event": "after-refresh", "sql": "SELECT 1", "time_limit_ms": 1000}],
        })),
        ("post", "/api/v1/vdbs/{name}/refresh") => Some(json!({"moment": {"kind": "latest"}})),
        ("post", "/api/v1/groups") => {
            Some(json!({"name": "new-both", "members": ["prod", "other"]}))
        }
        ("post", "/api/v1/vdb-groups") => Some(json!({"name": "new-pair", "group": "both",
               "at": "2026-11-21T14:03:27.5Z", "settings": {"work_mem": "8MB"},
               "memory_bytes": 1 << 29})),
        ("post", "/api/v1/vdb-groups/{name}/refresh") => {
            Some(json!({"at": "2026-11-21T14:03:27.5Z"}))
        }
        ("post", "/api/v1/vdb-groups/{name}/rewind" | "/api/v1/vdb-groups/{name}/bookmark") => {
            Some(json!({"bookmark": "before"}))
        }
        ("post", "/api/v1/masks" | "/api/v1/masks/check") => {
            Some(json!({"from": "prod", "as": "safe", "rules": "version: 1", "every_ms": 1000}))
        }
        ("post", "/api/v1/mask-discoveries") => Some(json!({"from": "prod", "sample": 10})),
        ("post", "/api/v1/mask-previews") => {
            Some(json!({"from": "prod", "rules": "version: 1", "table": "customers", "rows": 3}))
        }
        ("post", "/api/v1/diffs") => Some(
            json!({"left": {"object": "prod", "moment": {"kind": "bookmark", "name": "release"}},
               "right": {"object": "prod"}, "tables": ["public.*"], "rows": 3, "sql": true}),
        ),
        ("post", "/api/v1/bisections") => {
            Some(json!({"object": "prod", "from": {"kind": "at", "time": "2026-11-21T14:03:27.5Z"},
               "to": {"kind": "latest"}, "query": "SELECT count(*) FROM orders", "database": "shop",
               "until": "true", "errors_are_answers": true, "time_limit_ms": 1000}))
        }
        ("post", "/api/v1/bookmarks") => Some(json!({"name": "new", "on": "prod",
               "moment": {"kind": "bookmark", "name": "release"}})),
        ("post", "/api/v1/policies/{name}") => {
            Some(json!({"snapshot_every_ms": null, "daily_ms": 0, "quota_bytes": 1 << 30}))
        }
        ("post", "/api/v1/vdbs/{name}/rewind") => Some(json!({"to": {"kind": "undo"}})),
        _ => good_body_for_templates(method, path).or_else(|| good_body_for_peers(method, path)),
    }
}

fn make_objects(server: &Server) {
    for name in ["prod", "gone", "other"] {
        let body = json!({"name": name, "connector": "postgres", "source": "postgresql://a@b/c"});
        assert_eq!(server.send("POST", "/api/v1/dsources", Some(&body.to_string())).status, 202);
    }
    for name in ["eve", "leaver"] {
        let body = json!({"name": name, "role": "developer"}).to_string();
        assert_eq!(server.send("POST", "/api/v1/users", Some(&body)).status, 200);
        let body = json!({"user": name}).to_string();
        assert_eq!(server.send("POST", "/api/v1/tokens", Some(&body)).status, 200);
    }
    for name in ["release", "gone"] {
        let body = json!({"name": name, "on": "prod"}).to_string();
        assert_eq!(server.send("POST", "/api/v1/bookmarks", Some(&body)).status, 202);
    }
    let body = json!({"left": {"object": "prod"}, "right": {"object": "prod"}}).to_string();
    assert_eq!(server.send("POST", "/api/v1/diffs", Some(&body)).status, 202);
    let body = json!({"from": "prod", "rules": "version: 1"}).to_string();
    assert_eq!(server.send("POST", "/api/v1/masks", Some(&body)).status, 202);
    for name in ["dev", "gone-dev", "slow"] {
        let body = json!({"name": name, "from": "prod"}).to_string();
        assert_eq!(server.send("POST", "/api/v1/vdbs", Some(&body)).status, 202);
    }
    for name in ["ci", "gone"] {
        let body = json!({"name": name, "from": "prod"}).to_string();
        assert_eq!(server.send("POST", "/api/v1/templates", Some(&body)).status, 200);
    }
    for name in ["both", "gone-both"] {
        let body = json!({"name": name, "members": ["prod", "other"]}).to_string();
        assert_eq!(server.send("POST", "/api/v1/groups", Some(&body)).status, 200);
    }
    for name in ["pair", "gone-pair"] {
        let body = json!({"name": name, "group": "both"}).to_string();
        assert_eq!(server.send("POST", "/api/v1/vdb-groups", Some(&body)).status, 202);
    }
}

#[test]
fn every_endpoint_answers_as_the_document_says() {
    let server = start();
    make_objects(&server);
    let mut checked = 0;
    for (path, methods) in server.document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            // An answer without an end: see tests/console.rs.
            if path == "/api/v1/events" {
                continue;
            }
            let (address, mut body) = good_request(method, path);
            if (method.as_str(), path.as_str()) == ("post", "/api/v1/console/session") {
                let code = server.send("POST", "/api/v1/console/codes", None).body["code"].clone();
                body = Some(json!({"code": code}));
            }
            if let Some(body) = &body {
                let format = &operation["requestBody"]["content"]["application/json"]["schema"];
                let wrong = schema::check(&server.document, format, body, "request");
                assert!(wrong.is_empty(), "{method} {path}: {wrong:?}");
            }
            let text = match path.as_str() {
                routes::REPLICATION_ARCHIVES => Some("archive of shop".to_owned()),
                _ => body.map(|body| body.to_string()),
            };
            let answer = server.send(&method.to_uppercase(), &address, text.as_deref());
            let response = &operation["responses"][answer.status.to_string()];
            assert!(response.is_object(), "{method} {path}: {} {}", answer.status, answer.body);
            if path == routes::REPLICATION_ARCHIVE {
                assert_eq!(answer.body, "archive of prod");
            } else {
                let format = &response["content"]["application/json"]["schema"];
                let wrong = schema::check(&server.document, format, &answer.body, "body");
                assert!(wrong.is_empty(), "{method} {path}: {wrong:?}");
            }
            checked += 1;
        }
    }
    assert_eq!(checked, 115, "an endpoint was added or lost: adjust this count knowingly");
    server.http.stop();
}

/// Generators of clients refuse a document where it is otherwise.
#[test]
fn parameters_in_a_path_are_those_that_its_template_names() {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let named: Vec<&str> = parts.collect();
        for (method, operation) in methods.as_object().unwrap() {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let in_path = parameters.filter(|parameter| parameter["in"] == "path");
            let told: Vec<&str> = in_path.filter_map(|one| one["name"].as_str()).collect();
            assert_eq!(told, named, "{method} {path}");
        }
    }
}

#[test]
fn fields_that_scripts_rely_on_are_required_by_the_document() {
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let contract = [
        (
            "Dsource",
            "name state connector server_version logical_bytes stored_bytes synced_to lag_bytes lag_ms \
             snapshots",
        ),
        ("SyncedTo", "lsn time"),
        ("Snapshot", "id time lsn ready"),
        ("Vdb", "name state parent moment host port user uri unique_bytes timings"),
        ("Position", "snapshot lsn time"),
        ("ProvisionTimings", "total_ms clone_ms mount_ms recover_ms replay_ms log_bytes start_ms"),
        (
            "PoolStatus",
            "capacity_bytes used_bytes free_bytes logical_bytes live_bytes compression_ratio \
             dedup_ratio zero_saved_bytes cache",
        ),
        ("CacheStatus", "size_bytes used_bytes blocks hits misses hit_ratio"),
        ("DsourceList", "dsources"),
        ("VdbList", "vdbs"),
        ("SnapshotList", "snapshots"),
        ("JobList", "jobs"),
        ("Job", "id kind object state progress started_at ended_at steps error"),
        ("JobProgress", "done total unit"),
        ("ErrorDetail", "code message hint"),
    ];
    for (name, fields) in contract {
        let required = document["components"]["schemas"][name]["required"].as_array().unwrap();
        for field in fields.split_whitespace() {
            assert!(required.contains(&json!(field)), "{name}.{field}");
        }
    }
    let states = &document["components"]["schemas"]["VdbState"];
    for state in ["running", "stopped", "provisioning", "failed"] {
        assert!(states.to_string().contains(&format!("\"{state}\"")), "{states}");
    }
}

#[test]
fn nothing_but_the_document_is_told_without_the_token() {
    let server = start();
    let token = server.token.reveal().to_owned();
    for (path, methods) in server.document["paths"].as_object().unwrap() {
        // Another one for each, as nobody is told so for long.
        let server = start();
        for method in methods.as_object().unwrap().keys() {
            let answer = match (method.as_str(), path.as_str()) {
                // It takes a code in place of a token.
                ("post", "/api/v1/console/session") => {
                    let json = [("content-type", "application/json")];
                    server.send_with("POST", path, Some(r#"{"code": "guessed"}"#), &json)
                }
                _ => server.send_with(&method.to_uppercase(), path, None, &[]),
            };
            server.assert_error(&answer, 401, ErrorKind::Unauthorized);
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
    let wrong = [
        format!("Bearer {}x", &token[..63]),
        format!("Bearer {token} "),
        format!("bearer{token}"),
        format!("Basic {token}"),
        token.clone(),
        "Bearer ".to_owned(),
    ];
    for header in &wrong {
        let headers = [("authorization", header.as_str())];
        let answer = server.send_with("GET", "/api/v1/status", None, &headers);
        // Blanks at the end of a header are no part of its value.
        let same = header.trim_end() == format!("Bearer {token}");
        assert_eq!(answer.status, if same { 200 } else { 401 }, "{header}");
    }
    let hidden = server.send_with("GET", "/api/v1/nothing", None, &[]);
    server.assert_error(&hidden, 401, ErrorKind::Unauthorized);
    let open = server.send_with("GET", "/api/v1/openapi.json", None, &[]);
    assert_eq!((open.status, &open.body), (200, &server.document));
}

#[test]
fn wrong_requests_are_refused_in_the_one_format() {
    let server = start();
    make_objects(&server);
    let refused = |method, path, body, status, code| {
        server.assert_error(&server.send(method, path, body), status, code);
    };
    refused("GET", "/nothing", None, 404, ErrorKind::NotFound);
    refused("GET", "/api/v1/vdbs/nobody", None, 404, ErrorKind::NotFound);
    refused("GET", "/api/v1/vdbs/%2E%2E", None, 404, ErrorKind::NotFound);
    refused("GET", "/api/v1/masks/nobody/report", None, 404, ErrorKind::NotFound);
    refused(
        "GET",
        "/api/v1/masks/prod-masked/report?format=pdf",
        None,
        400,
        ErrorKind::InvalidInput,
    );
    refused("POST", "/api/v1/mask-keys/nobody/rotate", None, 404, ErrorKind::NotFound);
    refused("GET", "/api/v1/vdbs/%FF", None, 400, ErrorKind::InvalidInput);
    refused("GET", "/api/v1/jobs/12", None, 400, ErrorKind::InvalidInput);
    refused("GET", "/api/v1/snapshots/vdb-1", None, 400, ErrorKind::InvalidInput);
    refused("GET", "/api/v1/snapshots?objekt=x", None, 400, ErrorKind::InvalidInput);
    for query in [
        "",
        "?from=2026-11-21T15:00:00Z&to=2026-11-21T14:00:00Z&parts=60",
        "?from=2026-11-21T14:00:00Z&to=2026-11-21T15:00:00Z&parts=0",
        "?from=2026-11-21T14:00:00Z&to=2026-11-21T15:00:00Z&parts=1001",
    ] {
        let path = format!("/api/v1/timeflows/prod/commits{query}");
        server.assert_error(&server.send("GET", &path, None), 400, ErrorKind::InvalidInput);
    }
    refused("PUT", "/api/v1/vdbs", None, 405, ErrorKind::InvalidInput);
    refused("POST", "/api/v1/status", None, 405, ErrorKind::InvalidInput);
    refused("POST", "/api/v1/vdbs", Some("{"), 400, ErrorKind::InvalidInput);
    refused("POST", "/api/v1/vdbs", Some(r#"{"from": "x"}"#), 422, ErrorKind::InvalidInput);
    let misspelt = Some(r#"{"name": "x", "from": "prod", "prot": 1}"#);
    refused("POST", "/api/v1/vdbs", misspelt, 422, ErrorKind::InvalidInput);
    let half = Some(r#"{"left": {"object": "prod"}}"#);
    refused("POST", "/api/v1/diffs", half, 422, ErrorKind::InvalidInput);
    let moment = Some(r#"{"moment": {"kind": "yesterday"}}"#);
    refused("POST", "/api/v1/vdbs/dev/refresh", moment, 422, ErrorKind::InvalidInput);
    // Just over the limit, so that it is all read before it is refused and the answer gets through.
    let large = format!(r#"{{"object": "{}"}}"#, "x".repeat(1 << 20));
    refused("POST", "/api/v1/snapshots", Some(&large), 413, ErrorKind::InvalidInput);
    let archives = "/api/v1/replication/archives";
    refused("POST", archives, Some("something else"), 400, ErrorKind::InvalidInput);
    let elsewhere = "/api/v1/replication/archives?to=west";
    refused("POST", elsewhere, Some("archive of a"), 400, ErrorKind::InvalidInput);
    refused("GET", "/api/v1/replication/archives/nobody", None, 404, ErrorKind::NotFound);
    let perhaps = "/api/v1/replication/archives/prod?plain=perhaps";
    refused("GET", perhaps, None, 400, ErrorKind::InvalidInput);
    let again = Some(r#"{"name": "dev", "from": "prod"}"#);
    refused("POST", "/api/v1/vdbs", again, 409, ErrorKind::AlreadyExists);
    let token = format!("Bearer {}", server.token.reveal());
    let plain = [("authorization", token.as_str()), ("content-type", "text/plain")];
    let answer = server.send_with("POST", "/api/v1/snapshots", Some("{}"), &plain);
    server.assert_error(&answer, 415, ErrorKind::InvalidInput);
}

#[test]
fn a_panic_is_answered_and_the_server_goes_on() {
    let server = start();
    let answer = server.send("GET", "/api/v1/dsources/panic", None);
    server.assert_error(&answer, 500, ErrorKind::Internal);
    assert_eq!(server.send("GET", "/api/v1/status", None).status, 200);
}

#[test]
fn listens_on_loopback_alone_and_says_when_the_port_is_taken() {
    let start = |listen: &str| {
        let listen: std::net::SocketAddr = listen.parse().unwrap();
        HttpServer::start(listen, Arc::new(StandIn::default()), Token::random())
    };
    for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:7640"] {
        let failure = start(open).unwrap_err();
        assert_eq!(failure.code, ErrorKind::InvalidInput);
        assert!(failure.message.contains("TLS"), "{}", failure.message);
    }
    let first = start("127.0.0.1:0").unwrap();
    let failure = start(&first.local_addr().to_string()).unwrap_err();
    assert_eq!(failure.code, ErrorKind::AlreadyExists);
    first.stop();
}

#[test]
fn the_checked_in_document_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../openapi/offshoot.json");
    if std::env::var_os("OFFSHOOT_UPDATE_OPENAPI").is_some() {
        std::fs::write(file, openapi_json()).unwrap();
    }
    let checked_in = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        checked_in == openapi_json(),
        "openapi/offshoot.json is stale; run: \
         OFFSHOOT_UPDATE_OPENAPI=1 cargo test -p offshoot-server --test contract document"
    );
}
