//! An engine is lost, and the one that it has sent to goes on: with its dSources, their histories, and production.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result, ensure};
use offshoot_api::{
    BookmarkList, Dsource, DsourceList, DsourceState, Job, JobAccepted, JobList, Peer,
    PeerInvitation, Policy, Replication, ReplicationState, SnapshotList, Status, TimeflowList, Vdb,
    VdbState,
};
use offshoot_rig::{CommandError, Database, Engine};
use offshoot_testbed::{PATIENCE, Two, load, make_noise, received_moment, sums, wait_until};
use offshoot_types::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;

/// A file with the password of the role that links.
fn password(two: &Two, password: &str) -> PathBuf {
    let file = two.here.scratch.path().join("password");
    std::fs::write(&file, password).unwrap();
    file
}

fn dsource(two: &Two, name: &str) -> Dsource {
    two.there.ask(["dsource", "show", name]).unwrap()
}

fn fail_over(two: &Two, more: &[&str]) -> Result<Job, CommandError> {
    let done = two.there.command([&["failover", "west"][..], more].concat())?;
    Ok(serde_json::from_value(done).expect("a job"))
}

/// Says how the source is reached; the notes of the job.
fn set_way(two: &Two) -> Result<Vec<String>> {
    let file = password(two, two.here.source.link_password());
    let file = file.to_str().context("a path")?;
    let words = ["dsource", "set", "shop", "--password-file", file, "--detach"];
    let begun: JobAccepted = two.there.ask(words)?;
    let job: Job = two.there.ask(["job", "watch", &begun.job.to_string()])?;
    ensure!(job.error.is_none(), "{job:?}");
    Ok(job.notes)
}

fn names(two: &Two) -> Vec<String> {
    let list: DsourceList = two.there.ask(["dsource", "list"]).unwrap();
    list.dsources.into_iter().map(|one| one.name).collect()
}

/// Faults of an object on the engine that took over.
fn faults(two: &Two, object: &str) -> Vec<String> {
    let status: Status = two.there.ask(["status"]).unwrap();
    let of_it = status.faults.into_iter().filter(|fault| fault.object == object);
    of_it.map(|fault| fault.hint).collect()
}

/// They come and go with those of the engine that sends; those that were set there stay.
fn bookmarks_follow(two: &Two) {
    let names = || -> Vec<String> {
        let list: BookmarkList = two.there.ask(["bookmark", "list"]).unwrap();
        list.bookmarks.into_iter().map(|one| one.name).collect()
    };
    assert_eq!(names(), ["west/v1"]);
    two.there.command(["bookmark", "create", "mine", "--on", "west/shop"]).unwrap();
    two.here.engine.command(["bookmark", "create", "v2", "--on", "shop"]).unwrap();
    two.run("nightly").unwrap();
    assert_eq!(names(), ["mine", "west/v1", "west/v2"]);
    two.here.engine.command(["bookmark", "delete", "v2"]).unwrap();
    two.run("nightly").unwrap();
    assert_eq!(names(), ["mine", "west/v1"]);
}

/// What is refused before anything has changed.
fn is_asked_for_with_care(two: &Two) {
    let unknown = two.there.command(["failover", "east"]).unwrap_err();
    assert_eq!(unknown.code, "not_found", "{unknown:?}");
    let alive = fail_over(two, &[]).unwrap_err();
    assert_eq!(alive.code, "wrong_state", "{alive:?}");
    assert!(alive.hint.contains("--force"), "{alive:?}");
    two.there.command(["vdb", "provision", "shop", "--from", "west/shop"]).unwrap();
    let taken = fail_over(two, &["--force"]).unwrap_err();
    assert_eq!(taken.code, "already_exists", "{taken:?}");
    assert!(taken.message.contains("'shop'") && taken.hint.contains("--rename shop="), "{taken:?}");
    let wrong = fail_over(two, &["--force", "--rename", "other=mine"]).unwrap_err();
    assert_eq!(wrong.code, "not_found", "{wrong:?}");
    assert_eq!(dsource(two, "west/shop").state, DsourceState::Replica);
    two.there.command(["vdb", "delete", "shop"]).unwrap();
}

