//! Who may ask for what: every endpoint with every role.
#![allow(clippy::unwrap_used)]

mod stand_in;

use offshoot_server::{HttpServer, openapi_json};
use serde_json::{Value, json};
use stand_in::served;
use std::collections::BTreeMap;

struct Server {
    http: HttpServer,
    token: String,
}

fn start() -> Server {
    let (http, token) = served();
    let server = Server { http, token: token.reveal().to_owned() };
    for name in ["prod", "other"] {
        let body = json!({"name": name, "connector": "postgres", "source": "postgresql://a@b/c"});
        assert_eq!(server.owner("POST", "/api/v1/dsources", body).0, 202);
    }
    let body = json!({"name": "theirs", "from": "prod"});
    assert_eq!(server.owner("POST", "/api/v1/vdbs", body).0, 202);
    server
}

impl Server {
    fn send(&self, token: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).proxy(None).build().into();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.http.local_addr()))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/json")
            .body(body)
            .unwrap();
        let request = agent.configure_request(request).allow_non_standard_methods(true).build();
        let mut answer = agent.run(request).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or_default())
    }

    fn owner(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        self.send(&self.token, method, path, body)
    }

    /// A token of a new user.
    fn user(&self, name: &str, role: &str, parents: &[&str]) -> String {
        let body = json!({"name": name, "role": role, "parents": parents});
        assert_eq!(self.owner("POST", "/api/v1/users", body).0, 200);
        let (status, made) = self.owner("POST", "/api/v1/tokens", json!({"user": name}));
        assert_eq!(status, 200, "{made}");
        made["token"].as_str().unwrap().to_owned()
    }
}

