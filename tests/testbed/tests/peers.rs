//! Two engines that know each other by a code: what one sends the other opens, and nothing else passes between them.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::{Dsource, Job, JobAccepted, JobState, PeerList, PoolStatus, ReplicationHistory};
use offshoot_os::process::{Child, Spec, run};
use offshoot_rig::Database;
use offshoot_testbed::{PATIENCE, Two, load, make_noise, received_moment, sums, wait_until};

#[test]
fn what_changed_follows_and_any_replicated_commit_opens() {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    load(&two.here).unwrap();
    let between = received_moment(&two.here).unwrap();
    load(&two.here).unwrap();
    two.here.provision("dev", "shop", &[]).unwrap();
    two.here.open("dev").unwrap().execute("CREATE TABLE mine AS SELECT 7 AS n").unwrap();
    two.here.wait_ready(&two.here.snapshot("dev").unwrap()).unwrap();
    let snapshot = two.here.snapshot("shop").unwrap();
    two.here.wait_ready(&snapshot).unwrap();
    two.know().unwrap();
    let made = two.create("nightly", &["--include", "dsource:shop,vdb:dev"]).unwrap();
    assert_eq!((made.peer.as_str(), made.last_success_at), ("east", None));

    let first = two.run("nightly").unwrap();
    println!("first: {first:?}");
    assert!(first.last_success_at.is_some() && first.error.is_none() && !first.resumed);
    assert!(first.changed_unique_bytes > 1 << 20, "{first:?}");
    assert!(first.sent_bytes < first.changed_unique_bytes * 11 / 10 + (1 << 20), "{first:?}");
    let replica: Dsource = two.there.ask(["dsource", "show", "west/shop"]).unwrap();
    assert_eq!(replica.name, "west/shop");
    let there = sums(&two.open_there("then", "west/shop", &["--at", &between]).unwrap()).unwrap();
    let here = two.here.provision("then", "shop", &["--at", &between]).unwrap();
    assert_eq!(there, sums(&Database::connect(&here.uri).unwrap()).unwrap());
    let copy = two.open_there("copy", "west/dev", &[]).unwrap();
    assert_eq!(copy.number("SELECT n FROM mine").unwrap(), 7);

    // What changed, and nothing else.
    load(&two.here).unwrap();
    let later = received_moment(&two.here).unwrap();
    let second = two.run("nightly").unwrap();
    println!("second: {second:?}");
    assert!(second.sent_bytes < first.sent_bytes / 2, "{first:?} {second:?}");
    let there = sums(&two.open_there("later", "west/shop", &["--at", &later]).unwrap()).unwrap();
    let here = two.here.provision("later", "shop", &["--at", &later]).unwrap();
    assert_eq!(there, sums(&Database::connect(&here.uri).unwrap()).unwrap());

    // Nothing changed: hardly anything is sent, once the engine has nothing of its own to do with it either.
    two.here.engine.command(["dsource", "pause", "shop"]).unwrap();
    wait_until("nothing changes", PATIENCE, || {
        let run = two.run("nightly")?;
        println!("nothing: {} bytes", run.sent_bytes);
        Ok(run.sent_bytes < 10_000 && run.changed_unique_bytes == 0)
    })
    .unwrap();
    let history: ReplicationHistory =
        two.here.engine.ask(["replication", "history", "nightly"]).unwrap();
    assert!(history.runs.len() >= 3 && history.runs.iter().all(|run| run.error.is_none()));
    two.check().unwrap();
}

