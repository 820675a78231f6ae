//! Three engines in a row: what the first one sends the second one sends on.
#![allow(clippy::unwrap_used)]

use anyhow::Result;
use offshoot_api::{BookmarkList, Dsource, DsourceList, DsourceState, Replication, Topology, Vdb};
use offshoot_rig::{Database, Engine};
use offshoot_testbed::{
    PATIENCE, Two, introduce, load, open_vdb, received_moment, stop_and_check, sums, third,
    wait_until,
};
use std::collections::BTreeSet;

/// What is sent on comes from `west` and passes `middle`.
const SHOP: &str = "middle/west/shop";
const DEV: &str = "middle/west/dev";

fn run(engine: &Engine, profile: &str) -> Replication {
    engine.command(["replication", "run", profile]).unwrap();
    engine.ask(["replication", "show", profile]).unwrap()
}

fn open(engine: &Engine, name: &str, from: &str, moment: &[&str]) -> Database {
    open_vdb(engine, name, from, moment).unwrap()
}

#[test]
fn what_comes_is_sent_on_and_never_round() {
    let two = Two::start().unwrap();
    let (moment, then) = two.send_shop_and_dev().unwrap();
    let mut far = third(&two.here).unwrap();
    introduce(&two.there, "middle", &far, "far").unwrap();
    two.there
        .command(["replication", "create", "onward", "--to", "far", "--include", "replicas"])
        .unwrap();
    let first = run(&two.there, "onward");
    assert!(first.replicas && first.include == Some(Vec::new()), "{first:?}");

    // All of it is there as it was, with its moments and bookmarks.
    let list: DsourceList = far.ask(["dsource", "list"]).unwrap();
    let mut names: Vec<String> = list.dsources.into_iter().map(|one| one.name).collect();
    names.sort();
    assert_eq!(names, [DEV, SHOP]);
    let marks: BookmarkList = far.ask(["bookmark", "list"]).unwrap();
    let marks: Vec<&str> = marks.bookmarks.iter().map(|mark| mark.name.as_str()).collect();
    assert_eq!(marks, ["middle/west/v1"]);
    assert_eq!(sums(&open(&far, "then", SHOP, &["--at", &moment])).unwrap(), then);
    assert_eq!(sums(&open(&far, "marked", SHOP, &["--bookmark", "middle/west/v1"])).unwrap(), then);
    assert_eq!(open(&far, "copy", DEV, &[]).number("SELECT n FROM mine").unwrap(), 7);

    what_changes_goes_on(&two, &far, &first).unwrap();
    nothing_goes_round(&two, &far);
    each_knows_all(&two, &far);

    // The first engine may send there itself too: hardly anything of it is lacking.
    introduce(&two.here.engine, "west", &far, "beyond").unwrap();
    let words = ["replication", "create", "direct", "--to", "beyond", "--include", "all"];
    two.here.engine.command(words).unwrap();
    let direct = run(&two.here.engine, "direct");
    assert!(direct.changed_unique_bytes < first.changed_unique_bytes / 4, "{direct:?} {first:?}");

    // Both engines before it are lost.
    let lives = far.command(["failover", "middle/west"]).unwrap_err();
    assert!(lives.message.contains("'middle' called"), "{lives:?}");
    far.command(["failover", "middle/west", "--force"]).unwrap();
    let shop: Dsource = far.ask(["dsource", "show", "shop"]).unwrap();
    assert_eq!(shop.state, DsourceState::Failed, "it waits for its password");
    wait_until("the VDB is made again", PATIENCE, || {
        let vdb: Vdb = far.ask(["vdb", "show", "dev"])?;
        Ok(Database::connect(&vdb.uri)?.number("SELECT n FROM mine")? == 7)
    })
    .unwrap();
    assert_eq!(sums(&open(&far, "still", "shop", &["--bookmark", "v1"])).unwrap(), then);
    stop_and_check(&mut far).unwrap();
    two.check().unwrap();
}

/// A renewal follows through both, and costs what has changed; then nothing.
fn what_changes_goes_on(two: &Two, far: &Engine, first: &Replication) -> Result<()> {
    load(&two.here)?;
    let later = received_moment(&two.here)?;
    let here = two.here.provision("later", "shop", &["--at", &later])?;
    let here = sums(&Database::connect(&here.uri)?)?;
    two.here.engine.command(["vdb", "delete", "later"])?;
    two.run("nightly")?;
    let second = run(&two.there, "onward");
    assert!(second.sent_bytes < first.sent_bytes / 2, "{second:?} {first:?}");
    assert_eq!(sums(&open(far, "later", SHOP, &["--at", &later]))?, here);
    let third = run(&two.there, "onward");
    assert!(third.sent_bytes < 10_000 && third.changed_unique_bytes == 0, "{third:?}");
    Ok(())
}

/// What engines tell each other when they speak draws the same picture from each.
fn each_knows_all(two: &Two, far: &Engine) {
    // The first one hears of the last one by the one in the middle.
    two.run("nightly").unwrap();
    let drawn = |engine: &Engine| {
        let known: Topology = engine.ask(["topology"]).unwrap();
        let links: BTreeSet<_> = known.links.into_iter().map(|link| (link.from, link.to)).collect();
        let names = known.engines.into_iter().map(|one| one.name.unwrap_or_default());
        (names.collect::<Vec<_>>(), links)
    };
    let (first, middle, last) = (drawn(&two.here.engine), drawn(&two.there), drawn(far));
    assert_eq!(first.0, ["", "east", "east/far"]);
    assert_eq!(middle.0, ["", "far", "west"]);
    assert_eq!(last.0, ["", "middle", "middle/west"]);
    assert_eq!(first.1.len(), 3, "{first:?}");
    assert!(first.1 == middle.1 && middle.1 == last.1, "{first:?} {middle:?} {last:?}");
}

/// What has passed an engine is not sent to it again: refused by name, left out otherwise.
fn nothing_goes_round(two: &Two, far: &Engine) {
    introduce(far, "far", &two.there, "middle").unwrap();
    let named = format!("dsource:{SHOP}");
    let words = ["replication", "create", "round", "--to", "middle", "--include", &named];
    let round = far.command(words).unwrap_err();
    assert_eq!(round.code, "wrong_state", "{round:?}");
    assert!(round.message.contains("west → middle → this engine → middle"), "{round:?}");
    let words = ["replication", "create", "rest", "--to", "middle", "--include", "all,replicas"];
    far.command(words).unwrap();
    run(far, "rest");
    let list: DsourceList = two.there.ask(["dsource", "list"]).unwrap();
    assert!(!list.dsources.iter().any(|one| one.name.starts_with("far/")), "{list:?}");
}
