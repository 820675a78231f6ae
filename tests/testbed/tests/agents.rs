//! What coding agents get by `offshoot mcp`, spoken to as they speak.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use offshoot_api::Status;
use offshoot_testbed::{PATIENCE, Testbed, binary, code_blocks, text_of, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A version of the protocol that many agents speak.
const PROTOCOL: &str = "2025-06-18";

struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Agent {
    /// As the configuration in the document starts it, with more options.
    fn start(bed: &Testbed, options: &[&str]) -> Agent {
        let configuration = &code_blocks("docs/mcp.md", "", "json")[0];
        let configuration: Value = serde_json::from_str(configuration).unwrap();
        let server = &configuration["mcpServers"]["offshoot"];
        assert_eq!(server["command"], "offshoot");
        let pool = bed.engine.pool().to_str().unwrap();
        let words = server["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let words = words.map(|word| if word == "/data/pool" { pool } else { word });
        Agent::launch(words.chain(options.iter().copied()))
    }

    fn launch<'a>(arguments: impl Iterator<Item = &'a str>) -> Agent {
        let mut child = Command::new(binary())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let mut agent = Agent { child, input, output: BufReader::new(output), asked: 0 };
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client});
        let answer = agent.ask("initialize", hello);
        assert_eq!(answer["serverInfo"]["name"], "offshoot", "{answer}");
        agent.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn send(&mut self, message: Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request; its id.
    fn request(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it has ended");
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        loop {
            let mut answer = self.receive();
            if answer["id"] == id {
                return answer["result"].take();
            }
        }
    }

    /// The code of the error that answers what is sent now.
    fn error_of(&mut self, line: &[u8]) -> (Value, i64) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        let answer = self.receive();
        (
            answer["id"].clone(),
            answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}")),
        )
    }

    fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", json!({}));
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        answer["tools"].as_array().unwrap().iter().map(name).collect()
    }

    /// What a tool returns, or why it refuses.
    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, String> {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        if answer["isError"] == true {
            return Err(text.to_owned());
        }
        Ok(serde_json::from_str(text).unwrap())
    }

    fn query(&mut self, vdb: &str, sql: &str) -> Result<Value, String> {
        self.call("query", json!({"vdb": vdb, "sql": sql}))
    }

    /// Ends it as agents do: nothing more comes.
    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn an_agent_that_looks_cannot_write() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &[]).unwrap();
    bed.open("dev").unwrap().execute("CREATE TABLE pets AS SELECT g AS id, 'pet ' || g AS name FROM generate_series(1, 300) g").unwrap();
    let mut agent = Agent::start(&bed, &[]);
    let tools = agent.tools();
    assert!(tools.contains(&"query".to_owned()));
    let changing =
        ["provision_vdb", "execute", "take_snapshot", "rewind_vdb", "refresh_vdb", "delete_vdb"];
    for tool in changing {
        assert!(!tools.contains(&tool.to_owned()), "{tool} is offered");
    }

    let vdbs = agent.call("list_vdbs", json!({})).unwrap();
    assert_eq!((&vdbs[0]["name"], vdbs[0].get("uri")), (&json!("dev"), None));
    assert_eq!(agent.call("list_dsources", json!({})).unwrap()["dsources"][0]["name"], "shop");
    assert!(agent.call("status", json!({})).unwrap()["vdbs"].as_u64() == Some(1));
    assert!(
        !agent.call("show_history", json!({"name": "shop"})).unwrap()["timeflows"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert!(agent.call("vdb_log", json!({"name": "dev"})).unwrap()["text"].is_string());
    assert!(agent.call("show_history", json!({"name": "nobody"})).unwrap_err().contains("\nhint"));

    let answer = agent.query("dev", "SELECT id, name, NULL FROM pets ORDER BY id;").unwrap();
    assert_eq!((answer["rows"].as_array().unwrap().len(), &answer["cut"]), (100, &json!(true)));
    assert_eq!(answer["row_count"], 100);
    assert_eq!(answer["rows"][6], json!(["7", "pet 7", null]));
    assert_eq!(agent.query("dev", "SHOW server_version_num").unwrap()["cut"], false);
    assert!(
        agent.query("dev", "EXPLAIN SELECT * FROM pets").unwrap()["row_count"].as_u64() > Some(0)
    );
    let attempts = [
        "DELETE FROM pets",
        "DELETE FROM pets RETURNING id",
        "SELECT 1; DELETE FROM pets",
        "COMMIT; DELETE FROM pets",
        "COMMIT",
        "WITH gone AS (DELETE FROM pets RETURNING id) SELECT * FROM gone",
        "SET TRANSACTION READ WRITE",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "EXPLAIN ANALYZE DELETE FROM pets",
        "SELECT 1) ; DELETE FROM pets; SELECT (1",
    ];
    for sql in attempts {
        assert!(agent.query("dev", sql).is_err(), "{sql}");
    }
    assert!(agent.query("dev", "SELEC 1").unwrap_err().contains("syntax error"));
    assert_eq!(agent.query("dev", "SELECT count(*) FROM pets").unwrap()["rows"][0][0], "300");
    agent.end();
}

#[test]
fn an_agent_changes_what_it_has_made_and_nothing_else() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &[]).unwrap();
    let mut agent = Agent::start(&bed, &["--allow-changes", "--expires", "2h"]);
    assert_eq!(agent.tools().into_iter().collect::<BTreeSet<_>>(), documented_tools());
    let wanted =
        json!({"name": "try", "from": "dev", "expires_in_hours": 48, "description": "an index"});
    let made = agent.call("provision_vdb", wanted).unwrap();
    assert_eq!((&made["state"], &made["labels"]["made-by"]), (&json!("running"), &json!("mcp")));
    let vdb = bed.vdb("try").unwrap();
    let kept = vdb.expires_at.unwrap().duration_since(vdb.created_at);
    assert!(kept.as_secs() <= 7200 + 60, "it is kept for {kept}");
    assert!(made["uri"].as_str().unwrap().contains(&format!(":{}/", vdb.port)));

    let execute = |sql: &str| json!({"vdb": "try", "sql": sql});
    let sql = "CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2); SELECT sum(n) FROM t";
    assert_eq!(agent.call("execute", execute(sql)).unwrap()["rows"], json!([["3"]]));
    let snapshots = agent.call("take_snapshot", json!({"name": "try"})).unwrap();
    let snapshot = snapshots["snapshots"][0]["id"].as_str().unwrap().to_owned();
    agent.call("execute", execute("DROP TABLE t")).unwrap();
    agent.call("rewind_vdb", json!({"name": "try", "snapshot": snapshot})).unwrap();
    assert_eq!(agent.query("try", "SELECT count(*) FROM t").unwrap()["rows"][0][0], "2");
    agent.call("refresh_vdb", json!({"name": "try"})).unwrap();
    assert!(agent.query("try", "SELECT count(*) FROM t").is_err());

    for (tool, arguments) in [
        ("execute", json!({"vdb": "dev", "sql": "SELECT 1"})),
        ("take_snapshot", json!({"name": "dev"})),
        ("rewind_vdb", json!({"name": "dev"})),
        ("refresh_vdb", json!({"name": "dev"})),
        ("delete_vdb", json!({"name": "dev"})),
    ] {
        let refused = agent.call(tool, arguments).unwrap_err();
        assert!(refused.contains("not made by this server"), "{tool}: {refused}");
    }
    // A hint is about tools, or says that it is not.
    let none = json!({"name": "other", "from": "dev", "expires_in_hours": 0});
    let refused = agent.call("provision_vdb", none).unwrap_err();
    assert!(refused.contains("expires_in_hours") && !refused.contains("--expires"), "{refused}");
    bed.engine.command(["vdb", "stop", "dev"]).unwrap();
    let refused = agent.query("dev", "SELECT 1").unwrap_err();
    assert!(
        refused.contains("hint for the command line: start it: offshoot vdb start"),
        "{refused}"
    );
    let deleted = agent.call("delete_vdb", json!({"name": "try"})).unwrap();
    assert_eq!(deleted, json!({"name": "try", "deleted": true}));
    assert!(bed.vdb("try").is_err());
    agent.end();
}

