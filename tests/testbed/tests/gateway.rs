//! Connections by way of a gateway outlive what happens to the server, and wake it.
#![allow(clippy::unwrap_used)]

use offshoot_api::{Vdb, VdbState};
use offshoot_os::process::{ProcessId, Signal};
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Database;
use offshoot_testbed::{PATIENCE, Testbed, wait_until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn done(bed: &Testbed, line: &str) {
    bed.engine.command(line.split(' ')).unwrap();
}

/// A session that would not be what it was without all that is put back.
fn session_of(uri: &str) -> Database {
    let session = Database::connect(uri).unwrap();
    session.execute("SET work_mem = '7MB'").unwrap();
    session.execute("PREPARE plus(int) AS SELECT $1 + 1").unwrap();
    session
}

fn check(session: &Database) {
    assert_eq!(session.text("SHOW work_mem").unwrap(), "7MB");
    assert_eq!(session.number("EXECUTE plus(41)").unwrap(), 42);
}

/// The state that the server gives with an error.
fn refusal(session: &Database, sql: &str) -> String {
    format!("{:?}", session.execute(sql).unwrap_err())
}

fn asleep(bed: &Testbed, name: &str) -> bool {
    let vdb = bed.vdb(name).unwrap();
    vdb.state == VdbState::Stopped && vdb.gateway.is_some_and(|gateway| gateway.asleep)
}

fn wait_asleep(bed: &Testbed, name: &str) {
    wait_until("nobody uses it", PATIENCE, || Ok(asleep(bed, name))).unwrap();
}

/// Connects again and again until told to end; returns how often, and the longest wait.
fn keep_connecting(uri: String, end: Arc<AtomicBool>) -> std::thread::JoinHandle<(u32, Duration)> {
    std::thread::spawn(move || {
        let (mut times, mut longest) = (0, Duration::ZERO);
        while !end.load(Ordering::Relaxed) {
            let begun = SystemClock.elapsed();
            let session = Database::connect(&uri).expect("no connection is refused");
            assert_eq!(session.number("SELECT 1").unwrap(), 1);
            longest = longest.max(SystemClock.elapsed() - begun);
            times += 1;
        }
        (times, longest)
    })
}

#[test]
fn connections_outlive_refresh_rewind_and_restart() {
    let mut bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let dev = bed.provision("dev", "shop", &["--gateway"]).unwrap();
    let kept = session_of(&dev.uri);
    check(&kept);
    let first = bed.snapshot("dev").unwrap();

    let end = Arc::new(AtomicBool::new(false));
    let others = keep_connecting(dev.uri.clone(), end.clone());
    kept.execute("CREATE TABLE mine AS SELECT 1 AS n").unwrap();
    done(&bed, "vdb refresh dev");
    check(&kept);
    assert!(kept.execute("SELECT n FROM mine").is_err(), "it is another state");
    done(&bed, &format!("vdb rewind dev --snapshot {}", first.id));
    check(&kept);
    done(&bed, "vdb rewind dev --undo");
    check(&kept);
    done(&bed, "vdb set dev --set statement_timeout=77s");
    check(&kept);
    assert_eq!(kept.text("SHOW statement_timeout").unwrap(), "77s");

    // Not what would be lost without a word.
    let busy = Database::connect(&dev.uri).unwrap();
    busy.execute("BEGIN; CREATE TABLE half AS SELECT 1 AS n").unwrap();
    let temporary = Database::connect(&dev.uri).unwrap();
    temporary.execute("CREATE TEMPORARY TABLE own AS SELECT 1 AS n").unwrap();
    done(&bed, "vdb set dev --unset statement_timeout");
    for session in [&busy, &temporary] {
        let said = refusal(session, "SELECT 1");
        assert!(said.contains("57P01") || said.contains("closed"), "{said}");
    }
    assert!(kept.execute("SELECT n FROM half").is_err(), "its transaction is rolled back");
    end.store(true, Ordering::Relaxed);
    let (times, longest) = others.join().unwrap();
    println!("{times} connections beside it, {longest:?} at most");

    // The engine's end is none of theirs, and the next engine finds the gateway.
    bed.engine.kill().unwrap();
    check(&kept);
    let uri = dev.uri.clone();
    let new = std::thread::spawn(move || Database::connect(&uri)?.number("SELECT 1"));
    bed.engine.restart().unwrap();
    check(&kept);
    assert_eq!(new.join().unwrap().unwrap(), 1, "a new one waits for the next engine");
    done(&bed, "vdb refresh dev");
    check(&kept);

    done(&bed, "vdb stop dev");
    assert!(kept.execute("SELECT 1").is_err());
    assert!(Database::connect(&dev.uri).is_err(), "who stops it means it");
    done(&bed, "vdb start dev");
    let kept = session_of(&dev.uri);
    done(&bed, "vdb reset-password dev");
    done(&bed, "vdb refresh dev");
    let said = refusal(&kept, "SELECT 1");
    assert!(said.contains("57P01") || said.contains("closed"), "its password is another: {said}");

    done(&bed, "vdb set dev --no-gateway");
    assert!(bed.vdb("dev").unwrap().gateway.is_none());
    assert_eq!(bed.open("dev").unwrap().number("SELECT 1").unwrap(), 1);
    done(&bed, "vdb set dev --gateway");
    assert_eq!(bed.open("dev").unwrap().number("SELECT 1").unwrap(), 1);
    done(&bed, "vdb delete dev --yes");
    done(&bed, "dsource unlink shop --yes");
    bed.assert_no_trace().unwrap();
}

#[test]
fn a_vdb_that_nobody_uses_sleeps_until_somebody_connects() {
    let mut bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let nap = bed.provision("nap", "shop", &["--stop-when-idle", "2s"]).unwrap();
    let kept = session_of(&nap.uri);

    // Whoever is in a transaction uses it.
    kept.execute("BEGIN").unwrap();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(bed.vdb("nap").unwrap().state, VdbState::Running);
    kept.execute("CREATE TABLE mine AS SELECT 1 AS n; COMMIT").unwrap();
    wait_asleep(&bed, "nap");

    let begun = SystemClock.elapsed();
    assert_eq!(bed.open("nap").unwrap().number("SELECT n FROM mine").unwrap(), 1);
    println!("woken in {:?}", SystemClock.elapsed() - begun);
    check(&kept);
    wait_until("it runs", PATIENCE, || Ok(bed.vdb("nap")?.state == VdbState::Running)).unwrap();

    // Also for an engine that did not put it to sleep, and by whoever was connected all the time.
    wait_asleep(&bed, "nap");
    bed.engine.kill_and_restart().unwrap();
    assert!(asleep(&bed, "nap"));
    check(&kept);
    wait_asleep(&bed, "nap");
    bed.engine.stop().unwrap();
    bed.engine.restart().unwrap();
    assert!(asleep(&bed, "nap"));
    assert!(kept.execute("SELECT 1").is_err(), "an engine that ends takes all with it");
    assert_eq!(Database::connect(&nap.uri).unwrap().number("SELECT n FROM mine").unwrap(), 1);

    // It can be worked with as if it were stopped.
    wait_asleep(&bed, "nap");
    done(&bed, "vdb start nap");
    wait_asleep(&bed, "nap");
    done(&bed, "vdb refresh nap");
    let refreshed = Database::connect(&nap.uri).unwrap();
    assert!(refreshed.execute("SELECT n FROM mine").is_err());
    wait_asleep(&bed, "nap");
    done(&bed, "vdb stop nap");
    assert!(Database::connect(&nap.uri).is_err(), "who stops it means it");
    done(&bed, "vdb start nap");
    done(&bed, "vdb set nap --stop-when-idle never");
    std::thread::sleep(Duration::from_secs(4));
    let vdb: Vdb = bed.vdb("nap").unwrap();
    assert_eq!((vdb.state, vdb.gateway.unwrap().stop_when_idle_ms), (VdbState::Running, None));
}

/// Connects, works and leaves until told to end; returns how often, and what it was told when it was ended in the middle.
fn work(uri: &str, end: &AtomicBool) -> (u32, Vec<String>) {
    let (mut times, mut ended) = (0, Vec::new());
    while !end.load(Ordering::Relaxed) {
        let session = Database::connect(uri).expect("no connection is refused");
        for _ in 0..20 {
            let sql = "BEGIN; UPDATE pgbench_branches SET bbalance = bbalance + 1; SELECT pg_sleep(0.01); COMMIT";
            match session.execute(sql) {
                Ok(()) => times += 1,
                Err(error) => {
                    ended.push(format!("{error:?}"));
                    break;
                }
            }
        }
    }
    (times, ended)
}

#[test]
fn many_clients_outlive_many_refreshes() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let more = ["--gateway", "--set", "max_connections=200"];
    let dev = bed.provision("dev", "shop", &more).unwrap();
    let idle: Vec<Database> = (0..90).map(|_| session_of(&dev.uri)).collect();
    let silent: Vec<Database> = (0..30).map(|_| Database::connect(&dev.uri).unwrap()).collect();
    let end = AtomicBool::new(false);
    let worked: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..10).map(|_| scope.spawn(|| work(&dev.uri, &end))).collect();
        for round in 0..2 {
            let begun = SystemClock.elapsed();
            done(&bed, "vdb refresh dev");
            println!("refreshed in {:?}", SystemClock.elapsed() - begun);
            idle.iter().for_each(check);
            for session in silent.iter().skip(round * 15).take(15) {
                assert_eq!(session.number("SELECT 1").unwrap(), 1);
            }
        }
        end.store(true, Ordering::Relaxed);
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let times: u32 = worked.iter().map(|(times, _)| times).sum();
    let ended: Vec<&String> = worked.iter().flat_map(|(_, ended)| ended).collect();
    println!("{times} transactions, {} ended in the middle", ended.len());
    let told = |said: &&&String| said.contains("57P01") || said.contains("closed");
    assert_eq!(ended.iter().filter(told).count(), ended.len(), "{ended:?}");
    assert!(times > 100);
}

