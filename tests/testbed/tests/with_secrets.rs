//! Passwords go with what is sent where the profile says so, and a failover needs nobody who knows them.
#![allow(clippy::unwrap_used)]

use anyhow::{Result, ensure};
use offshoot_api::{Dsource, DsourceState, Job, Replication, Secrets, Status, Vdb};
use offshoot_testbed::{PATIENCE, Two, load, sums, wait_until};
use std::path::Path;

fn sealed(two: &Two) -> u64 {
    two.there.ask::<Secrets, _>(["secret", "show"]).unwrap().sealed
}

/// No file of an engine has this text: databases, logs, records of jobs.
fn is_nowhere(directory: &Path, text: &str) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type()))?;
        if kind?.is_dir() {
            // What is mounted is the databases', which have hashes of their own.
            if path.file_name().is_some_and(|name| name != "mnt") {
                is_nowhere(&path, text)?;
            }
        } else if path.is_file() {
            let found = std::fs::read(&path)?.windows(text.len()).any(|it| it == text.as_bytes());
            ensure!(!found, "{} shows it", path.display());
        }
    }
    Ok(())
}

fn shop(two: &Two) -> Dsource {
    two.there.ask(["dsource", "show", "shop"]).unwrap()
}

fn password_of(vdb: &Vdb) -> String {
    url::Url::parse(&vdb.uri).unwrap().password().unwrap().to_owned()
}

#[test]
fn a_failover_needs_nobody_who_knows_them() {
    let mut two = Two::start().unwrap();
    two.send_shop_and_dev().unwrap();
    let without = sealed(&two);
    let more = ["--include", "all", "--with-secrets", "--connections", "4"];
    let profile: Replication = two.create("standby", &more).unwrap();
    assert!(profile.with_secrets && profile.connections == 4, "{profile:?}");
    two.run("standby").unwrap();
    assert_eq!(sealed(&two), without + 2);
    // What is sent without them has none.
    two.run("nightly").unwrap();
    assert_eq!(sealed(&two), without);
    two.run("standby").unwrap();
    assert_eq!(sealed(&two), without + 2);
    two.there.kill_and_restart().unwrap();
    is_nowhere(two.there.pool(), two.here.source.link_password()).unwrap();
    let dev: Vdb = two.here.engine.ask(["vdb", "show", "dev"]).unwrap();
    is_nowhere(two.there.pool(), &password_of(&dev)).unwrap();

    // The host is lost, and for a while production with it.
    two.here.engine.kill().unwrap();
    two.here.source.stop_server().unwrap();
    let done = two.there.command(["failover", "west", "--force"]).unwrap();
    let done: Job = serde_json::from_value(done).unwrap();
    assert!(done.error.is_none(), "{done:?}");
    let (found, error) = (shop(&two), shop(&two).error.unwrap());
    assert_eq!(found.state, DsourceState::Failed, "{found:?}");
    assert!(error.hint.contains("by itself"), "{error:?}");
    wait_until("it is said why", PATIENCE, || {
        let status: Status = two.there.ask(["status"])?;
        let mut of_it = status.faults.iter().filter(|fault| fault.object == "shop");
        Ok(of_it.any(|fault| fault.message.contains("does not follow its source yet: ")))
    })
    .unwrap();
    let again: Vdb = two.there.ask(["vdb", "show", "dev"]).unwrap();
    assert_eq!(password_of(&again), password_of(&dev));
    two.here.source.start_server().unwrap();
    wait_until("it follows its source", PATIENCE, || Ok(shop(&two).state == DsourceState::Active))
        .unwrap();
    assert_eq!(
        sealed(&two),
        without + 4,
        "the source's, the VDB's with its database, and its copy's"
    );
    load(&two.here).unwrap();
    two.there.command(["dsource", "sync", "shop"]).unwrap();
    let production = sums(&two.here.source.connect("postgres").unwrap()).unwrap();
    let latest = two.open_there("latest", "shop", &["--latest"]).unwrap();
    assert_eq!(sums(&latest).unwrap(), production);
    wait_until("no fault is left", PATIENCE, || {
        let status: Status = two.there.ask(["status"])?;
        Ok(!status.faults.iter().any(|fault| fault.object == "shop"))
    })
    .unwrap();
    offshoot_testbed::stop_and_check(&mut two.there).unwrap();
}

#[test]
fn a_number_of_connections_that_is_none_is_refused() {
    let two = Two::start().unwrap();
    two.know().unwrap();
    for number in ["0", "9"] {
        let words = ["replication", "create", "n", "--to", "east", "--include", "all"];
        let refused = two.here.engine.command([&words[..], &["--connections", number]].concat());
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, "invalid_input", "{refused:?}");
    }
}
