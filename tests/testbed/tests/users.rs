//! Users of a real engine: developers with VDBs of their own, an operator, an auditor, and what the audit says of them.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::{CommandError, Database, EngineOptions, SourceOptions, find_newest};
use offshoot_testbed::{Testbed, binary, wait_until};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);

struct World {
    bed: Testbed,
}

/// A user, by a file with its token.
struct Person<'a> {
    world: &'a World,
    file: PathBuf,
}

fn start() -> World {
    let mut options = EngineOptions::new(binary());
    options.cache_size = "64MiB".into();
    let source = SourceOptions { bin_dir: find_newest().unwrap(), scale: 1, settings: vec![] };
    let bed = Testbed::with_engine(source, options).unwrap();
    bed.link("prod").unwrap();
    World { bed }
}

impl World {
    fn owner(&self, line: &str) -> Result<Value, CommandError> {
        self.bed.engine.command(line.split(' '))
    }

    fn person(&self, name: &str, arguments: &str) -> Person<'_> {
        self.owner(&format!("user add {name} {arguments}")).unwrap();
        let made = self.owner(&format!("token create --user {name} --expires 1h")).unwrap();
        let file = self.bed.scratch.path().join(name);
        std::fs::write(&file, made["token"].as_str().unwrap()).unwrap();
        Person { world: self, file }
    }
}

impl Person<'_> {
    fn runs(&self, line: &str) -> Result<Value, CommandError> {
        let file = self.file.to_str().unwrap();
        let arguments = line.split(' ').chain(["--token-file", file]);
        self.world.bed.engine.command(arguments)
    }

    #[track_caller]
    fn is_refused(&self, line: &str, code: &str) -> CommandError {
        let refused = self.runs(line).expect_err(line);
        assert_eq!(refused.code, code, "{line}: {refused}");
        refused
    }
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let all = list[key].as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// What is one's own is there by its name and its id.
fn is_found_by_either(owner: &Person<'_>, own_name: &str, id: &str) {
    for name in [own_name, id] {
        for (command, key) in [
            ("timeflow show", "/name"),
            ("policy show", "/name"),
            ("pool ledger", "/objects/0/object"),
            ("pool ledger --delete", "/objects/0/object"),
        ] {
            let shown = owner.runs(&format!("{command} {name}")).unwrap();
            assert_eq!(shown.pointer(key), Some(&own_name.into()), "{command} {name}: {shown}");
        }
    }
}

