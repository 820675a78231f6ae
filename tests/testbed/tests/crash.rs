//! The engine is killed: at every step of every kind of job, and under load.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{BookmarkList, DsourceList, Status, VdbList, VdbState};
use offshoot_rig::Database;
use offshoot_testbed::{
    Outcome, PATIENCE, Step, Testbed, check_pages, final_job, kill_under_load, steps_of,
    wait_until, with_log,
};

/// One command whose job is crashed at each of its steps.
struct Command {
    /// The object that the job works on.
    object: &'static str,
    /// Prepares it; run before each crash, and undone by what follows.
    prepare: fn(&Testbed) -> Result<()>,
    /// The command itself.
    arguments: fn(&Testbed) -> Result<Vec<String>>,
    /// What must hold afterwards, whether it was finished or undone.
    verify: fn(&Testbed, Outcome) -> Result<()>,
}

fn words(words: &[&str]) -> Result<Vec<String>> {
    Ok(words.iter().map(|word| (*word).to_owned()).collect())
}

fn nothing(_: &Testbed) -> Result<()> {
    Ok(())
}

/// A linked dSource `prod` and a VDB `base` with a table of its own.
fn linked() -> Result<Testbed> {
    let bed = Testbed::start()?;
    let prepared = bed.link("prod").and_then(|_| {
        bed.provision("base", "prod", &[])?;
        bed.open("base")?.execute("CREATE TABLE own AS SELECT 1 AS n")
    });
    with_log(&bed.engine, prepared)?;
    Ok(bed)
}

/// Runs a command once to learn its steps, then crashes it at each: when a step has run and that is
/// not recorded yet, and before the first. With `OFFSHOOT_TEST_CRASHES=all` also before each other
/// step, which takes twice as long.
fn crash_everywhere(bed: &mut Testbed, command: &Command) -> Result<()> {
    with_log(&bed.engine, run(bed, command)).context("without a crash")?;
    let steps = steps_of(&bed.engine, command.object)?;
    ensure!(!steps.is_empty(), "a job without steps");
    let all = std::env::var("OFFSHOOT_TEST_CRASHES").is_ok_and(|text| text == "all");
    for (number, step) in steps.iter().enumerate() {
        let before = (all || number == 0).then(|| format!("{}:before", step.crash_point()));
        for point in before.into_iter().chain([format!("{}:after", step.crash_point())]) {
            println!("crash at {point}");
            let result = crash_at(bed, command, step, &point);
            with_log(&bed.engine, result).with_context(|| point.clone())?;
        }
    }
    Ok(())
}

fn run(bed: &Testbed, command: &Command) -> Result<()> {
    (command.prepare)(bed)?;
    bed.engine.command((command.arguments)(bed)?)?;
    (command.verify)(bed, Outcome::Done)
}

fn crash_at(bed: &mut Testbed, command: &Command, step: &Step, point: &str) -> Result<()> {
    (command.prepare)(bed)?;
    let code = bed.engine.stop()?;
    ensure!(code == 0, "the engine ended with {code}");
    ensure!(bed.servers().is_empty(), "left running: {:?}", bed.servers());
    bed.engine.options.env = vec![("OFFSHOOT_CRASH_AT".into(), point.to_owned())];
    bed.engine.restart()?;
    wait_settled(bed)?;
    let mut arguments = (command.arguments)(bed)?;
    arguments.push("--detach".into());
    let password = [("PGPASSWORD", bed.source.link_password())];
    // The answer may be lost with the engine.
    let asked = bed.engine.command_within(arguments, &password, PATIENCE);
    ensure!(
        bed.engine.wait_end(PATIENCE),
        "the engine never came to {step:?}; the command said {asked:?}"
    );
    bed.engine.options.env.clear();
    bed.engine.restart()?;
    let (_, outcome) = final_job(&bed.engine, &step.kind, command.object, PATIENCE)?;
    wait_settled(bed)?;
    (command.verify)(bed, outcome)?;
    let status: Status = bed.engine.ask(["status"])?;
    ensure!(status.faults.is_empty(), "faults: {:?}", status.faults);
    Ok(())
}