#[test]
fn a_code_lets_one_engine_in_once_and_nobody_else() {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    let not_by_tls = two.here.engine.command(["peer", "invite"]).unwrap_err();
    assert_eq!(not_by_tls.code, "wrong_state", "{not_by_tls:?}");
    assert!(not_by_tls.hint.contains("--listen"), "{not_by_tls:?}");

    let invitation = two.code(&["--as", "west"]).unwrap();
    let code = &invitation.code;
    // One digit of the secret, one of the fingerprint.
    let other = |at: usize| {
        let mut other = code.clone().into_bytes();
        other[at] = if other[at] == b'0' { b'1' } else { b'0' };
        String::from_utf8(other).unwrap()
    };
    let wrong_secret = two.add("east", &other(code.len() - 1)).unwrap_err();
    assert_eq!(wrong_secret.code, "forbidden", "{wrong_secret:?}");
    let wrong_engine = two.add("east", &other(10)).unwrap_err();
    assert_eq!(wrong_engine.code, "forbidden", "{wrong_engine:?}");
    assert!(wrong_engine.message.contains("another engine"), "{wrong_engine:?}");
    let no_code = two.add("east", "peer1-123").unwrap_err();
    assert_eq!(no_code.code, "invalid_input", "{no_code:?}");
    let peers: PeerList = two.here.engine.ask(["peer", "list"]).unwrap();
    assert_eq!(peers.peers, []);

    two.add("east", code).unwrap();
    let used = two.add("other", code).unwrap_err();
    assert_eq!(used.code, "forbidden", "{used:?}");
    let taken = two.there.command(["peer", "invite", "--as", "west"]).unwrap_err();
    assert_eq!(taken.code, "already_exists", "{taken:?}");
    let expired = two.code(&["--expires", "1ms"]).unwrap();
    let expired = two.add("other", &expired.code).unwrap_err();
    assert!(expired.code == "forbidden" && expired.message.contains("expired"), "{expired:?}");

    let peers: PeerList = two.there.ask(["peer", "list"]).unwrap();
    let [west] = &peers.peers[..] else { panic!("{peers:?}") };
    assert!(west.name == "west" && west.may_send && west.address.is_none(), "{west:?}");
    let peers: PeerList = two.here.engine.ask(["peer", "list"]).unwrap();
    let [east] = &peers.peers[..] else { panic!("{peers:?}") };
    assert!(east.name == "east" && !east.may_send && east.last_seen_at.is_some(), "{east:?}");
    assert_eq!(east.fingerprint, invitation.fingerprint);

    for (to, include) in [("nobody", "all"), ("east", "nobody")] {
        let words = ["replication", "create", "nightly", "--to", to, "--include", include];
        let refused = two.here.engine.command(words).unwrap_err();
        assert_eq!(refused.code, "not_found", "{refused:?}");
    }
    two.create("nightly", &["--include", "all"]).unwrap();
    let refused = two.here.engine.command(["peer", "remove", "east"]).unwrap_err();
    assert_eq!(refused.code, "wrong_state", "{refused:?}");
    // What is not masked stays here.
    two.create("safe", &["--include", "all", "--masked-only"]).unwrap();
    two.run("safe").unwrap();
    let unknown = two.there.command(["dsource", "show", "west/shop"]).unwrap_err();
    assert_eq!(unknown.code, "not_found", "{unknown:?}");

    // Whoever was removed sends nothing any more.
    two.there.command(["peer", "remove", "west"]).unwrap();
    let refused = two.run("nightly").unwrap_err();
    assert_eq!(refused.code, "forbidden", "{refused:?}");
    let unknown = two.there.command(["dsource", "show", "west/shop"]).unwrap_err();
    assert_eq!(unknown.code, "not_found", "{unknown:?}");
    // Its fault goes with the profile; nothing keeps the peer then.
    for name in ["nightly", "safe"] {
        two.here.engine.command(["replication", "delete", name]).unwrap();
    }
    two.here.engine.command(["peer", "remove", "east"]).unwrap();
    two.check().unwrap();
}