/// Which roles may ask for what: `a`dmin, `o`perator, `d`eveloper, a`u`ditor. Beside the engine's own table on purpose.
const MAY: &[(&str, &str)] = &[
    ("get openapi.json", "aodu"),
    ("get status", "aodu"),
    ("get dsources", "aodu"),
    ("post dsources", "a"),
    ("get dsources/{name}", "aodu"),
    ("post dsources/{name}", "a"),
    ("delete dsources/{name}", "a"),
    ("post dsources/{name}/sync", "ao"),
    ("post dsources/{name}/pause", "ao"),
    ("post dsources/{name}/resume", "ao"),
    ("get snapshots", "aodu"),
    ("post snapshots", "aod"),
    ("get snapshots/{id}", "aodu"),
    ("delete snapshots/{id}", "aod"),
    ("get vdbs", "aodu"),
    ("post vdbs", "aod"),
    ("get vdbs/{name}", "aodu"),
    ("post vdbs/{name}", "aod"),
    ("get vdbs/{name}/log", "aod"),
    ("get vdbs/{name}/hooks", "aod"),
    ("delete vdbs/{name}", "aod"),
    ("post vdbs/{name}/start", "aod"),
    ("post vdbs/{name}/stop", "aod"),
    ("post vdbs/{name}/reset-password", "aod"),
    ("post vdbs/{name}/parent", "ao"),
    ("post vdbs/{name}/refresh", "aod"),
    ("post vdbs/{name}/rewind", "aod"),
    ("get templates", "aodu"),
    ("post templates", "ao"),
    ("get templates/{name}", "aodu"),
    ("post templates/{name}", "ao"),
    ("delete templates/{name}", "ao"),
    ("get groups", "aodu"),
    ("post groups", "ao"),
    ("get groups/{name}", "aodu"),
    ("delete groups/{name}", "ao"),
    ("get vdb-groups", "aodu"),
    ("post vdb-groups", "aod"),
    ("get vdb-groups/{name}", "aodu"),
    ("delete vdb-groups/{name}", "aod"),
    ("post vdb-groups/{name}/start", "aod"),
    ("post vdb-groups/{name}/stop", "aod"),
    ("post vdb-groups/{name}/refresh", "aod"),
    ("post vdb-groups/{name}/rewind", "aod"),
    ("post vdb-groups/{name}/bookmark", "aod"),
    ("post bisections", "aod"),
    ("get bisections/{id}", "aod"),
    ("get masks", "aou"),
    ("post masks", "ao"),
    ("post masks/check", "ao"),
    ("get masks/{name}", "aou"),
    ("get masks/{name}/report", "aou"),
    ("get mask-keys", "aou"),
    ("post mask-keys/{name}/rotate", "a"),
    ("get mask-report-key", "aou"),
    ("post mask-discoveries", "ao"),
    ("get mask-discoveries/{id}", "ao"),
    ("post replication/archives", "a"),
    ("get replication/archives/{name}", "a"),
    ("post replication/failovers", "a"),
    ("get peers", "aou"),
    ("post peers", "a"),
    ("post peer-invitations", "a"),
    ("post peer-key/rotate", "a"),
    ("get topology", "aou"),
    ("get peers/{name}", "aou"),
    ("delete peers/{name}", "a"),
    ("get replication/profiles", "aou"),
    ("post replication/profiles", "a"),
    ("get replication/profiles/{name}", "aou"),
    ("delete replication/profiles/{name}", "a"),
    ("get replication/profiles/{name}/history", "aou"),
    ("post replication/profiles/{name}/run", "ao"),
    ("post replication/profiles/{name}/pause", "ao"),
    ("post replication/profiles/{name}/resume", "ao"),
    ("post mask-previews", "ao"),
    ("get mask-previews/{id}", "ao"),
    ("post diffs", "aod"),
    ("get diffs/{id}", "aod"),
    ("get bookmarks", "aodu"),
    ("post bookmarks", "aod"),
    ("get bookmarks/{name}", "aodu"),
    ("delete bookmarks/{name}", "aod"),
    ("get timeflows/{name}", "aodu"),
    ("get timeflows/{name}/commits", "aodu"),
    ("post console/codes", "aodu"),
    ("post console/session", "aodu"),
    ("get console/session", "aodu"),
    ("delete console/session", "aodu"),
    ("get events", "aodu"),
    ("get policies", "aodu"),
    ("get policies/{name}", "aodu"),
    ("post policies/{name}", "ao"),
    ("get jobs", "aodu"),
    ("get jobs/{id}", "aodu"),
    ("post jobs/{id}/cancel", "aod"),
    ("get users", "au"),
    ("post users", "a"),
    ("post users/{name}", "a"),
    ("delete users/{name}", "a"),
    ("get tokens", "au"),
    ("post tokens", "a"),
    ("delete tokens/{id}", "a"),
    ("get audit", "au"),
    ("get webhooks", "a"),
    ("post webhooks", "a"),
    ("get webhooks/{name}", "a"),
    ("post webhooks/{name}", "a"),
    ("delete webhooks/{name}", "a"),
    ("post webhooks/{name}/test", "a"),
    ("get secrets", "au"),
    ("post secrets/rotate", "a"),
    ("get pool", "aodu"),
    ("get pool/ledger", "aodu"),
    ("post pool/reclaim", "ao"),
    ("get pool/scrub", "aou"),
    ("post pool/scrub", "ao"),
];

/// A day of commits, one by the hour.
const DAY: &str = "from=2026-11-21T00:00:00Z&to=2026-11-22T00:00:00Z&parts=24";

