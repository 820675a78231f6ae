//! Hooks that are programs, hooks before what is done to a VDB, and what a refresh keeps of one.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::{Job, JobList, JobState, VdbList, VdbState};
use offshoot_os::process::ProcessId;
use offshoot_rig::CommandError;
use offshoot_testbed::{PATIENCE, Testbed, wait_until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// For how long programs sleep: by it a test knows its own.
fn nap() -> String {
    format!("4711.{}", std::process::id())
}

struct World {
    bed: Testbed,
}

impl World {
    fn start() -> World {
        let bed = Testbed::start().unwrap();
        let source = bed.source.connect("postgres").unwrap();
        source.execute("CREATE TABLE settings AS SELECT 'production' AS place").unwrap();
        bed.link("shop").unwrap();
        World { bed }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.bed.scratch.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn program(&self, name: &str, script: &str) -> String {
        self.file(name, &format!("#!/bin/bash\n{script}\n"))
    }

    fn run(&self, line: &str) -> Result<Value, CommandError> {
        self.bed.engine.command(line.split(' '))
    }

    #[track_caller]
    fn done(&self, line: &str) -> Value {
        self.run(line).unwrap()
    }

    #[track_caller]
    fn fails(&self, line: &str, why: &str) -> CommandError {
        let refused = self.run(line).expect_err(line);
        assert!(refused.message.contains(why), "{line}: {refused}");
        assert!(!refused.hint.is_empty(), "{refused}");
        refused
    }

    fn newest_job(&self) -> Job {
        let list: JobList = self.bed.engine.ask(["job", "list"]).unwrap();
        list.jobs.into_iter().find(|job| job.kind.starts_with("vdb_")).unwrap()
    }

    fn text(&self, sql: &str) -> String {
        self.bed.open("dev").unwrap().text(sql).unwrap()
    }

    fn state(&self) -> VdbState {
        self.bed.vdb("dev").unwrap().state
    }
}

/// Everything of this name below a directory.
fn find(dir: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let found = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => find(&entry.path(), name),
        _ if entry.file_name() == name => vec![entry.path()],
        _ => Vec::new(),
    });
    found.collect()
}

fn sleepers() -> Vec<ProcessId> {
    let sleeps = |process: &ProcessId| {
        let arguments = process.arguments();
        arguments.len() == 2 && arguments[1] == nap()
    };
    ProcessId::all().filter(sleeps).collect()
}