#[test]
fn a_name_that_is_taken_there_is_a_fault_until_it_is_free() {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    two.know().unwrap();
    two.create("often", &["--include", "all", "--schedule", "every 2s"]).unwrap();
    let succeeds = |what: &str| {
        let before = two.show("often").unwrap().last_success_at;
        wait_until(what, PATIENCE, || Ok(two.show("often")?.last_success_at > before)).unwrap();
    };
    succeeds("it runs by itself");
    let faults = || two.faults("often");
    assert_eq!(faults().unwrap(), Vec::<String>::new());
    // Another dSource of the same name is not a renewal.
    two.here.engine.command(["dsource", "unlink", "shop"]).unwrap();
    two.here.link("shop").unwrap();
    wait_until("the fault is shown", PATIENCE, || {
        Ok(faults()?.iter().any(|message| message.contains("is taken")))
    })
    .unwrap();
    assert!(two.show("often").unwrap().error.is_some());
    two.there.command(["dsource", "unlink", "west/shop"]).unwrap();
    succeeds("it runs again");
    wait_until("the fault is gone", PATIENCE, || Ok(faults()?.is_empty())).unwrap();

    two.here.engine.command(["replication", "pause", "often"]).unwrap();
    wait_until("no run is at work", PATIENCE, || Ok(two.show("often")?.job.is_none())).unwrap();
    let paused = two.show("often").unwrap();
    assert_eq!(paused.next_run_at, None);
    two.here.engine.command(["replication", "resume", "often"]).unwrap();
    succeeds("it runs by itself again");
    two.check().unwrap();
}

#[test]
fn whoever_is_killed_in_the_middle_the_run_goes_on() {
    let mut two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    let database = two.here.source.connect("postgres").unwrap();
    make_noise(&database, "noise", 40_000).unwrap();
    received_moment(&two.here).unwrap();
    two.here.wait_ready(&two.here.snapshot("shop").unwrap()).unwrap();
    two.know().unwrap();
    let words = ["--include", "dsource:shop", "--limit", "8MB/s"];
    two.create("slow", &words).unwrap();
    let run: JobAccepted = two.here.engine.ask(["replication", "run", "slow", "--detach"]).unwrap();
    let job = run.job.to_string();
    let progress = |two: &Two| -> Result<Job> { two.here.engine.ask(["job", "show", &job]) };
    let reach = |two: &Two, bytes: u64| {
        wait_until("it is in the middle", PATIENCE, || {
            let job = progress(two)?;
            anyhow::ensure!(!job.state.is_final(), "it ended too early: {job:?}");
            Ok(job.progress.done > bytes)
        })
        .unwrap();
    };
    reach(&two, 40 << 20);
    two.there.kill_and_restart().unwrap();
    let ended = |two: &Two| {
        wait_until("the run ends", PATIENCE, || Ok(progress(two)?.state.is_final())).unwrap();
        let job = progress(two).unwrap();
        assert_eq!(job.state, JobState::Done, "{job:?}");
    };
    ended(&two);
    let done = two.show("slow").unwrap();
    let pool: PoolStatus = two.there.ask(["pool", "status"]).unwrap();
    println!("{done:?}, {} bytes live there", pool.live_bytes);
    assert!(done.resumed, "{done:?}");
    // 16 MiB are not durable yet, and some were on their way.
    assert!(done.sent_bytes < pool.live_bytes + (32 << 20), "{done:?} {}", pool.live_bytes);

    // Something else, and now the sender is killed.
    make_noise(&database, "more", 30_000).unwrap();
    let last = received_moment(&two.here).unwrap();
    let run: JobAccepted = two.here.engine.ask(["replication", "run", "slow", "--detach"]).unwrap();
    let job = run.job.to_string();
    wait_until("it is in the middle", PATIENCE, || {
        let job: Job = two.here.engine.ask(["job", "show", &job])?;
        Ok(job.progress.done > 10 << 20)
    })
    .unwrap();
    two.here.engine.kill_and_restart().unwrap();
    wait_until("the run ends", PATIENCE, || {
        let job: Job = two.here.engine.ask(["job", "show", &job])?;
        Ok(job.state.is_final())
    })
    .unwrap();
    let done = two.show("slow").unwrap();
    assert!(done.error.is_none() && done.resumed, "{done:?}");
    let there = two.open_there("dev", "west/shop", &["--at", &last]).unwrap();
    let count = |database: &Database| {
        database.text("SELECT md5(string_agg(t, '' ORDER BY i)) FROM more").unwrap()
    };
    assert_eq!(count(&there), count(&database));
    two.check().unwrap();
}