#[test]
fn every_endpoint_is_for_the_roles_that_are_meant_and_no_others() {
    let server = start();
    let roles = [('a', "admin"), ('o', "operator"), ('d', "developer"), ('u', "auditor")];
    let tokens = roles.map(|(letter, role)| (letter, role, server.user(role, role, &["prod"])));
    let may: BTreeMap<&str, &str> = MAY.iter().copied().collect();
    let document: Value = serde_json::from_str(&openapi_json()).unwrap();
    let mut seen = 1;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let endpoint = format!("{method} {}", path.trim_start_matches("/api/v1/"));
            let allowed = may.get(endpoint.as_str());
            let allowed = allowed.unwrap_or_else(|| panic!("say who may: {endpoint}"));
            // Nothing is there by these names, so nothing is changed by those who may.
            let address = path.replace("{name}", "nothing").replace("{id}", "token-99");
            for (letter, role, token) in &tokens {
                // An answer without an end: tests/console.rs reads it.
                if endpoint == "get events" {
                    continue;
                }
                let (status, body) =
                    server.send(token, &method.to_uppercase(), &address, Value::Null);
                let message = body["error"]["message"].as_str().unwrap_or_default();
                let by_role = status == 403 && message.contains("of the role");
                assert_eq!(
                    !by_role,
                    allowed.contains(*letter),
                    "{endpoint} {role}: {status} {body}"
                );
                assert_ne!(status, 401, "{endpoint} {role}");
            }
            seen += 1;
        }
    }
    assert_eq!(seen, MAY.len());
    server.http.stop();
}

#[test]
fn a_developer_compares_what_it_may_see_and_nothing_else() {
    let server = start();
    let (eve, bob) =
        (server.user("eve", "developer", &["prod"]), server.user("bob", "developer", &[]));
    let both = json!({"left": {"object": "prod"}, "right": {"object": "prod"}});
    let (status, begun) = server.send(&eve, "POST", "/api/v1/diffs", both.clone());
    assert_eq!(status, 202, "{begun}");
    let found = format!("/api/v1/diffs/{}", begun["job"].as_str().unwrap());
    assert_eq!(server.send(&eve, "GET", &found, Value::Null).0, 200);
    assert_eq!(server.send(&bob, "GET", &found, Value::Null).0, 404);
    let (status, answer) = server.send(&bob, "POST", "/api/v1/diffs", both);
    assert_eq!(status, 404, "{answer}");
    assert!(answer.to_string().contains("that you may see"), "{answer}");
    server.http.stop();
}

