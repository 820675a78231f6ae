//! Engines get other keys, and go on with each other without a new code, whoever is killed in the middle of it.
#![allow(clippy::unwrap_used)]

use anyhow::{Context, Result};
use offshoot_api::{JobAccepted, Peer, PeerKeyRotation};
use offshoot_catalog::{Catalog, Keyring, SecretKey};
use offshoot_domain as domain;
use offshoot_os::{Clock, SystemClock};
use offshoot_rig::Engine;
use offshoot_testbed::{PATIENCE, Two, load, wait_until};
use std::time::Duration;

const KEY: &str = "peer/key";
const OLD_KEY: &str = "peer/old-key";

fn start() -> Two {
    let two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    two.know().unwrap();
    two.create("nightly", &["--include", "all"]).unwrap();
    two.run("nightly").unwrap();
    two
}

fn rotate(engine: &Engine) -> PeerKeyRotation {
    engine.ask(["peer", "rotate"]).unwrap()
}

fn peer(engine: &Engine, name: &str) -> Peer {
    engine.ask(["peer", "show", name]).unwrap()
}

/// What is sent arrives, and both know each other's newest key.
fn go_on(two: &Two, here: &str, there: &str) {
    load(&two.here).unwrap();
    two.run("nightly").unwrap();
    let (east, west) = (peer(&two.here.engine, "east"), peer(&two.there, "west"));
    assert!(!east.rotation_pending && !west.rotation_pending, "{east:?} {west:?}");
    assert_eq!((&*west.fingerprint, &*east.fingerprint), (here, there));
}

/// The catalog of an engine that is stopped.
fn catalog(engine: &Engine) -> Result<Catalog> {
    let key = std::fs::read_to_string(engine.pool().with_extension("key"))?;
    let key = key.lines().find_map(SecretKey::parse).context("a key")?;
    Ok(Catalog::open(&engine.pool().join("catalog.db"), Keyring::from(key))?)
}

/// Changes what a stopped engine knows of its only peer.
fn edit(catalog: &Catalog, change: impl FnOnce(&mut domain::Peer)) {
    let [peer] = &catalog.list::<domain::Peer>().unwrap()[..] else { panic!("one peer") };
    catalog.update(peer.id, change).unwrap();
}

#[test]
fn peers_are_told_of_another_key_by_the_one_before() {
    let mut two = start();
    let first = [peer(&two.there, "west").fingerprint, peer(&two.here.engine, "east").fingerprint];
    let code = two.code(&["--as", "other"]).unwrap().code;

    // The one that sends.
    let here = rotate(&two.here.engine);
    assert_eq!(here.pending, ["east"]);
    assert_ne!(here.fingerprint, first[0]);
    assert!(peer(&two.here.engine, "east").rotation_pending);
    let again = two.here.engine.command(["peer", "rotate"]).unwrap_err();
    assert!(again.code == "wrong_state" && again.message.contains("'east'"), "{again:?}");
    two.here.engine.kill_and_restart().unwrap();
    go_on(&two, &here.fingerprint, &first[1]);

    // The one that is sent to. It cannot call, and is asked by the key of before.
    let there = rotate(&two.there);
    assert_eq!(there.pending, ["west"]);
    two.there.kill_and_restart().unwrap();
    assert!(peer(&two.there, "west").rotation_pending);
    go_on(&two, &here.fingerprint, &there.fingerprint);
    let refused = two.add("other", &code).unwrap_err();
    assert_eq!(refused.code, "forbidden", "{refused:?}");

    // Both, and a peer that went away meanwhile comes back.
    let (here, there) = (rotate(&two.here.engine), rotate(&two.there));
    two.there.stop().unwrap();
    two.run("nightly").unwrap_err();
    two.there.restart().unwrap();
    go_on(&two, &here.fingerprint, &there.fingerprint);

    // One that never comes back is in nobody's way once it is removed.
    rotate(&two.there);
    two.there.command(["peer", "rotate"]).unwrap_err();
    two.there.command(["peer", "remove", "west"]).unwrap();
    let alone = rotate(&two.there);
    assert_eq!(alone.pending, Vec::<String>::new());
    let refused = two.run("nightly").unwrap_err();
    assert_eq!(refused.code, "forbidden", "{refused:?}");
    two.here.engine.command(["replication", "delete", "nightly"]).unwrap();
    two.check().unwrap();
}

#[test]
fn a_profile_that_always_runs_tells_as_well() {
    let two = start();
    two.create("always", &["--include", "all", "--continuous"]).unwrap();
    two.follows().unwrap();
    for _ in 0..4 {
        let (here, there) = (rotate(&two.here.engine), rotate(&two.there));
        // Another run may be told at the same time.
        two.run("nightly").unwrap();
        wait_until("both are told", PATIENCE, || {
            let (east, west) = (peer(&two.here.engine, "east"), peer(&two.there, "west"));
            Ok(!east.rotation_pending
                && !west.rotation_pending
                && west.fingerprint == here.fingerprint
                && east.fingerprint == there.fingerprint)
        })
        .unwrap();
        two.follows().unwrap();
    }
    two.here.engine.command(["replication", "pause", "always"]).unwrap();
    wait_until("it ends", PATIENCE, || Ok(two.show("always")?.job.is_none())).unwrap();
    assert_eq!(two.show("always").unwrap().error, None);
    two.check().unwrap();
}

#[test]
fn whoever_is_killed_while_it_is_told_both_go_on() {
    let mut two = start();
    // As a crash leaves it after the other one has recorded the new key, and before that is recorded here.
    two.here.engine.stop().unwrap();
    let first = catalog(&two.here.engine).unwrap().secret(KEY).unwrap().unwrap();
    let known = peer(&two.there, "west").fingerprint;
    two.here.engine.restart().unwrap();
    let here = rotate(&two.here.engine).fingerprint;
    two.run("nightly").unwrap();
    two.here.engine.stop().unwrap();
    two.there.stop().unwrap();
    {
        let (here, there) = (catalog(&two.here.engine).unwrap(), catalog(&two.there).unwrap());
        let new = peer_of(&there).fingerprint;
        assert_eq!(here.secret(OLD_KEY).unwrap().map(|_| ()), None, "it is gone");
        here.put_secret(OLD_KEY, &first).unwrap();
        edit(&here, |east| east.knows_old_key = true);
        edit(&there, |west| (west.fingerprint, west.next_fingerprint) = (known, Some(new)));
    }
    two.here.engine.restart().unwrap();
    two.there.restart().unwrap();
    let there = peer(&two.here.engine, "east").fingerprint;
    go_on(&two, &here, &there);

    // Killed wherever it is.
    for round in 0..8 {
        let (here, there) = (rotate(&two.here.engine), rotate(&two.there));
        let words = ["replication", "run", "nightly", "--detach"];
        let _: JobAccepted = two.here.engine.ask(words).unwrap();
        SystemClock.sleep(Duration::from_millis(20 * (round / 2)));
        let killed = if round % 2 == 0 { &mut two.here.engine } else { &mut two.there };
        killed.kill_and_restart().unwrap();
        let ended = || Ok(two.show("nightly")?.job.is_none());
        wait_until("no run is at work", PATIENCE, ended).unwrap();
        go_on(&two, &here.fingerprint, &there.fingerprint);
    }
    two.check().unwrap();
}

fn peer_of(catalog: &Catalog) -> domain::Peer {
    let [peer] = &catalog.list::<domain::Peer>().unwrap()[..] else { panic!("one peer") };
    peer.clone()
}