#[test]
fn developers_have_vdbs_of_their_own_and_the_audit_says_what_they_did() {
    let world = start();
    let eve = world.person("eve", "--role developer --parent prod --vdbs 1");
    let bob = world.person("bob", "--role developer --parent prod");
    let olga = world.person("olga", "--role operator");
    let ada = world.person("ada", "--role auditor");

    // Each has its own, and a limit.
    let made = eve.runs("vdb provision eves --from prod").unwrap();
    assert_eq!(made["owner"], "eve");
    assert!(made["uri"].as_str().unwrap().contains("postgresql://offshoot:"), "with the password");
    assert!(made["removed"].to_string().contains("logins of roles"), "{made}");
    let uri = made["uri"].as_str().unwrap().to_owned();
    assert_eq!(Database::connect(&uri).unwrap().number("SELECT 1").unwrap(), 1);
    let refused = eve.is_refused("vdb provision more --from eves", "forbidden");
    assert!(refused.message.contains("may have 1"), "{refused}");
    bob.runs("vdb provision bobs --from prod").unwrap();
    assert_eq!(names(&bob.runs("vdb list").unwrap(), "vdbs"), ["bobs"]);
    assert_eq!(names(&olga.runs("vdb list").unwrap(), "vdbs"), ["bobs", "eves"]);

    // What is another's does not exist, by name or by id.
    let id = made["id"].as_str().unwrap();
    for name in ["eves", id] {
        for verb in ["show", "stop", "start", "delete", "refresh", "reset-password"] {
            bob.is_refused(&format!("vdb {verb} {name}"), "not_found");
        }
        bob.is_refused(&format!("vdb provision copy --from {name}"), "not_found");
        bob.is_refused(&format!("snapshot take {name}"), "not_found");
        bob.is_refused(&format!("timeflow show {name}"), "not_found");
        bob.is_refused(&format!("pool ledger {name}"), "not_found");
    }
    for job in names_of_jobs(&eve.runs("job list").unwrap()) {
        bob.is_refused(&format!("job show {job}"), "not_found");
        bob.is_refused(&format!("job cancel {job}"), "not_found");
    }
    is_found_by_either(&eve, "eves", id);
    eve.runs("vdb stop eves").unwrap();
    eve.runs("vdb start eves").unwrap();

    // Nobody else sees passwords, whoever runs the engine; whoever reads changes nothing.
    assert!(world.bed.vdb("eves").unwrap().uri.starts_with("postgresql://offshoot@"));
    for person in [&olga, &ada] {
        let shown = person.runs("vdb show eves").unwrap()["uri"].as_str().unwrap().to_owned();
        assert!(shown.starts_with("postgresql://offshoot@"), "{shown}");
    }
    olga.runs("dsource sync prod").unwrap();
    olga.is_refused("dsource unlink prod", "forbidden");
    olga.is_refused("dsource link more --source postgresql://a@127.0.0.1:1/b", "forbidden");
    eve.is_refused("dsource sync prod", "forbidden");
    ada.is_refused("vdb stop eves", "forbidden");
    eve.is_refused("user list", "forbidden");
    eve.is_refused("audit", "forbidden");
    assert_eq!(eve.runs("dsource show prod").unwrap()["source"], "");
    eve.is_refused("vdb provision root --from prod --superuser", "forbidden");
    eve.is_refused("vdb provision root --from prod --set archive_command=id", "forbidden");

    // The audit knows who, what and how, and nothing that is secret.
    let audit = ada.runs("audit --since 1h --limit 1000").unwrap();
    let lines: Vec<String> = audit["entries"].as_array().unwrap().iter().map(line_of).collect();
    for expected in [
        "eve vdb provision eves done",
        "bob vdb stop eves not_found",
        "olga dsource link  forbidden",
        "eve vdb provision root forbidden",
        "eve user list  forbidden",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}: {lines:#?}");
    }
    assert!(lines.iter().any(|line| line.starts_with("(uid ")), "{lines:#?}");
    let password = uri.split(':').nth(2).unwrap().split('@').next().unwrap();
    assert!(!audit.to_string().contains(password));
    let entries = audit["entries"].as_array().unwrap();
    let provision =
        entries.iter().find(|one| line_of(one) == "eve vdb provision eves done").unwrap();
    assert!(provision["job"].as_str().unwrap().starts_with("job-"), "{provision}");
}