#[test]
fn a_developer_reaches_nothing_of_others() {
    let server = start();
    let (eve, bob) =
        (server.user("eve", "developer", &["prod"]), server.user("bob", "developer", &[]));
    let made = json!({"name": "eves", "from": "prod"});
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdbs", made).0, 202);
    for vdb in ["theirs", "eves", "vdb-1", "vdb-2", "nothing"] {
        for (method, path, body) in [
            ("GET", format!("/api/v1/vdbs/{vdb}"), Value::Null),
            ("GET", format!("/api/v1/vdbs/{vdb}/hooks"), Value::Null),
            ("DELETE", format!("/api/v1/vdbs/{vdb}"), Value::Null),
            ("POST", format!("/api/v1/vdbs/{vdb}/stop"), Value::Null),
            ("POST", format!("/api/v1/vdbs/{vdb}/start"), Value::Null),
            ("POST", format!("/api/v1/vdbs/{vdb}/reset-password"), Value::Null),
            ("POST", format!("/api/v1/vdbs/{vdb}/refresh"), json!({})),
            ("POST", format!("/api/v1/vdbs/{vdb}/rewind"), json!({"to": {"kind": "undo"}})),
            ("POST", "/api/v1/snapshots".into(), json!({"object": vdb})),
            ("POST", "/api/v1/bookmarks".into(), json!({"name": "b", "on": vdb})),
            ("POST", "/api/v1/vdbs".into(), json!({"name": "mine", "from": vdb})),
            ("GET", format!("/api/v1/snapshots?object={vdb}"), Value::Null),
            ("GET", format!("/api/v1/timeflows/{vdb}"), Value::Null),
            ("GET", format!("/api/v1/timeflows/{vdb}/commits?{DAY}"), Value::Null),
            ("GET", format!("/api/v1/policies/{vdb}"), Value::Null),
            ("GET", format!("/api/v1/pool/ledger?object={vdb}"), Value::Null),
            ("GET", format!("/api/v1/pool/ledger?delete={vdb}"), Value::Null),
        ] {
            let (status, answer) = server.send(&bob, method, &path, body);
            assert_eq!(status, 404, "{method} {path} {vdb}: {answer}");
            // Nothing tells what is there from what is not.
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains("that you may see"), "{method} {path}: {message}");
        }
    }
    for (list, key) in [
        ("vdbs", "vdbs"),
        ("dsources", "dsources"),
        ("snapshots", "snapshots"),
        ("jobs", "jobs"),
        ("bookmarks", "bookmarks"),
        ("policies", "policies"),
    ] {
        let (status, shown) = server.send(&bob, "GET", &format!("/api/v1/{list}"), Value::Null);
        assert_eq!((status, &shown[key]), (200, &json!([])), "{list}");
    }
    for job in 1..=4 {
        assert_eq!(
            server.send(&bob, "GET", &format!("/api/v1/jobs/job-{job}"), Value::Null).0,
            404
        );
        let cancel = format!("/api/v1/jobs/job-{job}/cancel");
        assert_eq!(server.send(&bob, "POST", &cancel, Value::Null).0, 404);
    }
    // Neither is it told on what a bookmark of others is, nor whether there is one.
    let mark = json!({"name": "mark", "on": "eves"});
    assert_eq!(server.send(&eve, "POST", "/api/v1/bookmarks", mark).0, 202);
    let said = ["mark", "nothing"].map(|name| {
        let moment = json!({"kind": "bookmark", "name": name});
        let body = json!({"name": "mine", "from": "vdb-2", "moment": moment});
        let (status, answer) = server.send(&bob, "POST", "/api/v1/vdbs", body);
        assert_eq!(status, 404, "{answer}");
        assert_eq!(
            server.send(&bob, "GET", &format!("/api/v1/bookmarks/{name}"), Value::Null).0,
            404
        );
        answer.to_string().replace(name, "NAME")
    });
    assert_eq!(said[0], said[1]);
    assert_eq!(server.send(&bob, "GET", "/api/v1/pool/ledger", Value::Null).0, 403);
    let (_, still) = server.owner("GET", "/api/v1/vdbs", Value::Null);
    assert_eq!(still["vdbs"].as_array().unwrap().len(), 2);
    server.http.stop();
}

#[test]
fn a_parent_may_be_used_but_not_changed_and_wishes_have_an_end() {
    let server = start();
    let eve = server.user("eve", "developer", &["prod", "theirs"]);
    let (_, shown) = server.send(&eve, "GET", "/api/v1/dsources/prod", Value::Null);
    assert_eq!(shown["source"], "", "where production is, is not told");
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdbs/theirs/stop", Value::Null).0, 403);
    assert_eq!(server.send(&eve, "POST", "/api/v1/snapshots", json!({"object": "prod"})).0, 403);
    for wish in [
        json!({"superuser": true}),
        json!({"keep_source_logins": true}),
        json!({"keep_foreign_servers": true}),
        json!({"allow_network": ["10.1.0.5:5432"]}),
        json!({"listen": ["10.1.0.5"], "allow": ["10.0.0.0/8"]}),
        json!({"settings": {"archive_command": "id"}}),
        json!({"settings": {"log_directory": "/etc"}}),
        json!({"hooks": [{"event": "after-stop", "program": "#!/bin/sh\nid"}]}),
    ] {
        let mut body = json!({"name": "mine", "from": "prod"});
        body.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
        let (status, answer) = server.send(&eve, "POST", "/api/v1/vdbs", body);
        assert_eq!(status, 403, "{wish}: {answer}");
    }
    assert_eq!(
        server.send(&eve, "POST", "/api/v1/vdbs", json!({"name": "no", "from": "other"})).0,
        404
    );
    let (status, _) =
        server.send(&eve, "POST", "/api/v1/vdbs", json!({"name": "mine", "from": "prod"}));
    assert_eq!(status, 202);
    for change in [
        json!({"settings": {"archive_command": "id"}}),
        json!({"hooks": [{"event": "after-stop", "program": "#!/bin/sh\nid"}]}),
    ] {
        let (status, answer) = server.send(&eve, "POST", "/api/v1/vdbs/mine", change.clone());
        assert_eq!(status, 403, "{change}: {answer}");
    }
    let (_, jobs) = server.send(&eve, "GET", "/api/v1/jobs", Value::Null);
    assert_eq!(jobs["jobs"].as_array().unwrap().len(), 1, "its own");
    server.http.stop();
}

