//! The real binary against a stand-in engine: output, exit codes, requests sent.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests start the binary themselves

#[path = "../../server/tests/stand_in/mod.rs"]
mod stand_in;

use offshoot_api::{Moment, RewindTo};
use offshoot_server::{HttpServer, Listen, LocalSocket, Token, publish_address};
use serde_json::Value;
use stand_in::StandIn;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest a command may take before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(120);

struct World {
    pool: tempfile::TempDir,
    service: Arc<StandIn>,
    http: HttpServer,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A child that is killed when the test ends without having waited for it.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guard {
    fn finish(mut self) -> Ran {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "the command does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.0.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ran { code: status.code(), stdout, stderr }
    }
}

impl Ran {
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The one document on stdout of a command that succeeded.
    #[track_caller]
    fn document(self) -> Value {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.json()
    }

    /// The one document on stdout; a second one or any other text is an error of the parser.
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    #[track_caller]
    fn fails(&self, exit_code: i32, code: &str) -> Value {
        assert_eq!(self.code, Some(exit_code), "{}{}", self.stdout, self.stderr);
        let error = self.json()["error"].clone();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
        error
    }
}

fn offshoot(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_offshoot"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in
        ["OFFSHOOT_POOL", "OFFSHOOT_SERVER", "OFFSHOOT_TOKEN_FILE", "PGPASSWORD", "PGPASSFILE"]
    {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent");
    command
}

fn run(command: &mut Command) -> Ran {
    Guard(command.spawn().unwrap()).finish()
}

/// As an engine on this pool listens.
fn listen(pool: &Path) -> Listen {
    let local = Some(LocalSocket::of_pool(pool, None).unwrap());
    Listen { local, ..Listen::from(SocketAddr::from(([127, 0, 0, 1], 0))) }
}

impl World {
    fn new() -> Self {
        World::with(StandIn::default())
    }

    fn with(stand_in: StandIn) -> Self {
        let pool = tempfile::tempdir().unwrap();
        let token = Token::load_or_create(pool.path()).unwrap();
        let service = Arc::new(stand_in);
        let http = HttpServer::start(listen(pool.path()), service.clone(), token).unwrap();
        publish_address(pool.path(), http.local_addr()).unwrap();
        World { pool, service, http }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = offshoot(&line.split(' ').collect::<Vec<_>>());
        command.env("OFFSHOOT_POOL", self.pool.path());
        command
    }

    fn run(&self, line: &str) -> Ran {
        run(&mut self.command(line))
    }

    /// Links `prod` and provisions `dev`.
    fn with_objects() -> Self {
        let world = World::new();
        world.run("dsource link prod --source postgresql://r@db:5432/postgres").ok();
        world.run("vdb provision dev --from prod").ok();
        world
    }
}

#[test]
fn every_command_prints_one_document_with_json_and_text_without() {
    let world = World::with_objects();
    let commands = [
        ("status", "engine_version", "engine"),
        ("console", "expires_at", "http://127.0.0.1:1/#code="),
        ("dsource list", "dsources", "PROD"),
        ("dsource show prod", "snapshots", "logical size"),
        ("dsource set prod --source postgresql://s@db2/postgres", "source", "db2"),
        ("dsource sync prod", "snapshots", "server version"),
        ("dsource pause prod", "state", "state"),
        ("dsource resume prod", "state", "state"),
        ("snapshot take prod", "ready", "lsn"),
        ("snapshot list", "snapshots", "SNAPSHOT"),
        ("snapshot list prod", "snapshots", "snapshot-1"),
        ("snapshot show snapshot-1", "lsn", "0/3A2B1C0"),
        ("snapshot delete snapshot-1", "state", "snapshot-1 is deleted"),
        ("vdb list", "vdbs", "UNIQUE"),
        ("vdb show dev", "timings", "provisioned in"),
        ("vdb stop dev", "state", "stopped"),
        ("vdb start dev", "state", "running"),
        ("vdb refresh dev", "timings", "uri"),
        ("vdb rewind dev --undo", "timings", "uri"),
        ("job list", "jobs", "vdb_provision"),
        ("job show job-1", "steps", "dsource_link"),
        ("job watch job-1", "steps", "done"),
        ("pool status", "cache", "2.50×"),
        ("pool ledger", "objects", "PINNED"),
        ("pool ledger --delete dev prod", "freed_if_deleted_bytes", "gives back 12.0 MiB"),
        ("pool reclaim", "capacity_bytes", "free"),
        ("pool scrub --last", "damage", "data/base/5/16384, 8192 bytes at byte 8192"),
    ];
    for (line, field, words) in commands {
        let text = world.run(line).ok();
        assert!(text.to_lowercase().contains(&words.to_lowercase()), "{line}: {text}");
        assert!(serde_json::from_str::<Value>(&text).is_err(), "{line}: {text}");
        let document = world.run(&format!("{line} --json")).document();
        assert!(!document[field].is_null(), "{line}: {document}");
    }
    for (line, words) in [("vdb delete dev", "dev is deleted"), ("dsource unlink prod", "unlinked")]
    {
        assert!(world.run(line).ok().contains(words));
    }
    assert!(world.run("vdb list").ok().contains("there is no VDB"));
}

#[test]
fn several_names_are_done_each_and_what_fails_holds_up_nothing() {
    let world = World::with_objects();
    world.run("vdb provision staging --from prod").ok();
    let text = world.run("vdb stop dev staging dev").ok();
    assert_eq!(text, "dev is stopped\nstaging is stopped\n");
    let started = world.run("vdb start dev staging --json").document();
    let results = started["results"].as_array().unwrap();
    let names: Vec<_> = results.iter().map(|one| (&one["name"], &one["job"]["state"])).collect();
    assert_eq!(names, [(&"dev".into(), &"done".into()), (&"staging".into(), &"done".into())]);
    let begun = world.run("vdb refresh dev staging --detach --json").document();
    assert!(begun["results"][1]["job_id"].as_str().unwrap().starts_with("job-"), "{begun}");

    let ran = world.run("vdb delete nobody dev");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "dev is deleted\n"));
    assert!(ran.stderr.starts_with("error: nobody: no VDB 'nobody'\n"), "{}", ran.stderr);
    let ran = world.run("vdb delete nobody staging --json");
    assert_eq!(ran.code, Some(1));
    let results = &ran.json()["results"];
    assert_eq!(results[0]["error"]["code"], "not_found");
    assert_eq!(results[1]["job"]["state"], "done");
    assert_eq!(world.run("snapshot delete snapshot-1 snapshot-1").ok(), "snapshot-1 is deleted\n");
}

