//! Hooks: SQL that runs in VDBs after they were provisioned, refreshed and rewound.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::{Job, JobList, JobState, Vdb, VdbHooks, VdbState};
use offshoot_rig::{CommandError, Database};
use offshoot_testbed::{PATIENCE, Testbed, in_database, wait_until};
use serde_json::Value;

/// Marks that a hook has run: a number that would tell if it ran twice.
const COUNT: &str =
    "CREATE TABLE IF NOT EXISTS ran (event text); INSERT INTO ran VALUES ('EVENT');";

struct World {
    bed: Testbed,
}

impl World {
    fn start() -> World {
        let bed = Testbed::start().unwrap();
        let source = bed.source.connect("postgres").unwrap();
        source.execute("CREATE TABLE users AS SELECT 1 AS id, 'eve@example.com' AS mail").unwrap();
        bed.link("shop").unwrap();
        World { bed }
    }

    /// A file with SQL.
    fn file(&self, name: &str, sql: &str) -> String {
        let path = self.bed.scratch.path().join(name);
        std::fs::write(&path, sql).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn run(&self, line: &str) -> Result<Value, CommandError> {
        self.bed.engine.command(line.split(' '))
    }

    fn done(&self, line: &str) -> Value {
        self.run(line).unwrap()
    }

    #[track_caller]
    fn is_refused(&self, line: &str, code: &str) -> CommandError {
        let refused = self.run(line).expect_err(line);
        assert_eq!(refused.code, code, "{line}: {refused}");
        assert!(!refused.hint.is_empty(), "{refused}");
        refused
    }

    fn newest_job(&self) -> Job {
        let list: JobList = self.bed.engine.ask(["job", "list"]).unwrap();
        list.jobs.into_iter().find(|job| job.kind.starts_with("vdb_")).unwrap()
    }

    fn text(&self, vdb: &str, sql: &str) -> String {
        self.bed.open(vdb).unwrap().text(sql).unwrap()
    }

    fn ran(&self, vdb: &str) -> String {
        self.text(vdb, "SELECT coalesce(string_agg(event, ' ' ORDER BY event), '') FROM ran")
    }
}

fn counting(event: &str) -> String {
    COUNT.replace("EVENT", event)
}

#[test]
fn hooks_run_as_the_user_after_what_they_belong_to() {
    let world = World::start();
    let [made, refreshed, rewound] = ["provision", "refresh", "rewind"].map(|event| {
        let sql = format!(
            "-- secret\n{}\nDO $$ BEGIN RAISE NOTICE 'by %', current_user; END $$;",
            counting(event)
        );
        world.file(&format!("{event}.sql"), &sql)
    });
    let line = format!("vdb provision dev --from shop --hook after-provision={made}");
    let dev: Vdb = serde_json::from_value(world.done(&line)).unwrap();
    assert_eq!(world.ran("dev"), "provision");
    let job = world.newest_job();
    assert_eq!((job.state, job.steps.last().unwrap().name.as_str()), (JobState::Done, "hook"));
    assert!(job.notes[0].contains("the hook after-provision ran"), "{:?}", job.notes);
    assert!(job.notes[0].contains("NOTICE: by offshoot"), "{:?}", job.notes);

    // What they run is shown to who asks for it, and is nowhere in the open.
    assert_eq!((dev.hooks.len(), dev.hooks[0].time_limit_ms), (1, 600_000));
    let line = format!(
        "vdb set dev --hook after-refresh={refreshed} --hook after-rewind={rewound} --hook-time-limit 20s"
    );
    world.done(&line);
    let kept: VdbHooks = world.bed.engine.ask(["vdb", "hooks", "dev"]).unwrap();
    assert_eq!(kept.hooks.len(), 3);
    assert!(kept.hooks[1].sql.as_ref().unwrap().contains("'refresh'"));
    let one = world.done("vdb hooks dev after-rewind");
    assert!(one["sql"].as_str().unwrap().starts_with("-- secret\n"), "{one}");
    for line in ["vdb show dev", "vdb list", "job list", "vdb logs dev"] {
        let shown = world.done(line).to_string();
        assert!(!shown.contains("-- secret"), "{line}: {shown}");
    }

    // Each runs after what it is for, once; what is undone had them before.
    let snapshot = world.bed.snapshot("dev").unwrap();
    world.done("vdb refresh dev");
    assert_eq!(world.ran("dev"), "refresh");
    world.done(&format!("vdb rewind dev --snapshot {}", snapshot.id));
    assert_eq!(world.ran("dev"), "provision rewind");
    world.done("vdb rewind dev --undo");
    assert_eq!(world.ran("dev"), "refresh");
    world.done("vdb stop dev");
    world.done("vdb start dev");
    assert_eq!(world.ran("dev"), "refresh", "a start is no event");

    // A branch inherits none, and they go with their VDB.
    world.done("vdb provision branch --from dev");
    assert_eq!(world.bed.vdb("branch").unwrap().hooks, []);
    let secrets = |world: &World| world.done("secret show")["sealed"].as_u64().unwrap();
    let before = secrets(&world);
    world.done("vdb set dev --no-hook after-rewind");
    assert_eq!(secrets(&world), before - 1);
    world.done(&format!("vdb set dev --hook after-refresh={made}"));
    assert_eq!(secrets(&world), before - 1, "it takes the place of the one before");
    world.is_refused("vdb hooks dev after-rewind", "not_found");
    world.done("vdb delete dev --yes");
    // Those of the VDB itself, and two hooks.
    assert!(secrets(&world) <= before - 3 - 2, "{} of {before}", secrets(&world));
}

#[test]
fn a_hook_that_fails_fails_the_job_and_leaves_the_vdb() {
    let world = World::start();
    let bad = world.file("bad.sql", "UPDATE users SET mail = 'x';\n\nSELECT *\nFROM nowhere;");
    let failed = world.is_refused(
        &format!("vdb provision dev --from shop --hook after-provision={bad}"),
        "invalid_input",
    );
    assert!(
        failed.message.contains("line 4: relation \"nowhere\" does not exist (42P01)"),
        "{failed}"
    );
    assert!(failed.hint.contains("vdb set dev --hook after-provision=FILE"), "{failed}");
    let dev = world.bed.vdb("dev").unwrap();
    assert_eq!(dev.state, VdbState::Running);
    assert!(dev.warnings.iter().any(|one| one.message.contains("line 4")), "{:?}", dev.warnings);
    assert_eq!(
        world.text("dev", "SELECT mail FROM users"),
        "eve@example.com",
        "nothing of it stays"
    );

    // What cannot be in a transaction, what psql alone knows, what takes too long, what is no file.
    for (sql, words, more) in [
        ("SELECT 1; VACUUM users", "(25001)", ""),
        ("SELECT 1;\n\\echo x", "line 2", ""),
        ("COPY users FROM STDIN", "COPY", ""),
        ("SELECT 1; SELECT 1/0", "statement 2: division by zero", ""),
        (
            "SET statement_timeout = 0; SELECT pg_sleep(600)",
            "longer than 1 s",
            " --hook-time-limit 1s",
        ),
        ("SELECT 1", "no session", " --hook-database nowhere"),
        ("SELECT repeat('x', 1000000) FROM generate_series(1, 100)", "more than 64 MiB", ""),
        (
            "CREATE TABLE one (n int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO one VALUES (1), (1)",
            "(23505)",
            "",
        ),
        ("SELECT pg_read_file('/etc/passwd')", "(42501)", ""),
        ("COPY users TO PROGRAM 'cat'", "(42501)", ""),
    ] {
        let file = world.file("next.sql", sql);
        world.done(&format!("vdb set dev --hook after-refresh={file}{more}"));
        let failed = world.is_refused("vdb refresh dev", "invalid_input");
        assert!(failed.message.contains(words), "{sql}: {failed}");
        let warned = world.bed.vdb("dev").unwrap().warnings;
        assert!(warned.iter().any(|one| one.message.contains(words)), "{sql}: {warned:?}");
        let sessions =
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'offshoot hook'";
        assert_eq!(world.text("dev", sessions), "0", "{sql}");
    }
    let empty = world.file("empty.sql", "\n");
    world.is_refused(&format!("vdb set dev --hook after-refresh={empty}"), "invalid_input");
    world.is_refused("vdb set dev --hook after-refresh=/nowhere.sql", "invalid_input");
    assert!(!world.bed.vdb("dev").unwrap().warnings.is_empty());

    // A good one takes the warning away.
    let good = world.file("good.sql", &counting("refresh"));
    world.done(&format!("vdb set dev --hook after-refresh={good}"));
    world.done("vdb refresh dev");
    assert_eq!(
        (world.ran("dev").as_str(), world.bed.vdb("dev").unwrap().warnings),
        ("refresh", vec![])
    );
}

#[test]
fn a_hook_runs_in_the_database_that_it_names_and_can_be_cancelled() {
    let world = World::start();
    world.bed.source.connect("postgres").unwrap().execute("CREATE DATABASE other").unwrap();
    world.done("dsource sync shop");
    let file = world.file("own.sql", &counting("provision"));
    let line = format!(
        "vdb provision dev --from shop --hook after-provision={file} --hook-database other"
    );
    let dev: Vdb = serde_json::from_value(world.done(&line)).unwrap();
    let other = Database::connect(&in_database(&dev.uri, "other")).unwrap();
    assert_eq!(other.text("SELECT event FROM ran").unwrap(), "provision");

    let slow = world.file("slow.sql", &format!("{} SELECT pg_sleep(600);", counting("refresh")));
    world.done(&format!("vdb set dev --hook after-refresh={slow}"));
    let job = world.done("vdb refresh dev --detach")["job"].as_str().unwrap().to_owned();
    wait_until("the hook sleeps", PATIENCE, || sleeps(&world)).unwrap();
    assert_eq!(world.is_refused("vdb stop dev", "busy").code, "busy");
    world.done(&format!("job cancel {job}"));
    wait_until("the end", PATIENCE, || Ok(world.newest_job().state == JobState::Cancelled))
        .unwrap();
    let dev = world.bed.vdb("dev").unwrap();
    assert!(dev.warnings[0].message.contains("was cancelled"), "{:?}", dev.warnings);
    assert_eq!(world.text("dev", "SELECT to_regclass('ran') IS NULL"), "t", "nothing of it stays");
    world.done("vdb stop dev");
}

fn sleeps(world: &World) -> Result<bool> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let Ok(db) = world.bed.open("dev") else { return Ok(false) };
    Ok(db.text(sql)? == "1")
}