#[test]
fn a_hook_before_saves_what_the_one_after_brings_back() {
    let world = World::start();
    let save = world.program("save", "psql -XAtc 'TABLE notes' && echo saved >&2");
    let load = world.program(
        "load",
        "echo \"$OFFSHOOT_EVENT of $OFFSHOOT_VDB from $OFFSHOOT_PARENT\"\n\
         psql -XqAt -c 'CREATE TABLE notes (note text)' -c '\\copy notes FROM STDIN'",
    );
    world.done("vdb provision dev --from shop");
    world.done(&format!("vdb set dev --hook before-refresh={save} --hook after-refresh={load}"));
    let session = world.bed.open("dev").unwrap();
    session.execute("CREATE TABLE notes AS SELECT 'mine' AS note").unwrap();
    drop(session);
    world
        .bed
        .source
        .connect("postgres")
        .unwrap()
        .execute("UPDATE settings SET place = 'new'")
        .unwrap();
    for _ in 0..2 {
        world.done("vdb refresh dev");
        let both = "SELECT place || ' ' || note FROM settings, notes";
        assert_eq!(world.text(both), "new mine");
    }
    let notes = world.newest_job().notes.join("\n");
    for part in [
        "the hook before-refresh ran",
        "saved",
        "the hook after-refresh ran",
        "after-refresh of dev from shop",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    assert!(!notes.contains("mine"), "what is handed over is not said: {notes}");
    let shown = world.bed.vdb("dev").unwrap();
    assert_eq!(serde_json::to_value(shown.hooks[0].kind).unwrap(), "program");
    let text = world.done("vdb hooks dev after-refresh");
    assert!(text["program"].as_str().unwrap().starts_with("#!/bin/bash\n"), "{text}");
    assert!(text["sql"].is_null());
    // Nothing of it is left: neither its text nor what was handed over, which is data of the VDB.
    let secrets = || world.done("secret show")["sealed"].as_u64().unwrap();
    let before = secrets();
    world.done("vdb set dev --no-hook before-refresh --no-hook after-refresh");
    assert_eq!(secrets(), before - 2);
    let runtime = find(world.bed.scratch.path(), "program");
    assert_eq!(runtime, Vec::<PathBuf>::new());
}

#[test]
fn a_hook_before_that_fails_keeps_everything_as_it_was() {
    let world = World::start();
    let no = world.program("no", "echo 'ask the team first' >&2; exit 3");
    world.fails(
        &format!("vdb provision dev --from shop --hook before-provision={no}"),
        "it ended with exit status 3; the last it said: ask the team first",
    );
    let list: VdbList = world.bed.engine.ask(["vdb", "list"]).unwrap();
    assert!(list.vdbs.is_empty());

    world.done("vdb provision dev --from shop");
    let snapshot = world.bed.snapshot("dev").unwrap();
    world.bed.open("dev").unwrap().execute("UPDATE settings SET place = 'here'").unwrap();
    for event in ["before-refresh", "before-rewind", "before-stop"] {
        world.done(&format!("vdb set dev --hook {event}={no}"));
    }
    let sql = world.file("no.sql", "INSERT INTO settings VALUES ('lost'); SELECT 1/0;");
    for line in
        ["vdb refresh dev", &format!("vdb rewind dev --snapshot {}", snapshot.id), "vdb stop dev"]
    {
        let failed = world.fails(line, "ask the team first");
        assert!(failed.hint.contains("'dev' is as it was"), "{failed}");
        assert_eq!(world.text("SELECT string_agg(place, ' ') FROM settings"), "here", "{line}");
        assert_eq!(world.bed.vdb("dev").unwrap().warnings, [], "{line}");
    }
    world.done(&format!("vdb set dev --hook before-refresh={sql}"));
    world.fails("vdb refresh dev", "division by zero");
    assert_eq!(world.text("SELECT string_agg(place, ' ') FROM settings"), "here");

    // Removed, it keeps nobody; and one that is stopped has nothing to ask.
    world.done("vdb set dev --no-hook before-stop");
    world.done("vdb stop dev");
    let last = world.program("last", "echo \"password: ${PGPASSWORD-none}\"");
    world.done(&format!("vdb set dev --hook after-stop={last}"));
    world.done("vdb refresh dev");
    let notes = world.newest_job().notes.join("\n");
    assert!(notes.contains("did not run: 'dev' is stopped"), "{notes}");
    world.done("vdb stop dev");
    let notes = world.newest_job().notes.join("\n");
    assert!(
        notes.contains("the hook after-stop ran") && notes.contains("password: none"),
        "{notes}"
    );
    assert_eq!(world.state(), VdbState::Stopped);

    let failing = world.file("fails.sql", "SELECT 1");
    let refused = world.fails(&format!("vdb set dev --hook after-stop={failing}"), "no server");
    assert_eq!(refused.code, "invalid_input");
}

#[test]
fn a_program_is_confined_and_ends_with_its_job() {
    let nap = nap();
    let mut world = World::start();
    world.done("vdb provision other --from shop");
    let (source, other) = (world.bed.source.port(), world.bed.vdb("other").unwrap().port);
    let in_pool = fs::read_dir(world.bed.engine.pool()).unwrap().map(|entry| entry.unwrap().path());
    let file = in_pool.filter(|path| path.is_file()).min().expect("a file").display().to_string();
    let mine = world.program("mine", &format!(
        "try() {{ if eval \"$1\" 2>/dev/null >/dev/null; then echo \"reached: $1\"; else echo \"refused: $1\"; fi; }}\n\
         try 'exec 3<>/dev/tcp/127.0.0.1/{source}'\n\
         try 'exec 3<>/dev/tcp/127.0.0.1/{other}'\n\
         try 'cat /etc/shadow'\n\
         try 'ls {file}'\n\
         try 'ls /proc/self'\n\
         try 'echo x >> \"$0\"'\n\
         try 'chmod u+w \"$0\"'\n\
         try 'touch /usr/x'\n\
         try 'kill -0 {engine}'\n\
         try 'unshare -U true'\n\
         try 'psql -XAtc \"COPY settings TO PROGRAM $$id$$\"'\n\
         try 'psql -XAtc \"TABLE settings\"'\n\
         echo \"in $PWD as $(id -u)\"",
        engine = world.bed.engine.pid().unwrap()
    ));
    world.done(&format!("vdb provision dev --from shop --hook after-provision={mine}"));
    let notes = world.newest_job().notes.join("\n");
    let reached: Vec<&str> = notes.lines().filter(|line| line.contains("reached:")).collect();
    assert_eq!(reached.len(), 1, "{notes}");
    assert!(reached[0].contains("TABLE settings"), "{notes}");
    assert_eq!(notes.matches("refused:").count(), 11, "{notes}");
    assert!(notes.contains("in /tmp as") && !notes.contains("as 0"), "{notes}");

    // What it leaves in the background ends with it; one that takes too long, or is cancelled, ends at once.
    let leaves = world.program("leaves", &format!("setsid sleep {nap} & sleep 0.3; echo done"));
    world.done(&format!("vdb set dev --hook after-refresh={leaves}"));
    world.done("vdb refresh dev");
    assert_eq!(sleepers(), []);
    let slow = world.program("slow", &format!("sleep {nap} & echo begun; wait"));
    world.done(&format!("vdb set dev --hook after-refresh={slow} --hook-time-limit 1s"));
    world.fails("vdb refresh dev", "takes longer than 1 s");
    assert_eq!(sleepers(), []);
    world.done(&format!("vdb set dev --hook after-refresh={slow}"));
    let job = world.done("vdb refresh dev --detach")["job"].as_str().unwrap().to_owned();
    wait_until("it sleeps", PATIENCE, || Ok(!sleepers().is_empty())).unwrap();
    world.done(&format!("job cancel {job}"));
    wait_until("the end", PATIENCE, || Ok(world.newest_job().state == JobState::Cancelled))
        .unwrap();
    assert_eq!(sleepers(), []);
    assert!(world.bed.vdb("dev").unwrap().warnings[0].message.contains("was cancelled"));

    // The next engine ends what a killed one left, also one that hides, and runs it again.
    let once =
        format!("psql -XqAtc 'CREATE TABLE ran()' && exec -a hidden sleep {nap}; echo again");
    let once = world.program("once", &once);
    world.done(&format!("vdb set dev --hook after-refresh={once}"));
    world.run("vdb refresh dev --detach").unwrap();
    wait_until("it sleeps", PATIENCE, || Ok(!sleepers().is_empty())).unwrap();
    let first = sleepers();
    world.bed.engine.kill_and_restart().unwrap();
    wait_until("the end", PATIENCE, || Ok(world.newest_job().state.is_final())).unwrap();
    let job = world.newest_job();
    assert_eq!((job.state, job.error), (JobState::Done, None));
    assert!(job.notes.join("\n").contains("again"), "{:?}", job.notes);
    assert!(first.iter().all(|process| !process.alive()));

    // Who confines nobody runs nothing.
    world.bed.engine.stop().unwrap();
    world.bed.engine.options.arguments.push("--unconfined".into());
    world.bed.engine.restart().unwrap();
    world.fails("vdb refresh dev", "does not confine");
}

#[test]
fn a_vdb_that_is_asleep_wakes_for_a_hook_before() {
    let world = World::start();
    let save = world.program("save", "psql -XAtc 'SELECT count(*) FROM settings'");
    let load = world
        .program("load", "read count; psql -Xqc \"CREATE TABLE seen AS SELECT $count AS count\"");
    world.done(&format!(
        "vdb provision dev --from shop --stop-when-idle 2s --hook before-refresh={save} --hook after-refresh={load}"
    ));
    let asleep = || Ok(world.state() == VdbState::Stopped);
    wait_until("it sleeps", PATIENCE, asleep).unwrap();
    world.done("vdb refresh dev");
    assert_eq!(world.text("SELECT count FROM seen"), "1");
    let no = world.program("no", "exit 1");
    world.done(&format!("vdb set dev --hook before-refresh={no}"));
    wait_until("it sleeps", PATIENCE, asleep).unwrap();
    world.fails("vdb refresh dev", "ended with exit status");
    wait_until("it sleeps", PATIENCE, asleep).unwrap();
    assert_eq!(world.text("SELECT count FROM seen"), "1", "it wakes");
}

#[test]
fn a_refresh_keeps_roles_and_settings_where_that_is_wanted() {
    let world = World::start();
    let source = world.bed.source.connect("postgres").unwrap();
    source.execute("CREATE ROLE app LOGIN PASSWORD 'production'").unwrap();
    source.execute("CREATE ROLE readers; GRANT SELECT ON settings TO readers").unwrap();
    world.done("dsource sync shop");
    world.done("vdb provision dev --from shop --refresh-keeps roles,settings");
    world.done("vdb provision other --from shop");
    let login = |vdb: &str, role: &str| {
        let uri = world.bed.vdb(vdb).unwrap().uri;
        let (_, place) = uri.split_once('@').unwrap();
        offshoot_rig::Database::connect(&format!("postgresql://{role}:o'word@{place}"))
    };
    for vdb in ["dev", "other"] {
        let session = world.bed.open(vdb).unwrap();
        for sql in [
            "ALTER ROLE app LOGIN PASSWORD 'o''word'",
            "CREATE ROLE \"new \"\"one\" LOGIN CREATEDB PASSWORD 'o''word' CONNECTION LIMIT 7",
            "GRANT readers TO \"new \"\"one\"",
            "ALTER ROLE app SET work_mem = '7MB'",
            "ALTER DATABASE postgres SET search_path = 'a b', public",
        ] {
            session.execute(sql).unwrap();
        }
    }
    assert_eq!(login("dev", "app").unwrap().text("SHOW work_mem").unwrap(), "7MB");
    let of_new = "SELECT concat(rolcreatedb, ' ', rolconnlimit, ' ', rolsuper, ' ', pg_has_role(rolname, 'readers', 'member')) \
         FROM pg_roles WHERE rolname = 'new \"one'";
    for round in 0..2 {
        world.done("vdb refresh dev");
        let app = login("dev", "app").unwrap();
        assert_eq!(app.text("SHOW work_mem").unwrap(), "7MB", "{round}");
        assert_eq!(app.text("SHOW search_path").unwrap(), "\"a b\", public");
        assert_eq!(world.text(of_new), "t 7 f t");
        drop(app);
        // A stopped one has them, too.
        world.done("vdb stop dev");
    }
    let notes = world.newest_job().notes;
    assert_eq!(notes, Vec::<String>::new());
    world.done("vdb refresh dev");
    assert_eq!(world.text(of_new), "t 7 f t");
    login("dev", "new%20%22one").unwrap();

    // Where it is not wanted, they go, and production's password is not there.
    world.done("vdb refresh other");
    assert!(login("other", "app").is_err());
    world.done("vdb set dev --refresh-keeps settings");
    world.done("vdb refresh dev");
    assert!(login("dev", "app").is_err());
    assert_eq!(world.text("SHOW search_path"), "\"a b\", public");
    let notes = world.newest_job().notes.join("\n");
    assert!(!notes.contains("production") && !notes.contains("word"), "{notes}");
    world.done("vdb set dev --refresh-keeps none");
    world.done("vdb refresh dev");
    assert_eq!(world.text("SHOW search_path"), "\"$user\", public");
    let left = world.done("secret show")["sealed"].as_u64().unwrap();
    world.done("vdb set dev --refresh-keeps roles");
    world.done("vdb refresh dev");
    assert_eq!(
        world.done("secret show")["sealed"].as_u64().unwrap(),
        left,
        "nothing stays in between"
    );
}

#[test]
fn a_superuser_s_alter_system_is_kept() {
    let world = World::start();
    world.done("vdb provision dev --from shop --superuser --refresh-keeps settings");
    let session = world.bed.open("dev").unwrap();
    session.execute("ALTER SYSTEM SET work_mem = '9MB'").unwrap();
    session.execute("ALTER SYSTEM SET max_connections = 33").unwrap();
    drop(session);
    world.done("vdb refresh dev");
    assert_eq!(world.text("SHOW work_mem"), "9MB");
    world.done("vdb stop dev");
    world.done("vdb start dev");
    assert_eq!(world.text("SHOW max_connections"), "33", "what takes a restart has had one");
}

/// What a program tries, and how its job ends.
fn tries(world: &World, name: &str, script: &str, ends: &str) {
    let file = world.program(name, script);
    world.done(&format!("vdb set dev --hook before-refresh={file} --hook-time-limit 4s"));
    world.fails("vdb refresh dev", ends);
    assert_eq!(sleepers(), [], "{name}");
}

#[test]
fn a_hostile_program_harms_nobody() {
    let nap = nap();
    let world = World::start();
    world.done("vdb provision dev --from shop");
    let session = world.bed.open("dev").unwrap();
    let began = "SELECT pg_postmaster_start_time()";
    let before = session.text(began).unwrap();
    tries(&world, "kills", "kill -9 -1; echo alone; exit 1", "alone");
    tries(&world, "fills", "head -c 400M /dev/zero > /tmp/x || echo full; exit 1", "full");
    tries(&world, "floods", "yes flood", "takes longer than 4 s");
    tries(&world, "stays", &format!("trap '' TERM INT HUP; sleep {nap}"), "takes longer");
    tries(&world, "stops", "kill -STOP $$; sleep 1", "takes longer");
    tries(&world, "hides", &format!("exec -a x sleep {nap}"), "takes longer");
    assert_eq!(session.text(began).unwrap(), before, "its server and its sessions went on");
}

mod needs_process_groups {
    #[test]
    #[ignore = "needs control groups of processes; scripts/test.sh runs it"]
    fn a_program_that_multiplies_is_bounded() {
        let world = super::World::start();
        world.done("vdb provision dev --from shop");
        let bomb = "bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 600";
        super::tries(&world, "bomb", bomb, "takes longer than 4 s");
        assert_eq!(world.text("SELECT 1"), "1");
    }
}

mod needs_memory_groups {
    #[test]
    #[ignore = "needs control groups of memory; scripts/test.sh runs it"]
    fn a_program_that_eats_memory_is_ended() {
        let world = super::World::start();
        world.done("vdb provision dev --from shop");
        super::tries(&world, "eats", "tail /dev/zero; echo eaten; exit 1", "eaten");
        assert_eq!(world.text("SELECT 1"), "1");
    }
}