#[test]
fn a_template_gives_developers_what_operators_chose_and_no_more() {
    let server = start();
    let eve = server.user("eve", "developer", &["prod"]);
    for (name, from) in [("ours", "prod"), ("theirs", "other"), ("open", "")] {
        let body = json!({"name": name, "from": from, "superuser": true,
            "hooks": [{"event": "after-stop", "program": "#!/bin/sh\nid"}]});
        assert_eq!(server.owner("POST", "/api/v1/templates", body).0, 200);
    }
    let (_, seen) = server.send(&eve, "GET", "/api/v1/templates", Value::Null);
    let seen = seen["templates"].as_array().unwrap().iter().map(|one| one["name"].clone());
    assert_eq!(seen.collect::<Vec<_>>(), ["open", "ours"]);
    assert_eq!(server.send(&eve, "GET", "/api/v1/templates/theirs", Value::Null).0, 404);
    let provision = |body: Value| server.send(&eve, "POST", "/api/v1/vdbs", body);
    for (body, status) in [
        (json!({"name": "a", "template": "theirs"}), 404),
        (json!({"name": "a", "template": "theirs", "from": "prod"}), 404),
        (json!({"name": "a", "template": "nothing"}), 404),
        (json!({"name": "a", "template": "ours", "from": "other"}), 403),
        (json!({"name": "a", "template": "ours", "superuser": true}), 403),
        (json!({"name": "a", "template": "open"}), 404),
        (json!({"name": "a", "template": "open", "from": "other"}), 404),
        (json!({"name": "a", "template": "ours"}), 202),
        (json!({"name": "b", "template": "open", "from": "prod"}), 202),
    ] {
        let (answered, answer) = provision(body.clone());
        assert_eq!(answered, status, "{body}: {answer}");
    }
    server.http.stop();
}

#[test]
fn a_group_is_for_developers_who_may_use_all_members() {
    let server = start();
    let (eve, bob) = (
        server.user("eve", "developer", &["prod", "other"]),
        server.user("bob", "developer", &["prod"]),
    );
    let group = json!({"name": "both", "members": ["prod", "other"]});
    assert_eq!(server.owner("POST", "/api/v1/groups", group).0, 200);
    let pair = |group: &str| json!({"name": "pair", "group": group});
    for group in ["both", "group-1", "nothing"] {
        assert_eq!(server.send(&bob, "POST", "/api/v1/vdb-groups", pair(group)).0, 404);
        let path = format!("/api/v1/groups/{group}");
        let (status, answer) = server.send(&bob, "GET", &path, Value::Null);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 404 && message.contains("that you may see"), "{answer}");
    }
    let mut wish = pair("both");
    wish["settings"] = json!({"archive_command": "id"});
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdb-groups", wish).0, 403);
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdb-groups", pair("both")).0, 202);
    let named = ["pair", "vdb-group-1", "nothing"];
    for (method, rest, body) in [
        ("GET", "", Value::Null),
        ("DELETE", "", Value::Null),
        ("POST", "/start", Value::Null),
        ("POST", "/stop", Value::Null),
        ("POST", "/refresh", json!({})),
        ("POST", "/rewind", json!({"bookmark": "b"})),
        ("POST", "/bookmark", json!({"bookmark": "b"})),
    ] {
        for name in named {
            let path = format!("/api/v1/vdb-groups/{name}{rest}");
            let (status, answer) = server.send(&bob, method, &path, body.clone());
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(status == 404 && message.contains("that you may see"), "{path}: {answer}");
        }
    }
    for (list, key) in [("groups", "groups"), ("vdb-groups", "vdb_groups")] {
        let shown = |token: &str| {
            let (_, list) = server.send(token, "GET", &format!("/api/v1/{list}"), Value::Null);
            assert!(!list.to_string().contains("secret"), "{list}");
            list[key].as_array().unwrap().len()
        };
        assert_eq!((shown(&bob), shown(&eve), shown(&server.token)), (0, 1, 1), "{list}");
    }
    let operator = server.user("operator", "operator", &[]);
    for (token, with) in [(&eve, true), (&server.token, false), (&operator, false)] {
        let (_, shown) = server.send(token, "GET", "/api/v1/vdb-groups/pair", Value::Null);
        assert_eq!(shown.to_string().contains(":secret@"), with, "{shown}");
    }
    assert_eq!(server.send(&eve, "DELETE", "/api/v1/vdb-groups/pair", Value::Null).0, 202);
    server.http.stop();
}