/// It is its own, with its history, and says what it lacks.
fn waits_for_its_way(two: &Two, (moment, then): &(String, String)) {
    assert_eq!(names(two), ["shop", "west/dev"]);
    let shop = dsource(two, "shop");
    assert_eq!(shop.state, DsourceState::Failed, "{shop:?}");
    let wanted = "dsource set shop --password-file";
    assert!(shop.error.as_ref().is_some_and(|error| error.hint.contains(wanted)), "{shop:?}");
    assert!(faults(two, "shop").iter().any(|hint| hint.contains(wanted)));
    for words in
        [["dsource", "resume", "shop"], ["dsource", "sync", "shop"], ["snapshot", "take", "shop"]]
    {
        let refused = two.there.command(words).unwrap_err();
        assert_eq!(refused.code, "wrong_state", "{refused:?}");
        assert!(refused.hint.contains(wanted), "{refused:?}");
    }
    assert_eq!(sums(&two.open_there("then", "shop", &["--at", moment]).unwrap()).unwrap(), *then);
    let marked = two.open_there("marked", "shop", &["--bookmark", "v1"]).unwrap();
    assert_eq!(sums(&marked).unwrap(), *then);
    let policy: Policy = two.there.ask(["policy", "show", "shop"]).unwrap();
    assert_eq!(policy.log_ms, 30 * 24 * 3600 * 1000);
    let dev: Vdb = two.there.ask(["vdb", "show", "dev"]).unwrap();
    assert_eq!(dev.parent, "west/dev");
    let dev = Database::connect(&dev.uri).unwrap();
    assert_eq!(dev.number("SELECT n FROM mine").unwrap(), 7);
}

#[test]
fn what_was_taken_over_goes_on_with_production() {
    let mut two = Two::start().unwrap();
    let before = two.send_shop_and_dev().unwrap();
    two.there.command(["vdb", "provision", "child", "--from", "west/shop"]).unwrap();
    bookmarks_follow(&two);
    is_asked_for_with_care(&two);

    // The host of the first engine is lost, and production goes on without it.
    two.here.engine.kill().unwrap();
    load(&two.here).unwrap();
    let done = fail_over(&two, &["--force"]).unwrap();
    assert!(done.notes.iter().any(|note| note.contains("'west/shop' is 'shop' now")), "{done:?}");
    is_made_again(&two, &done);
    let twice = fail_over(&two, &["--force"]).unwrap_err();
    assert_eq!(twice.code, "wrong_state", "{twice:?}");
    assert!(twice.message.contains("already"), "{twice:?}");
    let child: Vdb = two.there.ask(["vdb", "show", "child"]).unwrap();
    assert_eq!(child.parent, "shop");
    two.there.command(["vdb", "refresh", "child", "--latest"]).unwrap();
    two.there.kill_and_restart().unwrap();
    waits_for_its_way(&two, &before);

    let slots = two.here.source_slots().unwrap();
    let wrong = password(&two, "wrong");
    let wrong = ["dsource", "set", "shop", "--password-file", wrong.to_str().unwrap()];
    two.there.command(wrong).unwrap_err();
    assert_eq!(dsource(&two, "shop").state, DsourceState::Failed);
    assert_eq!(two.here.source_slots().unwrap(), slots);
    let notes = set_way(&two).unwrap();
    assert!(notes.iter().any(|note| note.contains("goes on where its history ends")), "{notes:?}");
    assert_eq!(two.here.source_slots().unwrap(), slots + 1);
    goes_on(&two, &before);
    two.there.kill_and_restart().unwrap();
    goes_on(&two, &before);

    // The first engine comes back.
    two.here.engine.restart().unwrap();
    let fenced = two.run("nightly").unwrap_err();
    assert_eq!(fenced.code, "forbidden", "{fenced:?}");
    assert!(fenced.message.contains("taken over"), "{fenced:?}");
    let status: Status = two.here.engine.ask(["status"]).unwrap();
    let told = |fault: &offshoot_api::Fault| {
        fault.object == "nightly" && fault.message.contains("taken over")
    };
    assert!(status.faults.iter().any(told), "{:?}", status.faults);
    is_relieved(&two, "nightly");
    // It was stopped once: who starts it again knows.
    two.here.engine.command(["vdb", "start", "dev"]).unwrap();
    assert_eq!(two.run("nightly").unwrap_err().code, "forbidden");
    assert_eq!(here(&two, "dev").unwrap().state, VdbState::Running);
    assert_eq!(names(&two), ["shop", "west/dev"]);
    let west: Peer = two.there.ask(["peer", "show", "west"]).unwrap();
    assert!(west.taken_over_at.is_some(), "{west:?}");
    two.here.engine.command(["replication", "delete", "nightly"]).unwrap();
    two.check().unwrap();
}