/// Has somebody say something every now and then until it is heard. The first words may come before the listener is back.
fn check_hears(listener: &mut Database, uri: &str, word: &str) {
    let speaker = Database::connect(uri).unwrap();
    wait_until("it is heard", PATIENCE, || {
        speaker.execute(&format!("NOTIFY news, '{word}'"))?;
        Ok(listener.hear(Duration::from_millis(200)).is_ok_and(|heard| heard == word))
    })
    .unwrap();
}

#[test]
fn who_only_listens_hears_after_a_refresh() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let dev = bed.provision("dev", "shop", &["--gateway"]).unwrap();
    let mut listener = Database::connect(&dev.uri).unwrap();
    listener.execute("LISTEN news").unwrap();
    check_hears(&mut listener, &dev.uri, "before");
    for change in ["vdb refresh dev", "vdb set dev --set work_mem=7MB"] {
        done(&bed, change);
        check_hears(&mut listener, &dev.uri, change);
    }
    // Who only listens keeps no server awake, wakes none, and hears again once somebody has.
    done(&bed, "vdb set dev --stop-when-idle 2s");
    wait_asleep(&bed, "dev");
    std::thread::sleep(Duration::from_secs(3));
    assert!(asleep(&bed, "dev"));
    check_hears(&mut listener, &dev.uri, "woken");
}