#[test]
fn passwords_are_for_owners_and_in_no_list() {
    let server = start();
    let eve = server.user("eve", "developer", &["prod", "theirs"]);
    let [admin, operator, auditor] =
        ["admin", "operator", "auditor"].map(|role| server.user(role, role, &[]));
    let made = json!({"name": "eves", "from": "prod"});
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdbs", made).0, 202);
    let shows = |token: &str, vdb: &str| {
        let (status, shown) =
            server.send(token, "GET", &format!("/api/v1/vdbs/{vdb}"), Value::Null);
        assert_eq!(status, 200, "{shown}");
        let uri = shown["uri"].as_str().unwrap();
        assert!(uri.starts_with("postgresql://offshoot") && uri.contains("@127.0.0.1"), "{uri}");
        let own = uri.contains(":secret@");
        let hooks = server.send(token, "GET", &format!("/api/v1/vdbs/{vdb}/hooks"), Value::Null);
        assert_eq!(hooks.0, if own { 200 } else { 403 }, "hooks hold passwords: {}", hooks.1);
        own
    };
    assert!(shows(&eve, "eves"));
    for other in [&server.token, &admin, &operator, &auditor] {
        assert!(!shows(other, "eves"));
    }
    assert!(shows(&admin, "theirs") && shows(&server.token, "theirs"), "nobody else's");
    assert!(!shows(&eve, "theirs"), "a parent's");
    for token in [&server.token, &admin, &operator, &auditor, &eve] {
        let (_, list) = server.send(token, "GET", "/api/v1/vdbs", Value::Null);
        assert_eq!(list["vdbs"].as_array().unwrap().len(), 2);
        assert!(!list.to_string().contains("secret"), "{list}");
    }
    server.http.stop();
}

#[test]
fn a_user_links_no_source_with_passwords_of_the_engine_s_own_user() {
    let server = start();
    let admin = server.user("admin", "admin", &[]);
    let link =
        |name: &str| json!({"name": name, "connector": "postgres", "source": "postgresql://a@b/c"});
    assert_eq!(server.send(&admin, "POST", "/api/v1/dsources", link("new")).0, 403);
    let mut with = link("new");
    with["password"] = "its own".into();
    assert_eq!(server.send(&admin, "POST", "/api/v1/dsources", with).0, 202);
    assert_eq!(server.owner("POST", "/api/v1/dsources", link("third")).0, 202);
    // Nor does another way lead there: without a password, with an empty one, by a socket of the engine's host.
    let there = |password: Value, source: &str| {
        let mut body = json!({"source": source});
        if !password.is_null() {
            body["password"] = password;
        }
        body
    };
    let (remote, socket) =
        ("postgresql://a@other/c", "postgresql://a@:5432/c?host=/run/postgresql");
    for (status, body) in [
        (403, there(Value::Null, remote)),
        (403, there("".into(), remote)),
        (403, there("its own".into(), socket)),
        (202, there("its own".into(), remote)),
        (202, json!({"password": "its own"})),
    ] {
        let (got, answer) = server.send(&admin, "POST", "/api/v1/dsources/prod", body.clone());
        assert_eq!(got, status, "{body}: {answer}");
    }
    let mut by_socket = link("fourth");
    by_socket["source"] = socket.into();
    assert_eq!(server.owner("POST", "/api/v1/dsources", by_socket.clone()).0, 202);
    by_socket["password"] = "its own".into();
    assert_eq!(server.send(&admin, "POST", "/api/v1/dsources", by_socket).0, 403);
    server.http.stop();
}