/// What production commits now is there, and so is what was sent.
fn goes_on(two: &Two, (moment, then): &(String, String)) {
    load(&two.here).unwrap();
    two.there.command(["dsource", "sync", "shop"]).unwrap();
    let shop = dsource(two, "shop");
    assert!(shop.state == DsourceState::Active && shop.error.is_none(), "{shop:?}");
    wait_until("no fault is left", PATIENCE, || Ok(faults(two, "shop").is_empty())).unwrap();
    let taken: offshoot_api::Snapshot = two.there.ask(["snapshot", "take", "shop"]).unwrap();
    let taken = taken.id.to_string();
    let production = sums(&two.here.source.connect("postgres").unwrap()).unwrap();
    let probe = |moment: &[&str]| -> Result<String> {
        let found = sums(&two.open_there("probe", "shop", moment)?)?;
        two.there.command(["vdb", "delete", "probe"])?;
        Ok(found)
    };
    assert_eq!(probe(&["--latest"]).unwrap(), production);
    assert_eq!(probe(&["--snapshot", &taken]).unwrap(), production);
    assert_eq!(probe(&["--at", moment]).unwrap(), *then);
}

/// The VDB `dev`, by a job of its own.
fn is_made_again(two: &Two, done: &Job) {
    let said = done.notes.iter().find(|note| note.contains("made again as 'dev'"));
    let job = said.and_then(|note| note.split(['(', ')']).nth(1)).unwrap();
    let job: Job = two.there.ask(["job", "watch", job]).unwrap();
    assert!(job.error.is_none(), "{job:?}");
}

#[test]
fn a_gap_is_named_and_a_new_copy_goes_on() {
    let mut two = Two::start_with(&[("wal_keep_size", "0")]).unwrap();
    let (moment, then) = two.send_shop_and_dev().unwrap();
    two.here.engine.kill().unwrap();
    // Nothing keeps production's log any more.
    let source = two.here.source.connect("postgres").unwrap();
    wait_until("the slot is dropped", PATIENCE, || {
        let free = "FROM pg_replication_slots WHERE NOT active";
        source.execute(&format!("SELECT pg_drop_replication_slot(slot_name) {free}"))?;
        Ok(two.here.source_slots()? == 0)
    })
    .unwrap();
    let oldest = "SELECT min(name) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'";
    let before = source.text("SELECT pg_walfile_name(pg_current_wal_lsn())").unwrap();
    wait_until("production gives its log up", PATIENCE, || {
        make_noise(&source, "filler", 2000)?;
        source.execute("DROP TABLE filler")?;
        source.execute("SELECT pg_switch_wal()")?;
        source.execute("CHECKPOINT")?;
        Ok(source.text(oldest)? > before)
    })
    .unwrap();
    fail_over(&two, &["--force"]).unwrap();
    let notes = set_way(&two).unwrap();
    assert!(
        notes.iter().any(|note| note.contains("cannot go on where its history ends")),
        "{notes:?}"
    );
    let shop = dsource(&two, "shop");
    let error = shop.error.as_ref().unwrap();
    assert!(shop.state == DsourceState::Failed && error.hint.contains("dsource sync"), "{shop:?}");
    two.there.command(["dsource", "sync", "shop"]).unwrap();
    goes_on(&two, &(moment, then));
    let history: TimeflowList = two.there.ask(["timeflow", "show", "shop"]).unwrap();
    assert!(history.timeflows.iter().any(|one| !one.gaps.is_empty()), "{history:?}");
    stop_without_sender(two);
}