/// Waits until all that should run does.
fn wait_settled(bed: &Testbed) -> Result<()> {
    wait_until("VDBs and dSources are settled", PATIENCE, || {
        let vdbs: VdbList = bed.engine.ask(["vdb", "list"])?;
        let failed: Vec<_> = vdbs.vdbs.iter().filter(|vdb| vdb.state == VdbState::Failed).collect();
        ensure!(failed.is_empty(), "failed: {failed:?}");
        Ok(vdbs.vdbs.iter().all(|vdb| vdb.state != VdbState::Provisioning))
    })
}

fn has_vdb(bed: &Testbed, name: &str) -> Result<bool> {
    let list: VdbList = bed.engine.ask(["vdb", "list"])?;
    Ok(list.vdbs.iter().any(|vdb| vdb.name == name))
}

fn has_dsource(bed: &Testbed, name: &str) -> Result<bool> {
    let list: DsourceList = bed.engine.ask(["dsource", "list"])?;
    Ok(list.dsources.iter().any(|dsource| dsource.name == name))
}

fn own(bed: &Testbed, name: &str) -> Result<i64> {
    wait_until("the VDB answers", PATIENCE, || Ok(bed.open(name).is_ok()))?;
    bed.open(name)?.number("SELECT n FROM own")
}

#[test]
fn a_link_is_finished_or_undone() {
    let mut bed = Testbed::start().unwrap();
    let link = Command {
        object: "prod",
        prepare: |bed| {
            if has_dsource(bed, "prod")? {
                bed.engine.command(["dsource", "unlink", "prod"])?;
            }
            bed.assert_no_trace()
        },
        arguments: |bed| {
            let uri = bed.source.superuser_uri("postgres");
            words(&["dsource", "link", "prod", "--connector", "postgres", "--source", &uri])
        },
        verify: |bed, outcome| match outcome {
            Outcome::Done => {
                let vdb = bed.provision("proof", "prod", &[])?;
                let count =
                    Database::connect(&vdb.uri)?.number("SELECT count(*) FROM pgbench_accounts")?;
                ensure!(count == 100_000, "{count} accounts");
                bed.engine.command(["vdb", "delete", "proof"])?;
                Ok(())
            }
            Outcome::Undone => bed.assert_no_trace(),
        },
    };
    crash_everywhere(&mut bed, &link).unwrap();
}

#[test]
fn provision_and_delete_are_finished_or_undone() {
    let mut bed = linked().unwrap();
    let gone = |bed: &Testbed| -> Result<()> {
        if has_vdb(bed, "fresh")? {
            bed.engine.command(["vdb", "delete", "fresh"])?;
        }
        Ok(())
    };
    let there = |bed: &Testbed| -> Result<()> {
        if !has_vdb(bed, "fresh")? {
            bed.provision("fresh", "base", &[])?;
        }
        Ok(())
    };
    let provision = Command {
        object: "fresh",
        prepare: gone,
        arguments: |_| words(&["vdb", "provision", "fresh", "--from", "base"]),
        verify: |bed, outcome| {
            ensure!(own(bed, "base")? == 1, "the parent is untouched");
            match outcome {
                Outcome::Done => {
                    ensure!(own(bed, "fresh")? == 1, "the VDB opens");
                    Ok(())
                }
                Outcome::Undone => no_server_of_a_third_vdb(bed),
            }
        },
    };
    crash_everywhere(&mut bed, &provision).unwrap();
    let delete = Command {
        object: "fresh",
        prepare: there,
        arguments: |_| words(&["vdb", "delete", "fresh"]),
        verify: |bed, outcome| {
            ensure!(own(bed, "base")? == 1, "the parent is untouched");
            match outcome {
                Outcome::Done => {
                    ensure!(!has_vdb(bed, "fresh")?, "it is gone");
                    no_server_of_a_third_vdb(bed)
                }
                Outcome::Undone => {
                    ensure!(own(bed, "fresh")? == 1, "it is there as before");
                    Ok(())
                }
            }
        },
    };
    crash_everywhere(&mut bed, &delete).unwrap();
}

