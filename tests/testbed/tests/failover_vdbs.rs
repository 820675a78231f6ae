//! After a failover a VDB is what its users had made of it, as far as the host that took over can give that.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::{Job, Policy, Vdb, VdbState};
use offshoot_rig::Engine;
use offshoot_testbed::{PATIENCE, Two, wait_until};
use serde_json::Value;
use std::net::TcpListener;
use std::path::PathBuf;

/// A user of an engine; the file with its token.
fn user(two: &Two, engine: &Engine, name: &str) -> PathBuf {
    engine.command(["user", "add", name, "--role", "developer", "--parent", "shop"]).unwrap();
    let made: Value =
        engine.command(["token", "create", "--user", name, "--expires", "1h"]).unwrap();
    let file = two.here.scratch.path().join(name);
    std::fs::write(&file, made["token"].as_str().unwrap()).unwrap();
    file
}

/// Provisions a VDB, and has a snapshot of it that can be sent.
fn provision(two: &Two, name: &str, more: &[&str]) -> Vdb {
    two.here.provision(name, "shop", more).unwrap();
    two.here.wait_ready(&two.here.snapshot(name).unwrap()).unwrap();
    two.here.vdb(name).unwrap()
}

fn made_again(two: &Two, name: &str) -> Vdb {
    two.made_again(&two.there, name).unwrap()
}

/// The first engine is lost with its host, and the ports of its VDBs are free.
fn is_lost(two: &mut Two, vdbs: &[&str]) -> Result<()> {
    for name in vdbs {
        two.here.engine.command(["vdb", "stop", name])?;
    }
    two.here.engine.kill()
}

#[test]
fn a_vdb_is_made_again_as_its_users_had_it() {
    let mut two = Two::start().unwrap();
    two.here.link("shop").unwrap();
    two.know().unwrap();
    let (eve, bob) = (user(&two, &two.here.engine, "eve"), user(&two, &two.here.engine, "bob"));
    two.there.command(["user", "add", "eve", "--role", "developer"]).unwrap();

    let eves = ["--set", "work_mem=7MB", "--memory", "300MiB", "--label", "pr=17"];
    let eves = [&eves[..], &["--description", "for the review"]].concat();
    let eves =
        provision(&two, "eves", &[&eves[..], &["--token-file", eve.to_str().unwrap()]].concat());
    assert_eq!(eves.owner.as_deref(), Some("eve"));
    let bobs = ["--stop-when-idle", "1h", "--token-file", bob.to_str().unwrap()];
    provision(&two, "bobs", &bobs);
    let wide = ["--superuser", "--allow-network", "127.0.0.1:9", "--set", "max_connections=33"];
    let wide = provision(&two, "wide", &wide);
    two.here.engine.command(["policy", "set", "wide", "--snapshot-every", "1h"]).unwrap();
    two.here.engine.command(["vdb", "set", "wide", "--protect"]).unwrap();
    provision(&two, "resting", &[]);
    two.here.engine.command(["vdb", "stop", "resting"]).unwrap();
    two.create("nightly", &["--include", "all"]).unwrap();
    two.run("nightly").unwrap();

    is_lost(&mut two, &["eves", "bobs", "wide"]).unwrap();
    let _taken = TcpListener::bind(("127.0.0.1", wide.port)).unwrap();
    let done: Job = two.there.ask(["failover", "west", "--force"]).unwrap();
    let note = |start: &str| done.notes.iter().any(|note| note.starts_with(start));

    let again = made_again(&two, "eves");
    assert_eq!(again.port, eves.port, "{done:?}");
    assert_eq!(again.owner.as_deref(), Some("eve"));
    assert_eq!((&again.settings, again.memory_bytes), (&eves.settings, eves.memory_bytes));
    assert_eq!((&again.labels, &again.description), (&eves.labels, &eves.description));
    assert!(!again.superuser && !note("'eves' "), "{done:?}");

    let again = made_again(&two, "bobs");
    assert_eq!(again.owner, None);
    assert_eq!(again.gateway.and_then(|it| it.stop_when_idle_ms), Some(3_600_000));
    assert!(note("'bobs' has no owner: there is no user of that name here"), "{done:?}");

    let rests =
        || Ok(two.there.ask::<Vdb, _>(["vdb", "show", "resting"])?.state == VdbState::Stopped);
    wait_until("it is made again and stopped", PATIENCE, rests).unwrap();
    two.there.command(["vdb", "start", "resting"]).unwrap();
    assert!(made_again(&two, "resting").state == VdbState::Running);

    let again = made_again(&two, "wide");
    assert_ne!(again.port, wide.port);
    assert!(again.superuser && again.protected && again.allow_network.is_empty(), "{again:?}");
    assert_eq!(again.settings["max_connections"], "33");
    let policy: Policy = two.there.ask(["policy", "show", "wide"]).unwrap();
    assert_eq!(policy.snapshot_every_ms, Some(3_600_000), "{policy:?}");
    assert!(note("'wide' has another port: "), "{done:?}");
    assert!(
        note("'wide' reached other hosts (--allow-network) there, and does not here"),
        "{done:?}"
    );
}