/// Stops the one that is left, and checks its pool.
fn stop_without_sender(mut two: Two) {
    offshoot_testbed::stop_and_check(&mut two.there).unwrap();
}

#[test]
fn what_is_on_its_way_is_given_up() {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    two.know().unwrap();
    two.create("slow", &["--include", "all", "--limit", "2MB/s"]).unwrap();
    two.run("slow").unwrap();
    make_noise(&two.here.source.connect("postgres").unwrap(), "noise", 40_000).unwrap();
    received_moment(&two.here).unwrap();
    two.here.wait_ready(&two.here.snapshot("shop").unwrap()).unwrap();
    let run: JobAccepted = two.here.engine.ask(["replication", "run", "slow", "--detach"]).unwrap();
    let run = run.job.to_string();
    wait_until("it is in the middle", PATIENCE, || {
        let job: Job = two.here.engine.ask(["job", "show", &run])?;
        ensure!(!job.state.is_final(), "it ended too early: {job:?}");
        Ok(job.progress.done > 2 << 20)
    })
    .unwrap();
    let done = fail_over(&two, &["--force", "--rename", "shop=ours"]).unwrap();
    assert!(done.notes.iter().any(|note| note.contains("in part only")), "{done:?}");
    wait_until("the run ends", PATIENCE, || {
        let job: Job = two.here.engine.ask(["job", "show", &run])?;
        Ok(job.state.is_final())
    })
    .unwrap();
    let error = two.show("slow").unwrap().error.unwrap();
    assert!(error.message.contains("taken over"), "{error:?}");
    assert_eq!(names(&two), ["ours"]);
    let vdb: Vdb = two.there.ask(["vdb", "provision", "dev", "--from", "ours"]).unwrap();
    Database::connect(&vdb.uri).unwrap().number("SELECT count(*) FROM pgbench_accounts").unwrap();
    two.here.engine.command(["replication", "delete", "slow"]).unwrap();
    two.check().unwrap();
}

/// Rows that a VDB has acknowledged.
struct Writer {
    acknowledged: Arc<AtomicI64>,
    thread: JoinHandle<()>,
}