#[test]
fn a_bookmark_that_took_the_place_of_one_s_own_stays() {
    let server = start();
    let eve = server.user("eve", "developer", &["prod"]);
    let made = json!({"name": "eves", "from": "prod"});
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdbs", made).0, 202);
    for name in ["mine", "fleeting"] {
        let mark = json!({"name": name, "on": "eves"});
        assert_eq!(server.send(&eve, "POST", "/api/v1/bookmarks", mark).0, 202);
    }
    // Between the look at whose it is and the deletion it becomes another one, on a VDB that is not eve's.
    let (status, answer) = server.send(&eve, "DELETE", "/api/v1/bookmarks/fleeting", Value::Null);
    assert_eq!(status, 404, "{answer}");
    let (status, still) = server.owner("GET", "/api/v1/bookmarks/fleeting", Value::Null);
    assert_eq!((status, &still["object"]), (200, &json!("theirs")), "{still}");
    assert_eq!(server.send(&eve, "DELETE", "/api/v1/bookmarks/mine", Value::Null).0, 202);
    server.http.stop();
}

#[test]
fn a_token_that_was_revoked_and_one_of_a_user_who_left_are_good_for_nothing() {
    let server = start();
    let (eve, bob) = (server.user("eve", "admin", &[]), server.user("bob", "admin", &[]));
    assert_eq!(server.send(&eve, "GET", "/api/v1/users", Value::Null).0, 200);
    let (_, tokens) = server.owner("GET", "/api/v1/tokens", Value::Null);
    assert!(!tokens.to_string().contains(&eve), "it is shown once");
    assert_eq!(server.owner("DELETE", "/api/v1/tokens/token-1", Value::Null).0, 200);
    assert_eq!(server.send(&eve, "GET", "/api/v1/users", Value::Null).0, 401);
    assert_eq!(server.owner("DELETE", "/api/v1/users/bob", Value::Null).0, 200);
    assert_eq!(server.send(&bob, "GET", "/api/v1/users", Value::Null).0, 401);
    server.http.stop();
}

#[test]
fn a_token_that_is_revoked_while_the_body_is_sent_does_nothing_more() {
    use std::io::{Read, Write};
    let server = start();
    let eve = server.user("eve", "admin", &[]);
    let body = json!({"name": "late", "role": "admin"}).to_string();
    let mut stream = std::net::TcpStream::connect(server.http.local_addr()).unwrap();
    let head = format!(
        "POST /api/v1/users HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {eve}\r\nconnection: close\r\n\
         content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The body is asked for: the token was good until here.
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).unwrap();
    assert!(asked.starts_with(b"HTTP/1.1 100"));
    assert_eq!(server.owner("DELETE", "/api/v1/tokens/token-1", Value::Null).0, 200);
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let (_, users) = server.owner("GET", "/api/v1/users", Value::Null);
    assert_eq!(users["users"].as_array().unwrap().len(), 1);
    server.http.stop();
}