/// Only `base` and the staging standby may run.
fn no_server_of_a_third_vdb(bed: &Testbed) -> Result<()> {
    ensure!(!has_vdb(bed, "fresh")?, "undone is gone");
    wait_until("no server is left of it", PATIENCE, || {
        let servers = bed.servers();
        let postmasters = servers.iter().filter(|arguments| arguments.contains("bin/postgres"));
        let count = postmasters.count();
        ensure!(count <= 2, "running: {servers:?}");
        Ok(true)
    })
}

#[test]
fn stop_start_and_snapshot_are_finished_or_undone() {
    let mut bed = linked().unwrap();
    let stop = Command {
        object: "base",
        prepare: |bed| ensure_state(bed, VdbState::Running),
        arguments: |_| words(&["vdb", "stop", "base"]),
        verify: |bed, outcome| match outcome {
            Outcome::Done => ensure_is(bed, VdbState::Stopped),
            Outcome::Undone => ensure_is(bed, VdbState::Running),
        },
    };
    crash_everywhere(&mut bed, &stop).unwrap();
    let start = Command {
        object: "base",
        prepare: |bed| ensure_state(bed, VdbState::Stopped),
        arguments: |_| words(&["vdb", "start", "base"]),
        verify: |bed, outcome| match outcome {
            Outcome::Done => {
                ensure!(own(bed, "base")? == 1, "it answers");
                ensure_is(bed, VdbState::Running)
            }
            Outcome::Undone => ensure_is(bed, VdbState::Stopped),
        },
    };
    crash_everywhere(&mut bed, &start).unwrap();
    ensure_state(&bed, VdbState::Running).unwrap();
    let snapshot = Command {
        object: "base",
        prepare: nothing,
        arguments: |_| words(&["snapshot", "take", "base"]),
        verify: |bed, _| {
            ensure!(own(bed, "base")? == 1, "the VDB goes on");
            Ok(())
        },
    };
    crash_everywhere(&mut bed, &snapshot).unwrap();
}

#[test]
fn a_bookmark_is_set_or_leaves_nothing() {
    let mut bed = linked().unwrap();
    let create = Command {
        object: "mark",
        prepare: |bed| {
            if has_bookmark(bed)? {
                bed.engine.command(["bookmark", "delete", "mark"])?;
            }
            Ok(())
        },
        arguments: |_| words(&["bookmark", "create", "mark", "--on", "base"]),
        verify: |bed, outcome| {
            ensure!(has_bookmark(bed)? == (outcome == Outcome::Done), "{outcome:?}");
            ensure!(own(bed, "base")? == 1, "the VDB goes on");
            Ok(())
        },
    };
    crash_everywhere(&mut bed, &create).unwrap();
    let opened = run(&bed, &create).and_then(|()| {
        bed.provision("marked", "base", &["--bookmark", "mark"])?;
        ensure!(own(&bed, "marked")? == 1, "what it names opens");
        bed.engine.command(["vdb", "delete", "marked"])?;
        bed.engine.command(["vdb", "delete", "base"])?;
        bed.engine.command(["dsource", "unlink", "prod"])?;
        bed.assert_no_trace()
    });
    with_log(&bed.engine, opened).unwrap();
}

fn has_bookmark(bed: &Testbed) -> Result<bool> {
    let list: BookmarkList = bed.engine.ask(["bookmark", "list"])?;
    Ok(!list.bookmarks.is_empty())
}

fn ensure_is(bed: &Testbed, state: VdbState) -> Result<()> {
    let shown = bed.vdb("base")?.state;
    ensure!(shown == state, "it is {shown:?}, not {state:?}");
    Ok(())
}

fn ensure_state(bed: &Testbed, state: VdbState) -> Result<()> {
    if bed.vdb("base")?.state != state {
        let verb = if state == VdbState::Running { "start" } else { "stop" };
        bed.engine.command(["vdb", verb, "base"])?;
    }
    ensure_is(bed, state)
}