/// Writes to a VDB until that refuses.
fn write_to(vdb: &Vdb) -> Result<Writer> {
    let database = Database::connect(&vdb.uri)?;
    database.execute("CREATE TABLE IF NOT EXISTS written (n bigint)")?;
    let acknowledged = Arc::new(AtomicI64::new(0));
    let count = acknowledged.clone();
    let thread = std::thread::spawn(move || {
        while database.execute("INSERT INTO written VALUES (1)").is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok(Writer { acknowledged, thread })
}

impl Writer {
    /// How many, once it was refused. One more may be there, whose answer was lost.
    fn written(self) -> i64 {
        self.thread.join().unwrap();
        self.acknowledged.load(Ordering::SeqCst)
    }
}

fn is_there(vdb: &Vdb, written: i64) -> Result<()> {
    let rows = Database::connect(&vdb.uri)?.number("SELECT count(*) FROM written")?;
    ensure!((written..=written + 1).contains(&rows), "{rows} rows of {written}");
    Ok(())
}

fn planned(two: &Two) -> Result<String> {
    let begun: JobAccepted = two.there.ask(["failover", "west", "--planned", "--detach"])?;
    Ok(begun.job.to_string())
}

/// A VDB of the engine that sends.
fn here(two: &Two, name: &str) -> Result<Vdb> {
    two.here.engine.ask(["vdb", "show", name])
}

fn ended(engine: &Engine, job: &str) -> Job {
    // It may have failed.
    let _ = engine.command(["job", "watch", job]);
    engine.ask(["job", "show", job]).unwrap()
}

/// Waits until a VDB runs on the engine that took over.
fn made_again(two: &Two, engine: &Engine, name: &str) -> Vdb {
    two.made_again(engine, name).with_context(|| jobs(two)).unwrap()
}

/// What both have done.
fn jobs(two: &Two) -> String {
    let line = |Job { id, kind, object, error, notes, .. }: &Job| {
        format!("{id} {kind} {object}: {error:?} {notes:?}\n")
    };
    let of = |engine: &Engine| match engine.ask::<JobList, _>(["job", "list"]) {
        Ok(list) => list.jobs.iter().map(line).collect(),
        Err(error) => format!("{error:?}"),
    };
    format!("there: {}here: {}", of(&two.there), of(&two.here.engine))
}

/// What the engine that has sent says of what was taken over.
fn is_relieved(two: &Two, profile: &str) {
    let dev = here(two, "dev").unwrap();
    assert_eq!(dev.state, VdbState::Stopped, "{dev:?}");
    assert!(
        dev.error.as_ref().is_some_and(|error| error.message.contains("'east' has taken it over")),
        "{dev:?}"
    );
    let shop = two.here.dsource("shop").unwrap();
    assert_eq!(shop.state, DsourceState::Paused, "{shop:?}");
    assert!(
        shop.error.as_ref().is_some_and(|error| error.hint.contains("unlink shop")),
        "{shop:?}"
    );
    assert_eq!(two.show(profile).unwrap().state, ReplicationState::Paused);
}

#[test]
fn a_planned_failover_loses_nothing() {
    let mut two = Two::start().unwrap();
    let before = two.send_shop_and_dev().unwrap();
    two.here.engine.command(["replication", "delete", "nightly"]).unwrap();
    two.create("always", &["--include", "all", "--continuous"]).unwrap();
    let both = two.there.command(["failover", "west", "--planned", "--force"]);
    assert_eq!(both.unwrap_err().code, "invalid_input");
    // Made after the last round: it goes along all the same.
    let fresh = two.here.provision("fresh", "shop", &[]).unwrap();
    let writers = [write_to(&here(&two, "dev").unwrap()).unwrap(), write_to(&fresh).unwrap()];
    load(&two.here).unwrap();
    let production = sums(&two.here.source.connect("postgres").unwrap()).unwrap();

    let done = fail_over(&two, &["--planned"]).unwrap();
    assert!(done.notes.iter().any(|note| note.contains("'west' has stopped")), "{done:?}");
    for (name, writer) in ["dev", "fresh"].into_iter().zip(writers) {
        let vdb = made_again(&two, &two.there, name);
        let written = writer.written();
        assert!(written > 0);
        is_there(&vdb, written).unwrap();
    }
    let latest = two.open_there("latest", "shop", &["--latest"]).unwrap();
    assert_eq!(sums(&latest).unwrap(), production);
    wait_until("the run ends", PATIENCE, || {
        Ok(two.show("always")?.state == ReplicationState::Paused)
    })
    .unwrap();
    is_relieved(&two, "always");
    assert_eq!(two.faults("always").unwrap(), [] as [String; 0]);
    two.here.engine.kill().unwrap();
    two.here.engine.restart().unwrap();
    is_relieved(&two, "always");
    set_way(&two).unwrap();
    goes_on(&two, &before);
    // What was relieved can be used all the same. Here both are on one host, where one has the port of the other.
    two.there.command(["vdb", "delete", "dev"]).unwrap();
    two.here.engine.command(["vdb", "start", "dev"]).unwrap();
    two.here.engine.command(["replication", "delete", "always"]).unwrap();
    two.check().unwrap();
}

#[test]
fn a_planned_failover_that_is_given_up_lets_all_go_on() {
    let two = Two::start().unwrap();
    two.send_shop_and_dev().unwrap();
    // Nobody has called yet.
    let job = planned(&two).unwrap();
    two.there.command(["job", "cancel", &job]).unwrap();
    assert_eq!(ended(&two.there, &job).error.unwrap().code, ErrorKind::Cancelled);
    two.run("nightly").unwrap();
    assert_eq!(here(&two, "dev").unwrap().state, VdbState::Running);

    // It cannot take over when all has stopped.
    let job = planned(&two).unwrap();
    two.there.command(["vdb", "provision", "shop", "--from", "west/shop"]).unwrap();
    two.run("nightly").unwrap();
    assert_eq!(ended(&two.there, &job).error.unwrap().code, ErrorKind::AlreadyExists);
    let dev = here(&two, "dev").unwrap();
    assert!(dev.state == VdbState::Running && dev.error.is_none(), "{dev:?}");
    assert_eq!(Database::connect(&dev.uri).unwrap().number("SELECT n FROM mine").unwrap(), 7);
    let shop = two.here.dsource("shop").unwrap();
    assert!(shop.state == DsourceState::Active && shop.error.is_none(), "{shop:?}");
    load(&two.here).unwrap();
    two.run("nightly").unwrap();
    two.check().unwrap();
}

/// Waits until the VDB `dev` has stopped on the engine that sends.
fn stops(two: &Two) {
    let stopped = || Ok(here(two, "dev")?.state == VdbState::Stopped);
    wait_until("what was sent has stopped", PATIENCE, stopped).with_context(|| jobs(two)).unwrap();
}

#[test]
fn a_planned_failover_survives_kills_of_the_one_that_sends() {
    let mut two = Two::start().unwrap();
    two.send_shop_and_dev().unwrap();
    let writer = write_to(&here(&two, "dev").unwrap()).unwrap();
    let job = planned(&two).unwrap();
    two.here.engine.command(["replication", "run", "nightly", "--detach"]).unwrap();
    stops(&two);
    two.here.engine.kill_and_restart().unwrap();
    let written = writer.written();
    let done = ended(&two.there, &job);
    assert!(done.error.is_none(), "{}", jobs(&two));
    is_there(&made_again(&two, &two.there, "dev"), written).unwrap();
    let paused = || Ok(two.show("nightly")?.state == ReplicationState::Paused);
    wait_until("the run ends", PATIENCE, paused).unwrap();
    let dev = here(&two, "dev").unwrap();
    assert!(dev.state == VdbState::Stopped && dev.error.is_some(), "{dev:?}");
    two.here.engine.command(["replication", "delete", "nightly"]).unwrap();
    two.check().unwrap();
}

/// An engine that is killed before it has taken over gives up, and never do both have it.
#[test]
fn a_planned_failover_that_is_killed_leaves_it_with_one_of_both() {
    let mut two = Two::start().unwrap();
    two.send_shop_and_dev().unwrap();
    let waiting = planned(&two).unwrap();
    two.there.kill_and_restart().unwrap();
    assert!(ended(&two.there, &waiting).error.is_some());
    two.run("nightly").unwrap();
    assert_eq!(here(&two, "dev").unwrap().state, VdbState::Running);

    let writer = write_to(&here(&two, "dev").unwrap()).unwrap();
    planned(&two).unwrap();
    let run: JobAccepted =
        two.here.engine.ask(["replication", "run", "nightly", "--detach"]).unwrap();
    stops(&two);
    two.there.kill().unwrap();
    two.here.engine.kill().unwrap();
    two.here.engine.restart().unwrap();
    two.there.restart().unwrap();
    let written = writer.written();
    let ended = ended(&two.here.engine, &run.job.to_string());
    assert!(ended.error.is_none(), "{}", jobs(&two));
    let west: Peer = two.there.ask(["peer", "show", "west"]).unwrap();
    let dev = here(&two, "dev").unwrap();
    match west.taken_over_at {
        Some(_) => {
            assert!(dev.state == VdbState::Stopped && dev.error.is_some(), "{dev:?}");
            is_there(&made_again(&two, &two.there, "dev"), written).unwrap();
        }
        None => {
            assert_eq!(dev.state, VdbState::Running, "{}", jobs(&two));
            is_there(&dev, written).unwrap();
        }
    }
    two.here.engine.command(["replication", "delete", "nightly"]).unwrap();
    two.check().unwrap();
}

/// A planned failover of what `nightly` sends.
fn move_there(two: &Two) {
    let job = planned(two).unwrap();
    two.run("nightly").unwrap();
    assert!(ended(&two.there, &job).error.is_none(), "{}", jobs(two));
    made_again(two, &two.there, "dev");
}

/// From here on other engines can call the one that has sent so far, which is `west` to the other one.
fn listen_here(two: &mut Two) {
    two.here.engine.options.listen = "0.0.0.0:0".into();
    assert_eq!(two.here.engine.stop().unwrap(), 0);
    two.here.engine.restart().unwrap();
    let status: Status = two.here.engine.ask(["status"]).unwrap();
    let (_, port) = status.listen.rsplit_once(':').unwrap();
    let code: PeerInvitation = two.here.engine.ask(["peer", "invite", "--as", "east"]).unwrap();
    let address = format!("127.0.0.1:{port}");
    let words = ["peer", "add", "west", "--address", &address, "--code", &code.code];
    two.there.command(words).unwrap();
}

#[test]
fn it_goes_back_with_what_has_changed_alone() {
    let mut two = Two::start().unwrap();
    let source = two.here.source.connect("postgres").unwrap();
    make_noise(&source, "bulk", 20_000).unwrap();
    // So that no autovacuum changes each page of it later.
    source.execute("VACUUM (FREEZE, ANALYZE)").unwrap();
    two.send_shop_and_dev().unwrap();
    let whole = two.show("nightly").unwrap().changed_unique_bytes;
    move_there(&two);
    set_way(&two).unwrap();
    source.execute("UPDATE bulk SET i = i + 1000000 WHERE i <= 200").unwrap();
    two.there.command(["dsource", "sync", "shop"]).unwrap();
    let dev: Vdb = two.there.ask(["vdb", "show", "dev"]).unwrap();
    Database::connect(&dev.uri).unwrap().execute("UPDATE mine SET n = 8").unwrap();

    listen_here(&mut two);
    let words =
        ["replication", "create", "back", "--to", "west", "--include", "dsource:shop,vdb:dev"];
    two.there.command(["snapshot", "take", "dev"]).unwrap();
    wait_until("the VDB's snapshot is ready", PATIENCE, || {
        let dev: SnapshotList = two.there.ask(["snapshot", "list", "dev"])?;
        Ok(!dev.snapshots.is_empty() && dev.snapshots.iter().all(|one| one.ready))
    })
    .unwrap();
    two.there.command(words).unwrap();
    two.there.command(["replication", "run", "back"]).unwrap();
    let back: Replication = two.there.ask(["replication", "show", "back"]).unwrap();
    let changed = back.changed_unique_bytes;
    assert!(changed * 10 < whole, "{changed} of {whole}: {}", jobs(&two));

    // What it had before makes way.
    let engine = &two.here.engine;
    let taken = engine.command(["failover", "east", "--planned"]).unwrap_err();
    assert_eq!(taken.code, "already_exists", "{taken:?}");
    engine.command(["vdb", "delete", "dev"]).unwrap();
    engine.command(["dsource", "unlink", "shop"]).unwrap();
    let job: JobAccepted = engine.ask(["failover", "east", "--planned", "--detach"]).unwrap();
    two.there.command(["replication", "run", "back"]).unwrap();
    assert!(ended(engine, &job.job.to_string()).error.is_none(), "{}", jobs(&two));
    let dev = made_again(&two, engine, "dev");
    assert_eq!(Database::connect(&dev.uri).unwrap().number("SELECT n FROM mine").unwrap(), 8);
    let file = password(&two, two.here.source.link_password());
    engine.command(["dsource", "set", "shop", "--password-file", file.to_str().unwrap()]).unwrap();
    source.execute("UPDATE bulk SET t = '' WHERE i = 1").unwrap();
    engine.command(["dsource", "sync", "shop"]).unwrap();
    let latest = two.here.provision("latest", "shop", &["--latest"]).unwrap();
    let rows = "SELECT md5(string_agg(bulk::text, ',' ORDER BY i)) FROM bulk";
    let latest = Database::connect(&latest.uri).unwrap().text(rows).unwrap();
    assert_eq!(latest, source.text(rows).unwrap());

    // And it is sent from here to there again.
    let code: PeerInvitation = two.there.ask(["peer", "invite", "--as", "west"]).unwrap();
    two.here.engine.command(["replication", "delete", "nightly"]).unwrap();
    two.add("east", &code.code).unwrap();
    two.create("again", &["--include", "dsource:shop"]).unwrap();
    let again = two.run("again").unwrap();
    assert!(again.changed_unique_bytes * 10 < whole, "{again:?}");
    two.check().unwrap();
}