#[test]
fn the_audit_knows_who_asked_for_what_and_no_secrets() {
    let server = start();
    let eve = server.user("eve", "developer", &["prod"]);
    let auditor = server.user("auditor", "auditor", &[]);
    let body = json!({"name": "eves", "from": "prod"});
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdbs", body).0, 202);
    assert_eq!(server.send(&eve, "POST", "/api/v1/vdbs/theirs/stop", Value::Null).0, 404);
    assert_eq!(server.send(&eve, "GET", "/api/v1/users", Value::Null).0, 403);
    let link = json!({"name": "new", "connector": "postgres", "source": "postgresql://a@b/c",
        "password": "hunter2"});
    assert_eq!(server.send(&eve, "POST", "/api/v1/dsources", link.clone()).0, 403);
    assert_eq!(server.owner("POST", "/api/v1/dsources", link).0, 202);
    assert_eq!(server.send("guessed", "GET", "/api/v1/users", Value::Null).0, 401);
    let (status, audit) = server.send(&auditor, "GET", "/api/v1/audit?limit=6", Value::Null);
    assert_eq!(status, 200);
    let lines: Vec<String> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let field = |name: &str| one[name].as_str().unwrap_or("-").to_owned();
            assert!(field("origin").starts_with("127.0.0.1:"), "{one}");
            ["user", "action", "object", "outcome", "job"].map(field).join(" ")
        })
        .collect();
    assert_eq!(
        lines,
        [
            "(unknown) user list  unauthorized -",
            "(pool token) dsource link new done job-5",
            "eve dsource link  forbidden -",
            "eve user list  forbidden -",
            "eve vdb stop theirs not_found -",
            "eve vdb provision eves done job-4",
        ]
    );
    let (_, all) = server.send(&auditor, "GET", "/api/v1/audit", Value::Null);
    for secret in ["hunter2", &eve, &server.token] {
        assert!(!all.to_string().contains(secret));
    }
    let (_, eves) = server.send(&auditor, "GET", "/api/v1/audit?user=eve", Value::Null);
    assert_eq!(eves["entries"].as_array().unwrap().len(), 4);
    server.http.stop();
}

#[test]
fn paths_that_look_like_others_reach_nothing_more() {
    let server = start();
    let eve = server.user("eve", "developer", &[]);
    for path in [
        "/api/v1/users/",
        "/api/v1//users",
        "/api/v1/./users",
        "/api/v1/vdbs/../users",
        "/api/v1/vdbs/%2e%2e/users",
        "/api/v1/vdbs/..%2fusers",
        "/API/v1/users",
        "/api/v1/users%2f",
        "/api/v1/users;x",
        "/api/v1/%75sers",
    ] {
        for method in ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"] {
            let (status, answer) =
                server.send(&eve, method, path, json!({"name": "x", "role": "admin"}));
            assert!(
                [400, 403, 404, 405, 422].contains(&status),
                "{method} {path}: {status} {answer}"
            );
        }
    }
    assert_eq!(server.send(&eve, "HEAD", "/api/v1/users", Value::Null).0, 403);
    server.http.stop();
}

/// Values of production in a preview are for administrators alone.
#[test]
fn originals_are_shown_to_administrators_only() {
    let server = start();
    let body = |originals: bool| json!({"from": "prod", "rules": "version: 1", "table": "t", "originals": originals});
    let (operator, admin) =
        (server.user("olga", "operator", &[]), server.user("ada", "admin", &[]));
    let path = "/api/v1/mask-previews";
    let (status, refused) = server.send(&operator, "POST", path, body(true));
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("forbidden")), "{refused}");
    assert_eq!(server.send(&operator, "POST", path, body(false)).0, 202);
    // Nor are those that an administrator has asked for.
    assert_eq!(server.send(&admin, "POST", path, body(true)).0, 202);
    let shown =
        |token: &str| server.send(token, "GET", "/api/v1/mask-previews/job-1", json!(null)).1;
    assert_eq!(shown(&operator)["rows"][0][0].get("before"), None);
    assert_eq!(shown(&admin)["rows"][0][0]["before"], "maria@firm.test");
}