#[test]
fn refresh_rewind_and_unlink_are_finished_or_undone() {
    let mut bed = linked().unwrap();
    let rewind = Command {
        object: "base",
        prepare: |bed| {
            let db = bed.open("base")?;
            db.execute("DROP TABLE IF EXISTS own; CREATE TABLE own AS SELECT 1 AS n")?;
            bed.snapshot("base")?;
            db.execute("UPDATE own SET n = 2")
        },
        arguments: |bed| {
            let list = bed.engine.command(["snapshot", "list", "base"])?;
            let last = list["snapshots"].as_array().and_then(|all| {
                all.iter().rfind(|snapshot| snapshot["kind"] == "manual")?["id"].as_str()
            });
            words(&["vdb", "rewind", "base", "--snapshot", last.context("a snapshot")?])
        },
        verify: |bed, outcome| {
            let expected = if outcome == Outcome::Done { 1 } else { 2 };
            let held = own(bed, "base")?;
            ensure!(held == expected, "holds {held}, not {expected}");
            Ok(())
        },
    };
    crash_everywhere(&mut bed, &rewind).unwrap();
    let refresh = Command {
        object: "base",
        prepare: |bed| {
            let db = bed.open("base")?;
            db.execute("DROP TABLE IF EXISTS own; CREATE TABLE own AS SELECT 1 AS n")
        },
        arguments: |_| words(&["vdb", "refresh", "base"]),
        verify: |bed, outcome| {
            wait_until("it answers", PATIENCE, || Ok(bed.open("base").is_ok()))?;
            let fresh = bed.open("base")?.text("SELECT to_regclass('own') IS NULL")? == "t";
            ensure!(fresh == (outcome == Outcome::Done), "{outcome:?}, but refreshed: {fresh}");
            Ok(())
        },
    };
    crash_everywhere(&mut bed, &refresh).unwrap();
    let unlink = Command {
        object: "prod",
        prepare: |bed| {
            if !has_dsource(bed, "prod")? {
                bed.link("prod")?;
            }
            Ok(())
        },
        arguments: |_| words(&["dsource", "unlink", "prod"]),
        verify: |bed, outcome| {
            ensure!(has_dsource(bed, "prod")? == (outcome == Outcome::Undone), "{outcome:?}");
            let slots = bed.source_slots()?;
            ensure!(slots == i64::from(outcome == Outcome::Undone), "{slots} slots, {outcome:?}");
            ensure!(bed.open("base")?.number("SELECT 1")? == 1, "the VDB needs no dSource");
            Ok(())
        },
    };
    crash_everywhere(&mut bed, &unlink).unwrap();
}

/// How often the engine is killed under load: `OFFSHOOT_TEST_KILLS`, by default 5.
fn kills() -> u32 {
    std::env::var("OFFSHOOT_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

#[test]
fn acknowledged_commits_survive_kill_9_under_load() {
    let mut bed = linked().unwrap();
    let seen = kill_under_load(&mut bed, "base", kills());
    let seen = with_log(&bed.engine, seen).unwrap();
    println!("{seen:?}");
    assert!(seen.commits >= 20 * i64::from(kills()), "{seen:?}");
}

/// What replay wrote into a copy becomes durable as a whole, before its VDB is handed out.
#[test]
fn what_was_replayed_for_a_vdb_survives_a_crash_of_the_host() {
    let mut bed = Testbed::start().unwrap();
    bed.link("prod").unwrap();
    let lasts = |bed: &mut Testbed| -> Result<()> {
        let source = bed.source.connect("postgres")?;
        source.execute(
            "CREATE TABLE later AS SELECT n, repeat('x', 100) FROM generate_series(1, 300000) n",
        )?;
        let opened = bed.provision("copy", "prod", &["--latest"])?;
        ensure!(opened.timings.recover_ms > 0, "nothing was replayed");
        bed.kill_all()?;
        bed.engine.restart()?;
        wait_until("it runs again", PATIENCE, || Ok(bed.open("copy").is_ok()))?;
        ensure!(bed.open("copy")?.number("SELECT count(*) FROM later")? == 300_000);
        check_pages(bed, &bed.vdb("copy")?.uri)
    };
    let lasted = lasts(&mut bed);
    with_log(&bed.engine, lasted).unwrap();
}