/// A password that stands in what is refused is not repeated.
#[test]
fn what_is_refused_shows_no_password() {
    let world = World::new();
    for line in [
        "dsource link x --source postgresql://r:hunter2@db:99999/shop",
        "dsource link x --source http://r:hunter2@db/shop",
        "dsource link x --source host=db,password=hunter2",
        "dsource set x --source postgresql://r:hunter2@[::1/shop",
        "dsource link x postgresql://r:hunter2@db/shop",
        "dsource list --sourc postgresql://r:hunter2@db/shop",
    ] {
        for line in [line.to_owned(), format!("{line} --json")] {
            let ran = world.run(&line);
            assert_eq!(ran.code, Some(2), "{line}");
            assert!(
                !format!("{}{}", ran.stdout, ran.stderr).contains("hunter2"),
                "{line}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn the_link_request_holds_the_password_and_the_source_does_not() {
    let world = World::new();
    let file = world.pool.path().join("password");
    std::fs::write(&file, "from file\n").unwrap();
    let link = |name: &str, more: &str, environment: &[(&str, &str)]| {
        let line = format!("dsource link {name} --source postgresql://r:in%20uri@db/app{more}");
        run(world.command(line.trim_end()).envs(environment.iter().copied()))
    };
    let password = || world.service.last_link().unwrap().password.unwrap().reveal().to_owned();

    let by_file = format!(" --password-file {} --snapshot-every 10min", file.display());
    let ran = link("a", &by_file, &[("PGPASSWORD", "from environment")]);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let shown = ran.ok();
    assert_eq!(password(), "from file");
    let request = world.service.last_link().unwrap();
    assert_eq!(request.source, "postgresql://r@db/app");
    assert_eq!(request.snapshot_every_ms, Some(600_000));
    assert!(!shown.contains("uri"), "{shown}");

    let ran = link("b", "", &[("PGPASSWORD", "from environment")]);
    assert!(ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(password(), "in uri");

    let line = "dsource link c --source postgresql://r@db/app";
    run(world.command(line).env("PGPASSWORD", "from environment")).ok();
    assert_eq!(password(), "from environment");

    let pgpass = world.pool.path().join("pgpass");
    std::fs::write(&pgpass, "db:*:*:r:from pgpass\n").unwrap();
    std::fs::set_permissions(&pgpass, std::fs::Permissions::from_mode(0o600)).unwrap();
    let line = "dsource link d --source postgresql://r@db/app";
    run(world.command(line).env("PGPASSFILE", &pgpass)).ok();
    assert_eq!(password(), "from pgpass");

    world.run("dsource link e --source postgresql://r@db/app").ok();
    assert_eq!(world.service.last_link().unwrap().password, None);

    let ran =
        world.run("dsource link f --source postgresql://r@db/app --password-file /nowhere --json");
    ran.fails(1, "invalid_input");
}

#[test]
fn dsources_are_masked_and_rules_checked() {
    let world = World::new();
    world.run("dsource link prod --source postgresql://a@b/c").ok();
    assert!(world.run("mask status").ok().contains("mask apply"));
    let rules = world.pool.path().join("rules.yaml");
    std::fs::write(&rules, "version: 1\n").unwrap();
    let rules = rules.display();
    let document =
        world.run(&format!("mask apply {rules} --from prod --every 1d --json")).document();
    assert_eq!((&document["name"], &document["rows_masked"]), (&"prod-masked".into(), &7.into()));
    let asked = world.service.last_mask().unwrap();
    assert_eq!((asked.rules.as_str(), asked.every_ms), ("version: 1\n", Some(86_400_000)));
    let shown = world.run("mask status prod-masked").ok();
    for word in ["public.customers", "looks like a phone number", "masked"] {
        assert!(shown.contains(word), "{shown}");
    }
    assert_eq!(world.run("mask status --json").document()["masks"][0]["source"], "prod");
    world.run("mask status nothing --json").fails(1, "not_found");
    assert!(world.run(&format!("mask check {rules} --from prod --strict")).ok().contains("fit"));
    let begun = world.pool.path().join("begun.yaml");
    let begun = begun.display();
    assert!(world.run(&format!("mask init {begun}")).ok().contains("mask check"));
    let text = std::fs::read_to_string(begun.to_string()).unwrap();
    assert!(text.contains("version: 1"), "{text}");
    world.run(&format!("mask init {begun} --json")).fails(1, "already_exists");
    world.run(&format!("mask init {begun} --force")).ok();

    let found = world.run("mask discover prod --json").document();
    assert_eq!(found["findings"][0]["column"], "email");
    assert!(world.run("mask discover prod").ok().contains("key: main"));
    let out = world.pool.path().join("out.yaml");
    let line = format!("mask discover prod --out {}", out.display());
    assert!(world.run(&line).ok().contains("1 columns"));
    assert!(std::fs::read_to_string(&out).unwrap().contains("key: main"));
    world.run(&format!("{line} --json")).fails(1, "already_exists");
    let preview = format!("mask preview {rules} --from prod --table public.customers");
    let shown = world.run(&preview).ok();
    assert!(shown.contains("masked@example.com") && !shown.contains("maria"), "{shown}");
    let shown = world.run(&format!("{preview} --show-originals")).ok();
    assert!(shown.contains("maria@firm.test -> masked@example.com"), "{shown}");
    world.run("mask apply /nowhere/rules.yaml --from prod --json").fails(1, "invalid_input");
}

#[test]
fn states_are_compared() {
    let world = World::new();
    world.run("dsource link prod --source postgresql://a@b/c").ok();
    let shown = world.run("diff prod@-1h prod").ok();
    assert!(shown.contains("public.orders") && shown.contains("+ column"), "{shown}");
    let shown = world.run("diff prod@0/3000060 prod@latest --rows").ok();
    assert!(shown.contains("note: x -> y") && shown.contains("note=NULL"), "{shown}");
    let sql = world.run("diff prod prod@snapshot-1 --table orders --sql").ok();
    assert!(sql.contains("BEGIN;") && sql.contains("-- 1 differences"), "{sql}");
    let document = world.run("diff prod@release prod --json").document();
    assert_eq!(document["tables"][0]["read"], "pages");
    world.run("diff prod@ prod --json").fails(2, "invalid_input");
    world.run("diff prod --json").fails(2, "invalid_input");
    world.run("diff prod prod --sql --rows --json").fails(2, "invalid_input");
}

#[test]
fn groups_are_made_used_and_deleted() {
    let world = World::new();
    for name in ["prod", "orders"] {
        world.run(&format!("dsource link {name} --source postgresql://a@b/c")).ok();
    }
    assert!(world.run("group list").ok().contains("group create"));
    world.run("group create both --json").fails(2, "invalid_input");
    world.run("group create both --members prod,nothing --json").fails(1, "not_found");
    let made = world.run("group create both --members prod,orders --json").document();
    assert_eq!(made["members"][1]["name"], "orders");
    for word in ["prod", "-1200 ms", "its clock is behind"] {
        assert!(world.run("group show both").ok().contains(word), "{word}");
    }
    let at = "2026-11-21T14:03:27Z";
    let provision = "group provision dev --group both --memory 512MiB --set work_mem=8MB";
    let shown = world.run(&format!("{provision} --at {at} --json")).document();
    assert_eq!((&shown["vdbs"][0]["name"], &shown["moment"]), (&"dev-prod".into(), &at.into()));
    let asked = world.service.last_vdb_group().unwrap();
    assert_eq!((asked.group.as_str(), asked.memory_bytes), ("group-1", Some(512 << 20)));
    assert_eq!((asked.at, asked.settings["work_mem"].as_str()), (at.parse().ok(), "8MB"));
    for command in [
        "refresh dev --latest",
        "rewind dev --bookmark before",
        "start dev",
        "stop dev",
        "show dev",
    ] {
        assert!(world.run(&format!("group {command}")).ok().contains("dev-orders"), "{command}");
    }
    assert!(
        world.run("group bookmark dev --as before").ok().contains("rewind dev --bookmark before")
    );
    let listed = world.run("group list --json").document();
    assert_eq!(
        (&listed["groups"][0]["name"], &listed["vdb_groups"][0]["name"]),
        (&"both".into(), &"dev".into())
    );
    assert!(world.run("group list --sort of --limit 1").ok().contains("dev-prod, dev-orders"));
    assert!(world.run("group delete dev --yes").ok().contains("dev-prod"));
    assert!(world.run("group delete both").ok().contains("dSources stay"));
    world.run("group show dev --json").fails(1, "not_found");
}

#[test]
fn bookmarks_are_set_listed_and_deleted() {
    let world = World::with_objects();
    assert!(world.run("bookmark list").ok().contains("bookmark create"));
    let document = world.run("bookmark create release --on prod --lsn 0/3A2B1C0 --json").document();
    assert_eq!((&document["name"], &document["object"]), (&"release".into(), &"prod".into()));
    let asked = world.service.last_bookmark().unwrap();
    assert_eq!(asked.moment, Moment::Lsn { lsn: "0/3A2B1C0".to_owned() });
    world.run("bookmark create release --on prod --json").fails(1, "already_exists");
    assert_eq!(world.run("bookmark list --json").document()["bookmarks"][0]["name"], "release");
    assert!(world.run("bookmark list").ok().contains("0/3A2B1C0"));
    world.run("bookmark delete release").ok();
    world.run("bookmark delete release --json").fails(1, "not_found");
}

#[test]
fn a_history_is_shown() {
    let world = World::with_objects();
    let document = world.run("timeflow show prod --json").document();
    assert_eq!(document["timeflows"][0]["ranges"][0]["to"]["lsn"], "0/4000000");
    let text = world.run("timeflow show prod").ok();
    for word in ["timeflow-1", "any moment", "gap", "snapshot-1", "manual, ready"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_policy_is_shown_and_set() {
    let world = World::with_objects();
    let document = world.run("policy show --json").document();
    assert_eq!(document["policies"][0]["name"], "prod");
    let line = "policy set prod --snapshot-every never --log 2w --quota 50GiB --json";
    let document = world.run(line).document();
    assert_eq!(document["snapshot_every_ms"], Value::Null);
    assert_eq!(
        (&document["log_ms"], &document["quota_bytes"]),
        (&1_209_600_000.into(), &(50_u64 << 30).into())
    );
    let text = world.run("policy set prod --quota none").ok();
    assert!(text.contains("never") && text.contains("14 d"), "{text}");
    let document = world.run("policy show prod --json").document();
    assert_eq!((&document["quota_bytes"], &document["kind"]), (&Value::Null, &"dsource".into()));
    world.run("policy show nothing --json").fails(1, "not_found");
}

#[test]
fn provision_passes_on_what_was_asked() {
    let world = World::with_objects();
    let mut command = world.command("vdb provision test --from prod --port 6010 --memory 512MiB");
    command.args(["--set", "work_mem=64MB", "--set", "search_path=a=b,c", "--keep-source-logins"]);
    command.args(["--superuser", "--keep", "foreign-servers"]);
    command.args(["--at", "2026-11-21 14:03:27.5+01", "--json"]);
    let document = run(&mut command).document();
    assert_eq!(document["name"], "test");
    assert_eq!(document["timings"]["total_ms"], 420);
    let request = world.service.last_provision().unwrap();
    assert_eq!((request.port, request.memory_bytes), (Some(6010), Some(512 << 20)));
    assert_eq!(request.settings["search_path"], "a=b,c");
    assert_eq!(request.settings.len(), 2);
    assert!(request.keep_source_logins && request.superuser && request.keep_foreign_servers);
    assert_eq!(request.moment, Moment::At { time: "2026-11-21T13:03:27.5Z".parse().unwrap() });

    let mut command = world.command("vdb refresh dev");
    let ran = run(command.args(["--at", "2026-11-21 14:03"]));
    assert!(ran.stderr.contains("UTC"), "{}", ran.stderr);
    let at = Moment::At { time: "2026-11-21T14:03:00Z".parse().unwrap() };
    assert_eq!(world.service.last_refresh().unwrap().1.moment, at);
    for (option, moment) in [
        ("--latest", Moment::Latest),
        ("--snapshot snapshot-7", Moment::Snapshot { id: "snapshot-7".parse().unwrap() }),
        ("--lsn 0/3A2B1C0", Moment::Lsn { lsn: "0/3A2B1C0".to_owned() }),
        ("--xid 12", Moment::Xid { xid: 12 }),
        ("--bookmark release", Moment::Bookmark { name: "release".into() }),
    ] {
        world.run(&format!("vdb refresh dev {option}")).ok();
        assert_eq!(world.service.last_refresh().unwrap().1.moment, moment);
    }
    world.run("vdb rewind dev --snapshot snapshot-7").ok();
    let to = RewindTo::Snapshot { id: "snapshot-7".parse().unwrap() };
    assert_eq!(world.service.last_rewind().unwrap().1.to, to);
    world.run("vdb rewind dev --bookmark release").ok();
    let to = RewindTo::Bookmark { name: "release".into() };
    assert_eq!(world.service.last_rewind().unwrap().1.to, to);
    world.run("vdb rewind dev --undo").ok();
    assert_eq!(world.service.last_rewind().unwrap().1.to, RewindTo::Undo);
}

#[test]
fn failures_exit_1_and_wrong_usage_2_each_in_both_forms() {
    let world = World::with_objects();
    for (line, exit_code, code) in [
        ("vdb show nobody --json", 1, "not_found"),
        ("vdb provision dev --from prod --json", 1, "already_exists"),
        ("vdb set dev --label a=b --unlabel a --json", 1, "invalid_input"),
        ("vdb list --limit 0 --json", 2, "invalid_input"),
        ("vdb provision x --from prod --at never --json", 2, "invalid_input"),
        ("--json vdb", 2, "invalid_input"),
        ("vdb --json fly", 2, "invalid_input"),
        ("job show 7 --json", 2, "invalid_input"),
    ] {
        let ran = world.run(line);
        ran.fails(exit_code, code);
        let plain = world.run(&line.replace(" --json", "").replace("--json ", ""));
        assert_eq!(plain.code, Some(exit_code), "{line}");
        assert_eq!(plain.stdout, "", "{line}");
        assert!(!plain.stderr.is_empty(), "{line}");
    }
    let plain = world.run("vdb show nobody");
    assert_eq!(plain.stderr, "error: no VDB 'nobody'\nhint: see the list\n");
    let failed = world.run("dsource link broken --source postgresql://a@b/c --json");
    assert_eq!(failed.fails(1, "source_refused")["hint"], "mend it");
    assert_eq!(world.run("").code, Some(2));
    assert!(world.run("--help").ok().contains("Examples:"));
    assert!(world.run("vdb provision --help").ok().contains("Examples:"));
    assert!(world.run("--version").ok().starts_with("offshoot "));
}

#[test]
fn an_engine_that_is_not_there_or_does_not_know_us_is_named_with_its_mend() {
    let world = World::new();
    let empty = tempfile::tempdir().unwrap();
    let dir = empty.path().to_str().unwrap();
    let error =
        run(&mut offshoot(&["status", "--json", "--pool", dir])).fails(1, "engine_unreachable");
    assert!(error["hint"].as_str().unwrap().contains(&format!("offshoot serve --pool {dir}")));

    // A killed engine leaves its socket behind.
    let left = empty.path().join("engine.socket");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    Token::load_or_create(empty.path()).unwrap();
    let error =
        run(&mut offshoot(&["status", "--json", "--pool", dir])).fails(1, "engine_unreachable");
    assert!(error["message"].as_str().unwrap().contains("nothing listens"), "{error}");

    let url = format!("http://{}", world.http.local_addr());
    let wrong = empty.path().join("token");
    let right = world.pool.path().join("token");
    let ask = |token: &std::path::Path| {
        run(&mut offshoot(&[
            "status",
            "--json",
            "--server",
            &url,
            "--token-file",
            token.to_str().unwrap(),
        ]))
    };
    ask(&wrong).fails(1, "unauthorized");
    ask(&right).document();
    run(&mut offshoot(&["status", "--json", "--server", &url])).fails(1, "unauthorized");
    let mut by_environment = offshoot(&["status", "--json"]);
    by_environment.env("OFFSHOOT_SERVER", &url).env("OFFSHOOT_TOKEN_FILE", &right);
    by_environment.env("OFFSHOOT_POOL", empty.path());
    run(&mut by_environment).document();
    // An option overrides the environment.
    run(by_environment.args(["--pool", dir])).fails(1, "engine_unreachable");
}

#[test]
fn something_else_on_the_port_is_not_taken_for_an_engine() {
    use std::io::Write;
    let pool = tempfile::tempdir().unwrap();
    Token::load_or_create(pool.path()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 16]).unwrap();
        stream
            .write_all(
                b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello",
            )
            .unwrap();
        // Read to the end, so that closing does not cut off the answer.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let token = pool.path().join("token");
    let mut command = offshoot(&["status", "--json", "--server", &address, "--token-file"]);
    let error = run(command.arg(token)).fails(1, "engine_unreachable");
    assert!(error["message"].as_str().unwrap().contains("no engine"), "{error}");
    other.join().unwrap();
}

#[test]
fn a_program_on_the_port_of_an_engine_that_ended_is_not_even_asked() {
    let world = World::new();
    let address = world.http.local_addr();
    let World { pool, http, .. } = world;
    http.stop();
    let stranger = std::net::TcpListener::bind(address).unwrap();
    stranger.set_nonblocking(true).unwrap();
    assert!(pool.path().join("engine.address").exists(), "it is still said to be there");
    let dir = pool.path().to_str().unwrap();
    run(&mut offshoot(&["status", "--json", "--pool", dir])).fails(1, "engine_unreachable");
    assert_eq!(stranger.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn a_pool_of_one_s_own_needs_no_token_and_a_token_that_is_named_counts() {
    let world = World::new();
    let token = world.pool.path().join("token");
    let shown = world.run("status --json").document();
    assert_eq!(shown["socket"], "/pool/engine.socket");
    let named = |file: &Path| {
        let mut command = world.command("status --json --token-file");
        run(command.arg(file))
    };
    named(&token).document();
    let wrong = world.pool.path().join("wrong");
    std::fs::write(&wrong, "x".repeat(64)).unwrap();
    named(&wrong).fails(1, "unauthorized");
    std::fs::remove_file(&token).unwrap();
    world.run("status --json").document();
}

#[test]
fn detach_prints_the_job_and_watch_and_cancel_follow_it() {
    let world = World::with_objects();
    let job = world.run("vdb stop dev --detach").ok();
    let id = job.trim();
    assert!(id.starts_with("job-"), "{job}");
    assert_eq!(world.run(&format!("job watch {id} --json")).document()["state"], "done");
    assert!(world.run(&format!("job cancel {id} --json")).fails(1, "wrong_state").is_object());

    let accepted = world.run("vdb provision slow --from prod --detach --json").document();
    let slow = accepted["job"].as_str().unwrap();
    assert_eq!(world.run(&format!("job cancel {slow} --json")).document()["state"], "cancelled");
    world.run(&format!("job watch {slow} --json")).fails(1, "cancelled");
}

#[test]
fn progress_goes_to_stderr_in_lines_where_there_is_no_terminal() {
    let world = World::with_objects();
    let ran = world.run("dsource sync prod");
    assert!(ran.stderr.contains("dsource sync prod: work"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("work"), "{}", ran.stdout);
    let quiet = world.run("dsource sync prod --json");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn an_interrupt_leaves_the_job_and_says_how_to_follow_it() {
    let world = World::with_objects();
    for line in
        ["vdb provision slow --from prod", "dsource link slow --source postgresql://a@b/c --json"]
    {
        let guard = Guard(world.command(line).spawn().unwrap());
        let job = wait_for_job(&world, "slow");
        wait_for_handler(&guard.0);
        let pid = rustix::process::Pid::from_raw(guard.0.id() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let ran = guard.finish();
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        let told = if line.ends_with("--json") {
            ran.fails(1, "cancelled")["hint"].to_string()
        } else {
            ran.stderr
        };
        assert!(told.contains(&format!("offshoot job watch {job}")), "{told}");
        let state = world.run(&format!("job show {job} --json")).document()["state"].clone();
        assert_eq!(state, "queued", "the job is as it was");
        world.run(&format!("job cancel {job}")).ok();
    }
}

/// Waits until a program catches SIGINT.
fn wait_for_handler(child: &Child) {
    let start = Instant::now();
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        u64::from_str_radix(caught, 16).unwrap() & 1 << (rustix::process::Signal::INT.as_raw() - 1)
            != 0
    };
    while !catches() {
        assert!(start.elapsed() < PATIENCE, "an interrupt would end the command");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The running job on an object, as soon as there is one.
fn wait_for_job(world: &World, object: &str) -> String {
    use offshoot_server::EngineService;
    let start = Instant::now();
    loop {
        let jobs = world.service.list_jobs().unwrap();
        let open = jobs.iter().find(|job| job.object == object && !job.state.is_final());
        if let Some(job) = open {
            return job.id.to_string();
        }
        assert!(start.elapsed() < PATIENCE, "the job was never asked for");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn waiting_survives_a_restart_of_the_engine_on_another_port() {
    let world = World::with_objects();
    let child = Guard(world.command("vdb provision slow --from prod --json").spawn().unwrap());
    let job = wait_for_job(&world, "slow");
    let World { pool, service, http } = world;
    http.stop();
    std::thread::sleep(Duration::from_millis(700));
    let token = Token::load_or_create(pool.path()).unwrap();
    let http = HttpServer::start(listen(pool.path()), service.clone(), token).unwrap();
    publish_address(pool.path(), http.local_addr()).unwrap();
    let world = World { pool, service, http };
    world.run(&format!("job cancel {job}")).ok();
    child.finish().fails(1, "cancelled");
}

#[test]
fn connect_hands_psql_the_password_by_the_environment() {
    let uri = "postgresql://offshoot:s%40cret@127.0.0.1:6001/postgres";
    let world = World::with(StandIn::with_uri(uri));
    world.run("dsource link prod --source postgresql://r@db:5432/postgres").ok();
    world.run("vdb provision dev --from prod").ok();
    let bin = tempfile::tempdir().unwrap();
    let psql = bin.path().join("psql");
    std::fs::write(&psql, "#!/bin/sh\necho \"[$PGPASSWORD]\" \"$@\"\nexit 3\n").unwrap();
    std::fs::set_permissions(&psql, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = world.command("vdb connect dev -- -c");
    let path = format!("{}:/usr/bin:/bin", bin.path().display());
    let ran = run(command.arg("select 1").env("PATH", path));
    assert_eq!(ran.stdout, "[s@cret] postgresql://offshoot@127.0.0.1:6001/postgres -c select 1\n");
    assert_eq!(ran.code, Some(3), "psql's own exit code is passed on");

    let shown = world.run("vdb connect dev --json").document();
    assert!(shown["uri"].as_str().unwrap().contains("s%40cret"));
    world.run("vdb stop dev").ok();
    let ran = world.run("vdb connect dev");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("offshoot vdb start dev"), "{}", ran.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let world = World::with_objects();
    let mut command = world.command("vdb list");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut guard = Guard(command.stdout(writer).spawn().unwrap());
    assert_eq!(guard.0.wait().unwrap().code(), Some(0));
}

#[test]
fn serve_refuses_what_it_cannot_do_before_it_starts() {
    let pool = tempfile::tempdir().unwrap();
    let dir = pool.path().to_str().unwrap();
    let config = pool.path().join("wrong.conf");
    std::fs::write(&config, "cache_sise = 1GiB\n").unwrap();
    let config = config.to_str().unwrap();
    let serve = |args: &[&str]| {
        let all: Vec<&str> = ["serve", "--json"].iter().chain(args).copied().collect();
        run(&mut offshoot(&all))
    };
    let error = serve(&["--pool", dir, "--config", config]).fails(1, "invalid_input");
    assert!(error["message"].as_str().unwrap().contains("line 1"), "{error}");
    serve(&["--server", "127.0.0.1:1"]).fails(1, "invalid_input");
    serve(&["--pool", dir, "--listen", "nowhere"]).fails(2, "invalid_input");
    serve(&["--pool", dir, "--cache-size", "much"]).fails(2, "invalid_input");
}

/// Runs a command on a terminal of its own, where somebody types.
fn on_terminal(world: &World, line: &str, typed: &str) -> (Option<i32>, String) {
    use std::io::Write;
    let mut command = Command::new("script");
    let inner = format!("{} {line}", env!("CARGO_BIN_EXE_offshoot"));
    command.args(["--quiet", "--return", "--command", &inner, "/dev/null"]);
    command.env("OFFSHOOT_POOL", world.pool.path()).env("HOME", "/nonexistent");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let ran = Guard(child).finish();
    (ran.code, ran.stdout)
}

#[test]
fn removing_says_what_goes_and_asks_on_a_terminal_only() {
    let world = World::with_objects();
    world.run("bookmark create friday --on prod").ok();
    let listed = |world: &World| world.run("dsource list --json").document().to_string();

    let (code, said) = on_terminal(&world, "dsource unlink prod", "n\n");
    assert_eq!(code, Some(1), "{said}");
    for word in ["bookmarks: friday", "on demand: snapshot-1", "refreshed: dev", "unlink 'prod'?"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(listed(&world).contains("prod"), "it is still there");
    let (code, said) = on_terminal(&world, "vdb delete dev --yes", "");
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains('?'), "{said}");
    let (code, said) = on_terminal(&world, "dsource unlink prod", "y\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(!listed(&world).contains("prod"));

    // A script has no terminal: it is told, not asked.
    let world = World::with_objects();
    let ran = world.run("dsource unlink prod");
    assert!(ran.stderr.contains("snapshot-1"), "{}", ran.stderr);
    ran.ok();
}

#[test]
fn the_last_line_of_a_job_that_is_done_tells_no_percentage() {
    let world = World::with_objects();
    let told = world.run("dsource sync prod").stderr;
    let last = told.lines().last().unwrap_or_default();
    assert!(last.contains("done") && !last.contains('%'), "{told}");
}