fn names_of_jobs(list: &Value) -> Vec<String> {
    let jobs = list["jobs"].as_array().unwrap().iter();
    jobs.map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

fn line_of(entry: &Value) -> String {
    let field = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    ["user", "action", "object", "outcome"].map(field).join(" ")
}

#[test]
fn tokens_end_and_outlive_the_engine_and_nobody_inherits() {
    let mut world = start();
    let kept = {
        let eve = world.person("eve", "--role developer --parent prod");
        eve.runs("vdb provision eves --from prod").unwrap();
        let short = world.owner("token create --user eve --expires 1s").unwrap();
        let file = world.bed.scratch.path().join("short");
        std::fs::write(&file, short["token"].as_str().unwrap()).unwrap();
        let short = Person { world: &world, file };
        wait_until("the token to end", PATIENCE, || Ok(short.runs("status").is_err())).unwrap();
        short.is_refused("status", "unauthorized");
        let catalog = std::fs::read(world.bed.engine.pool().join("catalog.db")).unwrap();
        let token = std::fs::read(&eve.file).unwrap();
        assert!(memchr::memmem::find(&catalog, &token).is_none(), "only its hash is kept");
        eve.file
    };
    world.bed.engine.kill().unwrap();
    world.bed.engine.restart().unwrap();
    let eve = Person { world: &world, file: kept.clone() };
    assert_eq!(names(&eve.runs("vdb list").unwrap(), "vdbs"), ["eves"]);

    let removed = world.owner("user remove eve").unwrap();
    assert_eq!(removed["vdbs"], 1);
    eve.is_refused("vdb list", "unauthorized");
    assert_eq!(world.owner("vdb show eves").unwrap()["owner"], Value::Null);
    // Another one by the same name is somebody else.
    let again = world.person("eve", "--role developer --parent prod");
    assert_eq!(names(&again.runs("vdb list").unwrap(), "vdbs"), [] as [&str; 0]);
    again.is_refused("vdb show eves", "not_found");
    let tokens = world.owner("token list").unwrap();
    let id = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
    world.owner(&format!("token revoke {id}")).unwrap();
    again.is_refused("vdb list", "unauthorized");
}

#[test]
fn a_limit_holds_for_requests_at_once() {
    let world = start();
    let eve = world.person("eve", "--role developer --parent prod --vdbs 2");
    let made: usize = std::thread::scope(|scope| {
        let eve = &eve;
        let provision =
            move |n: u32| eve.runs(&format!("vdb provision eves-{n} --from prod")).is_ok();
        let asked: Vec<_> = (0..6).map(|n| scope.spawn(move || provision(n))).collect();
        asked.into_iter().map(|one| usize::from(one.join().unwrap())).sum()
    });
    assert_eq!(made, 2);
    assert_eq!(eve.runs("vdb list").unwrap()["vdbs"].as_array().unwrap().len(), 2);
}

#[test]
fn what_the_vdbs_of_a_user_take_together_is_limited() {
    const FILL: &str = "INSERT INTO junk SELECT string_agg(md5(random()::text || i), '') \
        FROM generate_series(1, 128 * 256) i GROUP BY i % 128";
    let world = start();
    let eve = world.person("eve", "--role developer --parent prod --space 48MiB");
    let bob = world.person("bob", "--role developer --parent prod");
    let open = |person: &Person<'_>, name: &str| {
        let made = person.runs(&format!("vdb provision {name} --from prod")).unwrap();
        let database = Database::connect(made["uri"].as_str().unwrap()).unwrap();
        database.execute("CREATE TABLE junk (text text)").unwrap();
        database
    };
    let (one, two, other) = (open(&eve, "one"), open(&eve, "two"), open(&bob, "other"));
    // A MiB each: neither takes it all. What is refused at first may have room once what came before is stored, compressed.
    let mut refusals = 0;
    let refused = (0..200).find_map(|round: i32| {
        let database = if round % 2 == 0 { &one } else { &two };
        database.execute("CHECKPOINT").unwrap();
        let refused = database.execute(FILL).err()?;
        SystemClock.sleep(Duration::from_millis(300));
        refusals += 1;
        (refusals == 5).then_some(refused)
    });
    let refused = format!("{:#}", refused.expect("the limit does not hold"));
    assert!(refused.contains("Disk quota exceeded"), "{refused}");
    for _ in 0..3 {
        other.execute(FILL).unwrap();
    }
    let refused = eve.is_refused("vdb provision three --from prod", "pool_full");
    assert!(refused.message.contains("'eve' have used up the 48"), "{refused}");
    eve.is_refused("vdb refresh one", "pool_full");
    let faults = || world.owner("status").unwrap()["faults"].to_string();
    let known = || Ok(faults().contains("have used up"));
    wait_until("it is a fault", PATIENCE, known).unwrap();
    let user = || world.owner("user list").unwrap()["users"][1].clone();
    assert_eq!(user()["space_bytes_max"], 48 << 20);
    assert!(user()["space_bytes"].as_u64().unwrap() > 40 << 20, "{}", user());

    // More is allowed, or less is taken.
    world.owner("user set eve --space 400MiB --vdbs 3").unwrap();
    two.execute(FILL).unwrap();
    wait_until("it is none", PATIENCE, || Ok(!known()?)).unwrap();
    world.owner("user set eve --space none").unwrap();
    assert!(user()["space_bytes"].is_null() && user()["vdbs_max"] == 3, "{}", user());
    one.execute(FILL).unwrap();
    eve.is_refused("user set eve --space none", "forbidden");
}