#[test]
fn what_is_there_is_used_while_more_arrives() {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    let database = two.here.source.connect("postgres").unwrap();
    make_noise(&database, "first", 1_000).unwrap();
    let moment = received_moment(&two.here).unwrap();
    two.know().unwrap();
    two.create("slow", &["--include", "dsource:shop", "--limit", "2MB/s"]).unwrap();
    two.run("slow").unwrap();
    make_noise(&database, "more", 20_000).unwrap();
    received_moment(&two.here).unwrap();
    let run: JobAccepted = two.here.engine.ask(["replication", "run", "slow", "--detach"]).unwrap();
    let shown = || -> Result<Job> { two.here.engine.ask(["job", "show", &run.job.to_string()]) };
    wait_until("it arrives", PATIENCE, || Ok(shown()?.progress.done > 0)).unwrap();
    let meanwhile = two.open_there("meanwhile", "west/shop", &["--at", &moment]).unwrap();
    assert_eq!(meanwhile.number("SELECT count(*) FROM first").unwrap(), 1_000);
    wait_until("the run ends", PATIENCE, || Ok(shown()?.state.is_final())).unwrap();
    assert_eq!(shown().unwrap().state, JobState::Done);
    let newest = two.open_there("newest", "west/shop", &[]).unwrap();
    assert_eq!(newest.number("SELECT count(*) FROM more").unwrap(), 20_000);
    two.check().unwrap();
}

#[test]
fn what_there_is_no_room_for_is_refused_before_it_comes() {
    let mut two = Two::start().unwrap();
    let give = |two: &mut Two, capacity: String| {
        two.there.stop().unwrap();
        two.there.options.arguments = vec!["--capacity".into(), capacity];
        two.there.restart().unwrap();
    };
    give(&mut two, "128MiB".into());
    two.here.link("small").unwrap();
    two.here.engine.command(["dsource", "pause", "small"]).unwrap();
    let database = two.here.source.connect("postgres").unwrap();
    make_noise(&database, "noise", 100_000).unwrap();
    // So that no autovacuum changes each page of it later.
    database.execute("VACUUM (FREEZE, ANALYZE)").unwrap();
    two.here.link("shop").unwrap();
    received_moment(&two.here).unwrap();
    two.know().unwrap();
    two.create("nightly", &["--include", "all"]).unwrap();
    let refused = two.run("nightly").unwrap_err();
    println!("{refused:?}");
    assert_eq!(refused.code, "pool_full", "{refused:?}");
    assert!(refused.message.contains("'west/shop' takes "), "{refused:?}");
    assert!(refused.hint.contains("more room"), "{refused:?}");
    // The other one came, and of this one hardly anything.
    let there: Dsource = two.there.ask(["dsource", "show", "west/small"]).unwrap();
    assert_eq!(there.name, "west/small");
    let unknown = two.there.command(["dsource", "show", "west/shop"]).unwrap_err();
    assert_eq!(unknown.code, "not_found", "{unknown:?}");
    let run = two.show("nightly").unwrap();
    assert!(run.sent_bytes < 32 << 20, "{run:?}");

    give(&mut two, "1GiB".into());
    let run = two.run("nightly").unwrap();
    println!("{run:?}");
    assert!(run.changed_unique_bytes > 64 << 20, "{run:?}");
    let open = two.open_there("open", "west/shop", &[]).unwrap();
    assert_eq!(open.number("SELECT count(*) FROM noise").unwrap(), 100_000);
    drop(open);
    two.there.command(["vdb", "delete", "open"]).unwrap();

    // What is there already fits whatever its size.
    two.here.provision("dev", "shop", &[]).unwrap();
    two.here.wait_ready(&two.here.snapshot("dev").unwrap()).unwrap();
    let pool: PoolStatus = two.there.ask(["pool", "status"]).unwrap();
    let reserve = pool.capacity_bytes - pool.used_bytes - pool.free_bytes;
    give(&mut two, format!("{}B", pool.used_bytes + reserve + (40 << 20)));
    two.run("nightly").unwrap();
    let there: Dsource = two.there.ask(["dsource", "show", "west/dev"]).unwrap();
    assert_eq!(there.name, "west/dev");
    two.check().unwrap();
}