#[test]
fn a_hook_survives_the_engine_and_runs_once() {
    let mut world = World::start();
    let file = world.file("slow.sql", &format!("{} SELECT pg_sleep(3);", counting("refresh")));
    world.done("vdb provision dev --from shop");
    world.done(&format!("vdb set dev --hook after-refresh={file}"));

    // Killed in the middle, and stopped cleanly in the middle: the next engine runs it again, from the beginning.
    for kill in [true, false] {
        world.run("vdb refresh dev --detach").unwrap();
        wait_until("the hook sleeps", PATIENCE, || sleeps(&world)).unwrap();
        match kill {
            true => drop(world.bed.engine.kill_and_restart().unwrap()),
            false => {
                world.bed.engine.stop().unwrap();
                world.bed.engine.restart().unwrap();
            }
        }
        wait_until("the end", PATIENCE, || Ok(world.newest_job().state.is_final())).unwrap();
        let job = world.newest_job();
        assert_eq!((job.state, job.error), (JobState::Done, None), "kill {kill}");
        assert_eq!(world.ran("dev"), "refresh", "once: kill {kill}");
        assert_eq!(world.bed.vdb("dev").unwrap().warnings, []);
    }

    // Killed when it was committed and nobody had noted that: the next engine finds out.
    for (kind, line) in
        [("vdb_refresh", "vdb refresh dev"), ("vdb_provision", "vdb provision two --from shop")]
    {
        let quick = world.file("quick.sql", &counting("all"));
        let hook = format!("--hook after-refresh={quick}");
        world.done(&format!("vdb set dev {hook}"));
        world.bed.engine.stop().unwrap();
        world.bed.engine.options.env =
            vec![("OFFSHOOT_CRASH_AT".into(), format!("{kind}/hook:after"))];
        world.bed.engine.restart().unwrap();
        let line = match kind {
            "vdb_provision" => format!("{line} --hook after-provision={quick} --detach"),
            _ => format!("{line} --detach"),
        };
        let _ = world.run(&line);
        assert!(world.bed.engine.wait_end(PATIENCE), "it dies");
        world.bed.engine.options.env.clear();
        world.bed.engine.restart().unwrap();
        let name = if kind == "vdb_provision" { "two" } else { "dev" };
        wait_until("the end", PATIENCE, || Ok(world.newest_job().state.is_final())).unwrap();
        assert_eq!(world.newest_job().state, JobState::Done);
        assert_eq!(world.ran(name), "all", "{kind}: once");
    }
}