/// A new client during the crash, and one that was there before, both go on once the next engine has come.
fn crash_at(bed: &mut Testbed, point: &str, ask: impl FnOnce(&Testbed)) {
    println!("crash at {point}");
    let dev = bed.vdb("dev").unwrap();
    let kept = session_of(&dev.uri);
    bed.engine.kill().unwrap();
    bed.restart_to_crash(point).unwrap();
    check(&kept);
    ask(bed);
    assert!(bed.engine.wait_end(PATIENCE), "it never came to {point}");
    let uri = dev.uri;
    let new = std::thread::spawn(move || Database::connect(&uri)?.number("SELECT 1"));
    bed.engine.options.env.clear();
    bed.engine.restart().unwrap();
    check(&kept);
    assert_eq!(new.join().unwrap().unwrap(), 1);
}

#[test]
fn clients_outlive_an_engine_that_ends_in_between() {
    let mut bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    bed.provision("dev", "shop", &["--gateway"]).unwrap();
    for step in ["close_old:after", "open:before", "open:after", "publish:after"] {
        crash_at(&mut bed, &format!("vdb_refresh/{step}"), |bed| {
            // The answer may be lost with the engine.
            let _ = bed.engine.command(["vdb", "refresh", "dev", "--detach"]);
        });
    }
    done(&bed, "vdb set dev --stop-when-idle 2s");
    for step in ["park:after", "stop:after", "publish:after"] {
        crash_at(&mut bed, &format!("vdb_sleep/{step}"), |_| ());
    }

    // The end of the gateway is that of its clients, and no more.
    done(&bed, "vdb set dev --stop-when-idle never");
    let dev = bed.vdb("dev").unwrap();
    let kept = session_of(&dev.uri);
    let is_gateway =
        |process: &ProcessId| process.arguments().get(1).is_some_and(|it| it == "gateway");
    let gateway = bed.scratch.processes().into_iter().find(is_gateway).unwrap();
    gateway.signal(Signal::Kill).unwrap();
    assert!(kept.execute("SELECT 1").is_err());
    wait_until("there is another gateway", PATIENCE, || Ok(Database::connect(&dev.uri).is_ok()))
        .unwrap();
    check(&session_of(&dev.uri));
}

#[test]
fn gateways_that_cannot_be_are_refused() {
    let bed = Testbed::start().unwrap();
    bed.link("shop").unwrap();
    let code = |line: &str| bed.refused(&line.split(' ').collect::<Vec<_>>()).code;
    assert_eq!(code("vdb provision dev --from shop --stop-when-idle 1ms"), "invalid_input");
    bed.provision("dev", "shop", &["--stop-when-idle", "1h"]).unwrap();
    assert_eq!(code("vdb set dev --no-gateway"), "invalid_input");
    // Its server's port is its own as well.
    let port = bed.vdb("dev").unwrap().port;
    assert_eq!(code(&format!("vdb provision other --from shop --port {port}")), "already_exists");
}
