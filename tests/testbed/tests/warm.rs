//! Warm copies: VDBs that run before anybody asks for them.
#![allow(clippy::unwrap_used)]

use offshoot_api::{Vdb, VdbList};
use offshoot_rig::Database;
use offshoot_testbed::{PATIENCE, Testbed, wait_until};
use serde_json::Value;

fn run(bed: &Testbed, line: &str) -> Value {
    bed.engine.command(line.split(' ')).unwrap()
}

fn warm_copies(bed: &Testbed) -> usize {
    let jobs = run(bed, "job list");
    let running = jobs["jobs"].as_array().unwrap().iter().any(|job| job["ended_at"].is_null());
    let status = run(bed, "status");
    let named = names(bed).len() as u64;
    if running { usize::MAX } else { (status["vdbs_running"].as_u64().unwrap() - named) as usize }
}

fn names(bed: &Testbed) -> Vec<String> {
    let list: VdbList = bed.engine.ask(["vdb", "list"]).unwrap();
    list.vdbs.into_iter().map(|vdb| vdb.name).collect()
}

fn wait_for(bed: &Testbed, count: usize) {
    wait_until("warm copies", PATIENCE, || Ok(warm_copies(bed) == count)).unwrap();
}

fn take(bed: &Testbed, name: &str) -> Vdb {
    serde_json::from_value(run(bed, &format!("vdb provision {name} --from shop --warm"))).unwrap()
}

#[test]
fn warm_copies_are_handed_out_and_replaced() {
    let mut bed = Testbed::start().unwrap();
    let source = bed.source.connect("postgres").unwrap();
    source.execute("CREATE TABLE held AS SELECT 7 AS n").unwrap();
    bed.link("shop").unwrap();
    assert_eq!(run(&bed, "policy set shop --warm 2")["warm"], 2);
    wait_for(&bed, 2);
    assert_eq!(names(&bed), [""; 0], "nobody has one yet");

    let one = take(&bed, "test1");
    assert_eq!((one.name.as_str(), one.parent.as_str()), ("test1", "shop"));
    assert_eq!(one.timings.start_ms, 0, "it ran already: {:?}", one.timings);
    let db = Database::connect(&one.uri).unwrap();
    assert_eq!(db.number("SELECT n FROM held").unwrap(), 7);
    db.execute("DROP TABLE held").unwrap();
    let two = take(&bed, "test2");
    assert_eq!(Database::connect(&two.uri).unwrap().number("SELECT n FROM held").unwrap(), 7);
    assert_eq!(names(&bed), ["test1", "test2"]);

    // Names that are taken, and wishes that no copy has, are refused.
    let refused = |line: &str| bed.engine.command(line.split(' ')).unwrap_err().code;
    assert_eq!(refused("vdb provision test1 --from shop --warm"), "already_exists");
    assert_eq!(
        refused("vdb provision test3 --from shop --warm --set work_mem=8MB"),
        "invalid_input"
    );
    assert_eq!(refused("policy set test1 --warm 1"), "invalid_input");
    assert_eq!(refused("policy set shop --warm 1000"), "invalid_input");

    // What is said about it, and when it goes, can be.
    let line = "vdb provision test6 --from shop --warm --label pr=17 --expires 1h";
    let said: Vdb = serde_json::from_value(run(&bed, line)).unwrap();
    assert!(said.labels["pr"] == "17" && said.expires_at.is_some());
    run(&bed, "vdb delete test6");

    // Others take their place; without any, one is made as ever.
    wait_for(&bed, 2);
    run(&bed, "policy set shop --warm 0");
    wait_for(&bed, 0);
    let cold = take(&bed, "test4");
    assert_eq!(Database::connect(&cold.uri).unwrap().number("SELECT n FROM held").unwrap(), 7);

    // A copy of what the source held long ago is replaced, and all are there after a kill.
    run(&bed, "policy set shop --warm 1");
    wait_for(&bed, 1);
    bed.engine.kill_and_restart().unwrap();
    wait_for(&bed, 1);
    take(&bed, "test5");
    run(&bed, "dsource unlink shop --yes");
    wait_for(&bed, 0);
    assert_eq!(names(&bed), ["test1", "test2", "test4", "test5"]);
}