/// The template `ci` of `a_template_says_once_what_vdbs_are_like`.
fn is_changed(eve: &Person<'_>, olga: &Person<'_>, again: &str, id: &Value) {
    // What is changed is for new VDBs, and the rest stays.
    olga.runs("template set ci --name nightly --description first").unwrap();
    let set = olga
        .runs(&format!(
            "template set nightly --name ci --set work_mem=7MB --unset jit --label stage=2 --unlabel team \
             --remove superuser,expires --hook after-provision={again} --no-hook before-stop"
        ))
        .unwrap();
    let request = &set["request"];
    assert_eq!(request["settings"], serde_json::json!({"work_mem": "7MB"}), "{set}");
    assert_eq!(request["labels"], serde_json::json!({"stage": "2"}), "{set}");
    assert_eq!((&request["from"], &request["superuser"]), (&"prod".into(), &false.into()), "{set}");
    assert_eq!((&request["description"], &request["name"]), (&"first".into(), &"ci".into()));
    assert!(request.get("expires_in_ms").is_none_or(Value::is_null), "{set}");
    assert_eq!((&set["id"], set["hooks"].as_array().unwrap().len()), (id, 1), "{set}");
    let vdb = eve.runs("vdb provision pr0 --template ci").unwrap();
    assert_eq!(
        (&vdb["superuser"], &vdb["expires_at"]),
        (&Value::Bool(false), &Value::Null),
        "{vdb}"
    );
    let database = Database::connect(vdb["uri"].as_str().unwrap()).unwrap();
    assert_eq!(database.text("SELECT how FROM made").unwrap(), "changed");
    drop(database);
    eve.runs("vdb delete pr0 --yes").unwrap();
    eve.is_refused("template set ci --superuser", "forbidden");
    for (line, code) in [
        ("template set ci", "invalid_input"),
        ("template set ci --set no_such_setting=1", "invalid_input"),
        ("template set ci --memory 1GiB --remove memory", "invalid_input"),
        ("template set ci --from nothing", "not_found"),
        ("template set other --warm", "not_found"),
    ] {
        olga.is_refused(line, code);
    }
    olga.runs("template set ci --from prod --remove from").unwrap_err();
    assert_eq!(olga.runs("template set ci --remove from").unwrap()["request"].get("from"), None);
    olga.runs("template set ci --from prod").unwrap();
}

#[test]
fn a_template_says_once_what_vdbs_are_like() {
    let world = start();
    let eve = world.person("eve", "--role developer --parent prod");
    let olga = world.person("olga", "--role operator");
    let file = |name: &str, text: &str| {
        let path = world.bed.scratch.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let sql = file("made.sql", "CREATE TABLE made AS SELECT 'by template' AS how");
    let program = file("made.sh", "#!/bin/sh\npsql -XAtc 'SELECT how FROM made'");
    let made = olga
        .runs(&format!(
            "template create ci --from prod --set work_mem=5MB --set jit=off --expires 1d --label team=qa \
             --hook after-provision={sql} --hook before-stop={program} --superuser"
        ))
        .unwrap();
    assert_eq!(made["request"]["superuser"], true);
    assert!(!made.to_string().contains("by template"), "texts are not shown: {made}");
    eve.is_refused("template create mine --from prod", "forbidden");
    eve.is_refused("template delete ci", "forbidden");
    assert_eq!(names(&eve.runs("template list").unwrap(), "templates"), ["ci"]);

    // All of it, but for what is said otherwise.
    let vdb = eve
        .runs("vdb provision pr1 --template ci --set work_mem=6MB --label pr=1 --expires 2h")
        .unwrap();
    assert_eq!(vdb["settings"], serde_json::json!({"work_mem": "6MB", "jit": "off"}));
    assert_eq!(vdb["labels"], serde_json::json!({"team": "qa", "pr": "1"}));
    assert_eq!((&vdb["superuser"], &vdb["parent"]), (&Value::Bool(true), &"prod".into()));
    let database = Database::connect(vdb["uri"].as_str().unwrap()).unwrap();
    assert_eq!(database.text("SELECT how FROM made").unwrap(), "by template");
    drop(database);
    eve.runs("vdb stop pr1").unwrap();
    let jobs = eve.runs("job list").unwrap();
    assert!(jobs.to_string().contains("by template"), "the program ran: {jobs}");

    let again = file("again.sql", "CREATE TABLE made AS SELECT 'changed' AS how");
    is_changed(&eve, &olga, &again, &made["id"]);

    // A VDB does not need its template any more; templates are of the engine, and need a name and something to be made from.
    olga.runs("template delete ci").unwrap();
    assert_eq!(names(&olga.runs("template list").unwrap(), "templates"), Vec::<String>::new());
    let hooks = eve.runs("vdb hooks pr1").unwrap();
    assert!(hooks.to_string().contains("by template"), "{hooks}");
    eve.is_refused("vdb provision pr2 --template ci", "not_found");
    olga.is_refused("template create ci --from nothing", "not_found");
    olga.is_refused("template create ci --from prod --set no_such_setting=1", "invalid_input");
    olga.runs("template create ci --set jit=off").unwrap();
    olga.is_refused("template create ci", "already_exists");
    olga.is_refused("vdb provision pr2 --template ci", "invalid_input");
    assert_eq!(
        eve.runs("vdb provision pr2 --template ci --from prod").unwrap()["settings"]["jit"],
        "off"
    );
}