/// The names in the first column of the document's table.
fn documented_tools() -> BTreeSet<String> {
    let text = text_of("docs/mcp.md");
    let first = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    let names = first.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.filter(|name| !name.starts_with("--")).map(str::to_owned).collect()
}

#[test]
fn an_agent_elsewhere_has_the_rights_of_its_token() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("private", "shop", &[]).unwrap();
    bed.engine.command("user add agent --role developer --parent shop".split(' ')).unwrap();
    let made = bed.engine.command(["token", "create", "--user", "agent"]).unwrap();
    let file = bed.scratch.path().join("token");
    std::fs::write(&file, made["token"].as_str().unwrap()).unwrap();
    let status: Status = bed.engine.ask(["status"]).unwrap();
    let (server, file) = (format!("http://{}", status.listen), file.to_str().unwrap());
    let line = ["mcp", "--allow-changes", "--server", &server, "--token-file", file];
    let mut agent = Agent::launch(line.into_iter());
    agent.call("provision_vdb", json!({"name": "try", "from": "shop"})).unwrap();
    let answer = agent.query("try", "SELECT count(*) FROM pgbench_branches").unwrap();
    assert_eq!(answer["rows"][0][0], "1");
    assert!(agent.query("private", "SELECT 1").is_err());
    assert!(agent.call("provision_vdb", json!({"name": "other", "from": "private"})).is_err());
    agent.end();
}

