//! What an engine does when it opens.

use crate::bed::Bed;
use offshoot_catalog::Catalog;
use serde_json::json;

#[test]
fn what_should_run_has_started_when_the_engine_is_open() {
    let bed = Bed::new();
    let begin = ["link shop", "provision dev shop", "provision other shop", "put dev own change"];
    bed.answers(&begin);
    for place in ["vdb_revive/start:before", "vdb_revive/start:before-undo"] {
        assert!(!bed.run::<&str>(Some(place), &[]).success(), "{place}: it did not die");
    }
    // Nobody waits here: the first question comes as soon as it is open.
    let answers = bed.answers(&["show dev own", "show other k1", "rest"]);
    assert_eq!(answers[0], "change");
    assert_eq!(answers[2]["vdbs"], json!({ "dev": "Running", "other": "Running" }));
    assert_eq!(answers[2]["faults"], json!([]));
    bed.check_closed();
}

#[test]
fn a_vdb_named_pool_leaves_the_faults_of_the_pool_alone() {
    let bed = Bed::new();
    bed.answers(&["link shop", "provision pool shop", "rest"]);
    // As an earlier release wrote them: one is about the VDB's server, one about the pool.
    for topic in ["server", "job-999"] {
        let fault = json!({
            "subject": "pool", "topic": topic, "time": "2026-11-23T10:00:00Z", "message": topic, "hint": "",
        });
        let catalog = Catalog::open(&bed.pool().join("catalog.db"), bed.key()).unwrap();
        catalog.raise_fault(&serde_json::from_value(fault).unwrap()).unwrap();
    }
    let answers = bed.answers(&["rest", "delete pool", "rest"]);
    for states in [&answers[0], &answers[2]] {
        assert_eq!(states["faults"], json!(["Pool: job-999"]));
    }
}

/// The catalog knows the end of the log from the last clean stop; all that arrived after it opens, too, also while the
/// source cannot be asked.
#[test]
fn what_arrived_before_a_crash_opens_without_the_source() {
    let mut bed = Bed::new();
    let begin = ["link shop", "provision dev shop", "grow", "snapshot shop", "rest", "abort"];
    assert!(!bed.run(None, &begin).success());
    bed.stop_source();
    let answers = bed.answers(&["refresh dev", "show dev after"]);
    assert_eq!(answers[1], "bulk");
    bed.check_closed();
}