/// Ends with the test.
struct Stranger(Child);

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill_group();
    }
}

#[test]
fn strangers_take_no_place_from_peers() {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    two.know().unwrap();
    two.create("nightly", &["--include", "all"]).unwrap();
    let file = |name: &str| two.here.scratch.path().join(name);
    let make = Spec::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "1"])
        .arg("-keyout")
        .arg(file("key"))
        .arg("-out")
        .arg(file("certificate"));
    let made = run(&make, PATIENCE).unwrap();
    assert!(made.success(), "{made:?}");
    // They show a certificate that nobody knows, and say nothing.
    let strangers: Vec<Stranger> = (0..40)
        .map(|_| {
            let connect = Spec::new("openssl")
                .args(["s_client", "-quiet", "-alpn", "offshoot-peer/1", "-connect", &two.address])
                .arg("-cert")
                .arg(file("certificate"))
                .arg("-key")
                .arg(file("key"));
            Stranger(connect.new_session(true).die_with_parent(true).spawn().unwrap())
        })
        .collect();
    for _ in 0..3 {
        two.run("nightly").unwrap();
    }
    // They are sent away soon, which makes place for a stranger that has a code.
    two.there.command(["peer", "remove", "west"]).unwrap();
    let code = two.code(&["--as", "west"]).unwrap().code;
    wait_until("a place is free", PATIENCE, || Ok(two.add("again", &code).is_ok())).unwrap();
    two.run("nightly").unwrap();
    drop(strangers);
    two.check().unwrap();
}

#[test]
fn what_is_committed_follows_always() {
    let mut two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    two.know().unwrap();
    let words = ["--include", "dsource:shop", "--continuous", "--rpo", "10s"];
    let made = two.create("always", &words).unwrap();
    assert!(made.continuous && made.rpo_ms == Some(10_000), "{made:?}");
    for _ in 0..3 {
        two.follows().unwrap();
    }
    // Whoever is killed, it goes on.
    two.here.engine.kill_and_restart().unwrap();
    two.follows().unwrap();
    two.there.kill_and_restart().unwrap();
    load(&two.here).unwrap();
    let last = two.follows().unwrap();
    let there = sums(&two.open_there("dev", "west/shop", &["--at", &last]).unwrap()).unwrap();
    let here = two.here.provision("dev", "shop", &["--at", &last]).unwrap();
    assert_eq!(there, sums(&Database::connect(&here.uri).unwrap()).unwrap());
    let history: ReplicationHistory =
        two.here.engine.ask(["replication", "history", "always"]).unwrap();
    assert!(history.runs.len() < 4, "rounds are no runs: {history:?}");

    let running = two.here.engine.command(["replication", "delete", "always"]).unwrap_err();
    assert!(running.code == "busy" && running.hint.contains("pause"), "{running:?}");
    two.here.engine.command(["replication", "pause", "always"]).unwrap();
    wait_until("it has ended", PATIENCE, || Ok(two.show("always")?.job.is_none())).unwrap();
    assert!(two.show("always").unwrap().error.is_none());
    wait_until("that is too long", PATIENCE, || {
        Ok(two.faults("always")?.iter().any(|fault| fault.contains("10 s behind")))
    })
    .unwrap();
    two.here.engine.command(["replication", "resume", "always"]).unwrap();
    two.follows().unwrap();
    wait_until("the fault is gone", PATIENCE, || Ok(two.faults("always")?.is_empty())).unwrap();
    two.here.engine.command(["replication", "pause", "always"]).unwrap();
    wait_until("it has ended", PATIENCE, || Ok(two.show("always")?.job.is_none())).unwrap();
    two.here.engine.command(["replication", "delete", "always"]).unwrap();
    two.check().unwrap();
}