/// Whatever its columns and values are, an answer fits into what the document says.
#[test]
fn an_answer_has_a_size() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &[]).unwrap();
    let mut agent = Agent::start(&bed, &[]);
    let ask = |agent: &mut Agent, sql: &str, rows: u64| {
        let arguments = json!({"vdb": "dev", "sql": sql, "rows": rows});
        let answer = agent.ask("tools/call", json!({"name": "query", "arguments": arguments}));
        let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
        (text.len(), serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{text}")))
    };
    let rows = |answer: &Value| answer["rows"].as_array().unwrap().len() as u64;
    let list = |value: &str| vec![value; 1600].join(",");
    // Nothing but NULL, names of columns, and what is longer in JSON.
    let named = format!("NULL AS \"{}\"", "\u{1}".repeat(60));
    let control = "SELECT repeat(chr(1), 4000) FROM generate_series(1, 1000)".to_owned();
    for (sql, some) in [
        (format!("SELECT {} FROM generate_series(1, 1000)", list("NULL")), true),
        (format!("SELECT {} FROM generate_series(1, 1000)", list(&named)), false),
        (control, true),
    ] {
        let (bytes, answer) = ask(&mut agent, &sql, 1000);
        assert!(bytes <= 256 << 10, "{bytes}");
        assert_eq!((&answer["cut"], rows(&answer) > 0), (&json!(true), some));
        assert_eq!(answer["row_count"], rows(&answer));
        assert!(!some || bytes > 200 << 10, "{bytes}: much less than it may be");
    }
    let (_, answer) = ask(&mut agent, "SELECT 1", 0);
    assert_eq!((rows(&answer), &answer["cut"]), (0, &json!(true)));
    let (_, answer) = ask(&mut agent, "SELECT g FROM generate_series(1, 1000) g", 2000);
    assert_eq!((rows(&answer), &answer["cut"]), (1000, &json!(false)));
    let refused = agent.query("dev", "SELECT repeat('x', 1000000)::int").unwrap_err();
    assert!(refused.len() < 8 << 10, "{}", refused.len());
    agent.end();
}

/// Nobody waits in vain for an answer, and no SQL goes on for which nobody waits.
#[test]
fn each_message_is_answered_and_no_sql_outlives_its_request() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &[]).unwrap();
    let mut agent = Agent::start(&bed, &[]);
    assert_eq!(agent.error_of(b"this is no JSON"), (Value::Null, -32700));
    assert_eq!(
        agent.error_of(b"{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"\xff\"}"),
        (Value::Null, -32700)
    );
    assert_eq!(agent.error_of(&vec![b'x'; (16 << 20) + 1]), (Value::Null, -32700));
    assert_eq!(agent.error_of(b"[]"), (Value::Null, -32600));
    let call = |params: &str| format!("{{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": {params}}}");
    for (params, code) in [
        ("\"tools/call\", \"params\": {\"name\": 5}", -32602),
        ("\"tools/call\", \"params\": {\"name\": \"query\", \"arguments\": []}", -32602),
        ("\"tools/burn\", \"params\": {}", -32601),
    ] {
        assert_eq!(agent.error_of(call(params).as_bytes()), (json!(7), code), "{params}");
    }

    // Of arguments the tool says what is wrong.
    assert!(
        agent
            .call("query", json!({"vdb": 1, "sql": "SELECT 1"}))
            .unwrap_err()
            .contains("expected a string")
    );

    let seconds = |sql: &str, seconds: u64| json!({"vdb": "dev", "sql": sql, "seconds": seconds});
    let slow = "SELECT pg_sleep(600)";
    assert!(agent.call("query", seconds("SELECT 1", 0)).unwrap_err().contains("`seconds`"));
    assert!(agent.call("query", seconds("SELECT 1", 3601)).is_err());
    let ended = agent.call("query", seconds(slow, 1)).unwrap_err();
    assert!(ended.contains("ended after 1 s"), "{ended}");

    let database = bed.open("dev").unwrap();
    // What is seen of a cursor is FETCH.
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let becomes = |what: &str, wanted: i64| {
        wait_until(what, PATIENCE, || Ok(database.number(sleeping)? == wanted)).unwrap();
    };
    becomes("its time is up", 0);
    let begin = |agent: &mut Agent| {
        let call = json!({"name": "query", "arguments": seconds(slow, 500)});
        let id = agent.request("tools/call", call);
        becomes("it runs", 1);
        id
    };
    let id = begin(&mut agent);
    agent.send(
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
    );
    becomes("it was cancelled", 0);
    begin(&mut agent);
    agent.end();
    becomes("the agent has gone", 0);
}
